// Command releases makes what the product knows of each release of Kubernetes.
//
//	go run ./releases tables            # the tables of replay/release
//	go run ./releases cases             # the cases each release's authorizers are asked
//	go run ./releases answers 1.36      # what they answer, of one release or of all
//
// Tables are read out of a release's sources: its feature gates, the flags of its kube-apiserver,
// its admission plugins. Nothing of it is run. Answers are those of the release's own Node and
// RBAC authorizers under the policy it installs: a program is built for it in a module of its
// own, of which only those packages are compiled. The product's tests read them.
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
type release struct{ minor, version, asked string }

func releases() []release {
	var out []release
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		out = append(out, release{words[0], words[1], words[len(words)-1]})
	}
	return out
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want tables, cases or answers, and releases such as 1.36 or none for all")
	}
	if args[0] == "cases" {
		return writeCases()
	}
	do := map[string]func(release) error{"tables": writeTable, "answers": writeAnswers}[args[0]]
	if do == nil {
		return fmt.Errorf("unknown command %q: want tables, cases or answers", args[0])
	}
	for _, r := range releases() {
		if len(args) > 1 && !slices.Contains(args[1:], r.minor) {
			continue
		}
		if err := do(r); err != nil {
			return fmt.Errorf("%s: %w", r.minor, err)
		}
	}
	return nil
}

func writeTable(r release) error {
	t, err := read(r)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d gates, %d flags, %d admission plugins\n", r.minor, len(t.gates), len(t.flags), len(t.plugins))
	return os.WriteFile(filepath.Join(tables, r.minor+".txt"), t.text(), 0o644)
}
