package arch

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wild are the rooms that may import every other: they wire, check and measure all of them.
var wild = []string{"cmd/retrial-bench", "doctor", "server"}

// TestRulesAreUsed holds the rules to what there is: nobody is allowed what it does not use, only wiring is
// allowed everything, and every part of the replica and of the analyses has a rule of its own.
func TestRulesAreUsed(t *testing.T) {
	uses, folders := map[string]map[string]bool{}, map[string]bool{}
	imported := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		folders[folder] = true
		here, _ := roomOf(folder)
		if uses[here.path] == nil {
			uses[here.path] = map[string]bool{}
		}
		for _, imp := range imports(t, file) {
			imported[imp] = true
			if ours, ok := strings.CutPrefix(imp, module); ok {
				there, _ := roomOf(ours)
				uses[here.path][there.path], uses[here.path][ours] = true, true
			}
		}
	}
	for _, r := range rooms {
		if uses[r.path] == nil {
			t.Errorf("the room %s has no file", r.path)
		}
		for _, other := range r.may {
			switch {
			case other == "*":
				if !slices.Contains(wild, r.path) {
					t.Errorf("%s may import everything: name the rooms", r.path)
				}
			case !uses[r.path][other]:
				t.Errorf("%s may import %s, and does not", r.path, other)
			}
		}
	}
	for folder := range folders {
		part := strings.HasPrefix(folder, "replay/") || strings.HasPrefix(folder, "analysis/")
		if here, _ := roomOf(folder); part && here.path != folder {
			t.Errorf("%s has no rule of its own", folder)
		}
	}
	for _, folder := range pure {
		if !folders[folder] {
			t.Errorf("%s is said to be pure, and has no file", folder)
		}
	}
	for _, x := range impureImports {
		within := func(imp string) bool { return imp == x || strings.HasPrefix(imp, x+"/") }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(imported)), within) {
			t.Errorf("pure rooms may not import %s, which nobody does", x)
		}
	}
	for imp := range onlyFromWiring {
		if !imported[imp] {
			t.Errorf("%s is wired by nobody", imp)
		}
	}
	for file := range mayRename {
		if !slices.Contains(goFiles(t), file) {
			t.Errorf("%s may rename files, and is not there", file)
		}
	}
}
