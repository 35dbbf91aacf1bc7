package arch

import (
	"go/ast"
	"go/build/constraint"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// raceList says what the race detector runs.
const raceList = "../../scripts/race.txt"

// TestRaceDetectorMissesNothing: every package that starts goroutines, itself or in its tests, is run
// under the race detector, and a pattern behind a package names the tests that start them.
func TestRaceDetectorMissesNothing(t *testing.T) {
	starts, calls, elsewhere := map[string]bool{}, map[string][]string{}, map[string]string{} // by folder
	for _, file := range goFiles(t) {
		source, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if raceOnly(source) {
			continue
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		for _, d := range parse(t, file, 0).Decls {
			if !startsGoroutine(d) {
				continue
			}
			starts[folder] = true
			f, ok := d.(*ast.FuncDecl)
			switch {
			case ok && strings.HasSuffix(file, "_test.go") && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test"):
				calls[folder] = append(calls[folder], f.Name.Name)
			case ok && strings.HasSuffix(file, "_test.go") && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Benchmark"):
			default:
				elsewhere[folder] = file
			}
		}
	}
	raw, err := os.ReadFile(raceList)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		folder := fields[0]
		listed[folder] = true
		if !starts[folder] {
			t.Errorf("%s names %s, which starts no goroutine", raceList, folder)
		}
		if len(fields) > 1 && elsewhere[folder] != "" {
			t.Errorf("%s: %s has a pattern, and %s starts goroutines outside of tests", raceList, folder, elsewhere[folder])
		}
		for _, name := range calls[folder] {
			if len(fields) > 1 && !regexp.MustCompile(fields[1]).MatchString(name) {
				t.Errorf("%s: %s of %s starts goroutines, and the pattern %s leaves it out", raceList, name, folder, fields[1])
			}
		}
	}
	tested := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			tested[filepath.ToSlash(filepath.Dir(file))] = true
		}
	}
	for folder := range starts {
		if tested[folder] && !listed[folder] {
			t.Errorf("%s starts goroutines: add it to %s", folder, raceList)
		}
	}
}

// raceOnly tells whether a file is built for the race detector alone, or never for it.
func raceOnly(source []byte) bool {
	for line := range strings.Lines(string(source)) {
		if strings.HasPrefix(line, "package ") {
			return false
		}
		if x, err := constraint.Parse(strings.TrimSpace(line)); err == nil {
			return strings.Contains(x.String(), "race")
		}
	}
	return false
}

// startsGoroutine tells whether code has a go statement, or a call that runs what it is given beside
// what goes on.
func startsGoroutine(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				found = found || slices.Contains([]string{"Go", "Parallel", "AfterFunc", "NewServer", "NewTLSServer", "Serve"}, s.Sel.Name)
			}
		}
		return !found
	})
	return found
}
