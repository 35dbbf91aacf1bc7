// Command releases makes the tables of replay/release out of the sources of each release of
// Kubernetes: its feature gates, the flags of its kube-apiserver, its admission plugins. It
// reads the sources as they are in their modules and runs none of them.
//
//	go run ./releases            # all of releases.txt
//	go run ./releases 1.38       # one
//
// A new release is a line of releases.txt.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed releases.txt
var list string

// tables is where the product keeps them, seen from the folder of this module.
const tables = "../../replay/release/tables"

// release is one line of the list.
type release struct{ minor, version string }

func releases() []release {
	var out []release
	for line := range strings.Lines(list) {
		if minor, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok && minor != "#" {
			out = append(out, release{minor, version})
		}
	}
	return out
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

func run(wanted []string) error {
	for _, r := range releases() {
		if len(wanted) > 0 && !slices.Contains(wanted, r.minor) {
			continue
		}
		t, err := read(r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.minor, err)
		}
		if err := os.WriteFile(filepath.Join(tables, r.minor+".txt"), t.text(), 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d gates, %d flags, %d admission plugins\n", r.minor, len(t.gates), len(t.flags), len(t.plugins))
	}
	return nil
}
