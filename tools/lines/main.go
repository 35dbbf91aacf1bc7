// Command lines counts the production lines of the main module, a room a line: of one commit, or of two beside each other.
// What further commits added of their own, such as new capabilities, is listed and taken from the difference.
//
//	lines [COMMIT [COMMIT [PART…]]]    HEAD alone by default
//
// Lines are counted after reflow, so that wrapping earlier or later changes nothing. Apart are tests, test kits, benchmarks,
// nested modules, and files that a program wrote.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// kits are folders and files that no user runs: test kits and benchmarks.
	kits = regexp.MustCompile(`^(test|tools|cmd/retrial-bench)/|^cmd/retrial/bench[a-z_]+\.go$|(^|/)[a-z]+test/|(^|/)testdata/|` +
		`^internal/(chserver|testfile|testreport|perevent|recording|recorded|workload|policyshape|faults|linearscan)/`)
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
)

func main() {
	commits := os.Args[1:]
	if len(commits) == 0 {
		commits = []string{"HEAD"}
	}
	if err := report(os.Stdout, commits); err != nil {
		fmt.Fprintln(os.Stderr, "lines:", err)
		os.Exit(1)
	}
}

func report(w io.Writer, commits []string) error {
	before, err := rooms(commits[0])
	if err != nil {
		return err
	}
	if len(commits) == 1 {
		for _, room := range slices.Sorted(maps.Keys(before)) {
			fmt.Fprintf(w, "%-24s %7d\n", room, before[room])
		}
		fmt.Fprintf(w, "%-24s %7d\n", "all", sum(before))
		return nil
	}
	after, err := rooms(commits[1])
	if err != nil {
		return err
	}
	named := maps.Clone(before)
	maps.Copy(named, after)
	for _, room := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(w, "%-24s %7d %7d %+7d\n", room, before[room], after[room], after[room]-before[room])
	}
	rest := sum(after) - sum(before)
	fmt.Fprintf(w, "%-24s %7d %7d %+7d\n", "all", sum(before), sum(after), rest)
	for _, part := range commits[2:] {
		without, err := rooms(part + "^")
		if err != nil {
			return err
		}
		with, err := rooms(part)
		if err != nil {
			return err
		}
		subject, err := git("log", "-1", "--format=%h %s", part)
		if err != nil {
			return err
		}
		added := sum(with) - sum(without)
		rest -= added
		fmt.Fprintf(w, "  of which %+7d  %s", added, subject)
	}
	if len(commits) > 2 {
		fmt.Fprintf(w, "%-40s %+7d\n", "the rest", rest)
	}
	return nil
}

func sum(rooms map[string]int) (all int) {
	for _, n := range rooms {
		all += n
	}
	return all
}

// rooms counts the lines of a commit by room, a folder of the first or second level.
func rooms(commit string) (map[string]int, error) {
	archive, err := git("archive", commit)
	if err != nil {
		return nil, err
	}
	sources := map[string][]byte{}
	var nested []string
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case path.Base(h.Name) == "go.mod" && h.Name != "go.mod":
			nested = append(nested, strings.TrimSuffix(h.Name, "go.mod"))
		case path.Ext(h.Name) == ".go" && !strings.HasSuffix(h.Name, "_test.go") && !kits.MatchString(h.Name):
			if sources[h.Name], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
	}
	counts := map[string]int{}
	for name, source := range sources {
		if generated.Match(source) || slices.ContainsFunc(nested, func(module string) bool { return strings.HasPrefix(name, module) }) {
			continue
		}
		n, err := reflowed(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", commit, name, err)
		}
		counts[room(name)] += n
	}
	return counts, nil
}

func room(file string) string {
	parts := strings.Split(path.Dir(file), "/")
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

func git(args ...string) ([]byte, error) {
	out, err := exec.Command("git", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("git %s: %s", args[0], bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}
