package arch

import (
	"bufio"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// mostFiles is how many files of one package may refer to each other in a cycle, unless
// cycleBounds has it: the rooms of questions and wiring, and every new one.
const mostFiles = 8

// cycleBounds are the largest cycles of the packages that are older than the bound, 1 for none. A bound
// never goes up.
var cycleBounds = map[string]int{
	"analysis/completeness": 6, "analysis/detect": 4, "analysis/drift": 2, "analysis/escalation": 8, "analysis/leastpriv": 9,
	"ingest/embedded": 4, "ingest/event": 9, "ingest/identity": 7, "ingest/importer": 6, "ingest/spool": 4, "ingest/stream": 12,
	"ingest/watch": 8, "ingest/webhook": 6,
	"internal/config": 1, "rbacindex": 12, "rbacindex/authorizer": 2,
	"replay": 16, "replay/authn": 1, "replay/authz": 1, "replay/authz/node": 3, "replay/config": 8, "replay/evaluate": 3,
	"replay/implied": 8, "replay/request": 2, "replay/runner": 16,
	"replay/state": 30, "replay/state/content": 4, "replay/state/graph": 4, "replay/state/observe": 6,
	"storage": 14, "storage/queries": 3, "storage/embedded": 3, "storage/sqlgate": 3, "storage/storagetest": 2,
	"test/chserver": 2, "test/kafkatest": 2, "test/workload": 5,
}

// mostLines is how many lines of production code a package may have, unless sizeBounds says otherwise.
const mostLines = 7000

// sizeBounds are the packages with a bound of their own.
var sizeBounds = map[string]int{
	"cmd/retrial": 5500,
}

// TestCyclesOfFiles holds every package to small cycles of files. An edge leads from one file of
// a package to another when it names a function, a type, a variable, a constant or a method that
// is declared at package level in the other; what is a field or declared within a function is
// none. Files that reach each other along edges are one cycle. Test files and generated files
// are left out.
func TestCyclesOfFiles(t *testing.T) {
	for _, p := range production(t) {
		largest := largestCycle(p)
		bound, named := cycleBounds[folder(p)]
		if !named {
			bound = mostFiles
		}
		if len(largest) > bound {
			t.Errorf("%s: %d files refer to each other in a cycle, more than %d: %s", folder(p), len(largest), bound,
				strings.Join(largest, " "))
		}
	}
}

// TestSizesOfPackages bounds the lines of a package, comments included; test files and generated
// files are left out.
func TestSizesOfPackages(t *testing.T) {
	lines := map[string]int{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if !generated.Match(source) {
			lines[filepath.ToSlash(filepath.Dir(file))] += strings.Count(string(source), "\n")
		}
	}
	for dir, n := range lines {
		bound, named := sizeBounds[dir]
		if !named {
			bound = mostLines
		}
		if n > bound {
			t.Errorf("%s has %d lines, more than %d: part it by idea", dir, n, bound)
		}
	}
	for dir := range sizeBounds {
		if lines[dir] == 0 {
			t.Errorf("%s has a bound and no lines", dir)
		}
	}
}

// production loads the packages of the main module, without their tests.
func production(t *testing.T) []*packages.Package {
	t.Helper()
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		Dir:  filepath.Join("..", ".."),
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
	}
	return all
}

// folder returns a package's folder.
func folder(p *packages.Package) string { return strings.TrimPrefix(p.PkgPath, module) }

// largestCycle returns the files of the largest cycle, sorted; none when there is no cycle.
func largestCycle(p *packages.Package) []string {
	made := map[string]bool{}
	for _, f := range p.Syntax {
		made[p.Fset.Position(f.FileStart).Filename] = isGenerated(p.Fset.Position(f.FileStart).Filename)
	}
	edges := map[string]map[string]bool{}
	for id, object := range p.TypesInfo.Uses {
		if object.Pkg() != p.Types || !atPackageLevel(object) {
			continue
		}
		from, to := p.Fset.Position(id.Pos()).Filename, p.Fset.Position(object.Pos()).Filename
		if from == to || made[from] || made[to] {
			continue
		}
		if edges[from] == nil {
			edges[from] = map[string]bool{}
		}
		edges[from][to] = true
	}
	var largest []string
	for _, group := range components(edges) {
		if len(group) > len(largest) && len(group) > 1 {
			largest = group
		}
	}
	for i, file := range largest {
		largest[i] = filepath.Base(file)
	}
	slices.Sort(largest)
	return largest
}

// atPackageLevel reports whether an object is a function, a type, a variable or a constant of its
// package, or a method.
func atPackageLevel(object types.Object) bool {
	if f, ok := object.(*types.Func); ok && f.Signature().Recv() != nil {
		return true
	}
	return object.Parent() == object.Pkg().Scope()
}

// isGenerated reports whether a file says that a program wrote it.
func isGenerated(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := bufio.NewReader(f).Peek(4096) // shorter files have less
	return generated.Match(head)
}

// components returns the strongly connected components of a graph (Tarjan).
func components(edges map[string]map[string]bool) [][]string {
	var out [][]string
	index, low, open := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, open[v] = append(stack, v), true
		for w := range edges[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if open[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		out = append(out, slices.Clone(stack[at:]))
		for _, w := range stack[at:] {
			open[w] = false
		}
		stack = stack[:at]
	}
	for v := range edges {
		if index[v] == 0 {
			visit(v)
		}
	}
	return out
}

// TestComponents finds cycles, and tells them from what merely leads to one.
func TestComponents(t *testing.T) {
	edges := map[string]map[string]bool{}
	for _, e := range []string{"ab", "bc", "ca", "da", "ce", "ef", "fe", "gg"} {
		if edges[e[:1]] == nil {
			edges[e[:1]] = map[string]bool{}
		}
		edges[e[:1]][e[1:]] = true
	}
	var got []string
	for _, group := range components(edges) {
		slices.Sort(group)
		got = append(got, fmt.Sprint(group))
	}
	slices.Sort(got)
	if want := []string{"[a b c]", "[d]", "[e f]", "[g]"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
