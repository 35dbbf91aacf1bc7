package arch

import (
	"path/filepath"
	"strings"
	"testing"
)

// withoutEngine are rooms that neither import the engine nor anything that does: what they
// work on are records. analysis/leastpriv is not among them: it derives with replay/implied
// the checks that requests it never saw judged imply.
var withoutEngine = []string{"verdict", "storage", "storage/queries", "storage/schema", "analysis/completeness", "analysis/detect",
	"analysis/drift", "analysis/escalation"}

// engine are the folders and modules the engine consists of.
var engine = []string{module + "replay/authz", module + "replay/config", module + "replay/authn", module + "replay/implied",
	"k8s.io/apiserver"}

func TestRecordsKnowNoEngine(t *testing.T) {
	direct := map[string][]string{}
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			dir := module + filepath.ToSlash(filepath.Dir(file))
			direct[dir] = append(direct[dir], imports(t, file)...)
		}
	}
	for _, room := range withoutEngine {
		if len(direct[module+room]) == 0 && room != "storage/schema" {
			t.Errorf("%s: imports nothing; is the folder still there?", room)
		}
		seen := map[string]bool{}
		var walk func(pkg, way string)
		walk = func(pkg, way string) {
			for _, imp := range direct[pkg] {
				if seen[imp] {
					continue
				}
				seen[imp] = true
				here := way + " → " + strings.TrimPrefix(imp, module)
				for _, e := range engine {
					if imp == e || strings.HasPrefix(imp, e+"/") {
						t.Errorf("%s reaches the engine: %s", room, here)
					}
				}
				if imp == module+"replay" {
					t.Errorf("%s reaches the engine: %s", room, here)
				}
				walk(imp, here)
			}
		}
		walk(module+room, room)
	}
}
