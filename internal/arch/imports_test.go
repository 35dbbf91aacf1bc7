package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/retrial-io/retrial/"

// room is a folder of the repository with the rooms it may import. A room covers its
// sub-folders unless a longer entry names them.
type room struct {
	path string
	may  []string // rooms of ours; "*" is every room
	why  string
}

var rooms = []room{
	{"cmd/retrial", []string{"query", "query/client", "server", "doctor", "internal/atomicfile", "internal/config", "internal/cli",
		"internal/params", "internal/phrase", "internal/safe", "internal/sleep", "internal/version"},
		"commands are flags and printers: what they print is asked, " +
			"and what runs is wired, elsewhere; of internal they need folders that are written whole, the settings that flags bind, " +
			"a terminal's streams and exit codes, " +
			"the parameters of questions, words and hostile text made fit to print, and their own version"},
	{"cmd/retrial-bench", []string{"*"}, "benchmarks measure every room"},
	{"ingest/event", nil, "the event is the first product of the pipeline and depends on nobody"},
	{"ingest/redact", []string{"ingest/event"}, "what is never stored is decided on the event alone"},
	{"ingest/webhook", []string{"ingest/event", "ingest/stream"},
		"the receiver turns bytes into records; what becomes of them is not its business"},
	{"ingest/identity", nil, "certificates and cluster names are known before any event is"},
	{"ingest/importer", []string{"ingest/event"}, "an import is a client of the receiver and must not go round it"},
	{"ingest/watch", []string{"ingest/event", "ingest/redact", "ingest/stream"}, "watched objects travel as records, like written ones"},
	{"ingest/stream", []string{"ingest/event"}, "the transport knows what an event is, not what is thought of it"},
	{"ingest/spool", []string{"ingest/stream"}, "the spool holds records as they are; it looks into none"},
	{"ingest/apimetrics", nil, "what an apiserver says of itself is read without knowing what for"},
	{"ingest/embedded", nil, "the in-process broker is reached through the Kafka client only"},
	{"verdict", []string{"ingest/event"}, "what is decided and stored is plain records: whoever makes, keeps or reads them knows no " +
		"more of the others"},
	{"rbacindex", nil, "the index is usable outside this product and imports no other room"},
	{"rbacindex/authorizer", []string{"rbacindex"}, "the adapter to k8s.io/apiserver takes objects from informers and answers " +
		"through the index"},
	{"replay/state/instant", nil, "a moment is a number"},
	{"replay/state/graph", nil, "what belongs to which node follows from names alone"},
	{"replay/state/kept", []string{"rbacindex", "replay/state/graph"},
		"what is kept of an object is read from the object alone"},
	{"replay/state/observe", []string{"ingest/event", "replay/state/instant", "replay/state/kept"},
		"what a request or a listing says of objects is told without knowing what was known of them"},
	{"replay/state/content", []string{"rbacindex", "replay/state/graph", "replay/state/instant", "replay/state/kept"},
		"what an object holds, and may hold, is worked out without knowing when"},
	{"replay/state/forget", []string{"replay/state/observe"}, "what stays of an observation is worked out from the observation alone"},
	{"replay/state", []string{"ingest/event", "rbacindex", "replay/state/content", "replay/state/graph", "replay/state/instant",
		"replay/state/kept", "replay/state/observe"}, "state is made of observations and answers through the index"},
	{"replay/runner", []string{"ingest/event", "ingest/stream", "verdict", "replay", "replay/state", "replay/state/observe"},
		"the loop joins the stream to the engine; the store comes in through an interface"},
	{"replay/request", []string{"verdict"}, "what was asked follows from verb and URI alone"},
	{"replay/reason", []string{"rbacindex"}, "what a recorded reason says is read from its words alone"},
	{"replay/release", nil, "what a release of Kubernetes has is tables"},
	{"replay/config", []string{"replay/release"}, "the configuration is a value read from files"},
	{"replay/authn", []string{"ingest/event", "replay/request", "replay/config", "replay/release", "replay/state",
		"replay/state/kept"}, "who it was is judged before what was allowed"},
	{"replay/authz/node", []string{"replay/authn", "replay/config", "replay/release", "replay/request", "replay/state/graph",
		"verdict"}, "what kubelets may do follows from rules, and from what belongs to their node"},
	{"replay/authz", []string{"ingest/event", "rbacindex", "verdict", "replay/reason", "replay/request", "replay/config",
		"replay/release",
		"replay/state", "replay/state/content", "replay/state/graph", "replay/authn", "replay/authz/node"},
		"the authorizers see attributes, configuration " +
			"and state; what is recorded is compared later"},
	{"replay/review", []string{"ingest/event", "verdict", "replay/request"}, "what a review asks is read from its event, the " +
		"engine answers it"},
	{"replay/admission", []string{"verdict", "replay/request", "replay/config", "replay/release", "replay/state", "replay/state/graph"},
		"what admission did is told from the record, the configuration and the state"},
	{"replay/implied", []string{"ingest/event", "verdict", "replay/request", "replay/config", "replay/authn", "replay/state/graph"},
		"which checks a request implies is derived, they are answered by the engine"},
	{"replay", []string{"ingest/event", "rbacindex", "verdict", "replay/state", "replay/state/graph", "replay/state/kept",
		"replay/reason",
		"replay/request", "replay/config", "replay/release", "replay/authn", "replay/authz", "replay/authz/node",
		"replay/admission", "replay/implied",
		"replay/review"}, "the engine is pure: event and state in, verdict out"},
	{"replay/evaluate", []string{"ingest/event", "verdict", "replay", "replay/state", "replay/state/kept", "replay/state/observe",
		"replay/authn", "analysis/lineage"},
		"a log is judged by the engine of the stream, and its credentials are followed"},
	{"storage/native", nil, "columns know values, not what they mean"},
	{"storage/codec", []string{"ingest/event", "verdict", "storage/native"}, "rows become columns and columns rows without a server"},
	{"storage/schema", nil, "migrations are text, rendered for one server or for a cluster"},
	{"storage/statement", nil, "a statement and its parameters know nothing of what they are about"},
	{"storage/queries", []string{"ingest/event", "verdict", "storage/codec", "storage/native", "storage/statement"},
		"what is read of the store is read without knowing how it was written"},
	{"storage", []string{"ingest/event", "verdict", "storage/codec", "storage/native", "storage/queries", "storage/schema",
		"storage/statement"},
		"storage keeps records and knows nothing of who made them"},
	{"storage/storagetest", []string{"ingest/event", "verdict", "replay/request", "storage", "storage/embedded", "test/chserver"},
		"the test kit opens a store the way cmd does"},
	{"storage/embedded", nil, "the engine in process is reached through the ClickHouse client only"},
	{"analysis/completeness", []string{"storage/queries"}, "what is missing follows from what is stored and what apiservers count"},
	{"analysis/detect", []string{"ingest/event", "verdict", "replay/request", "storage/queries", "storage/codec"},
		"rules select rows and read their marks"},
	{"analysis/drift", []string{"verdict", "replay/state", "replay/reason", "replay/request"},
		"causes are told from verdicts, which name what was in doubt in the words of the state"},
	{"analysis/escalation", []string{"rbacindex", "replay/state", "replay/state/content"},
		"what a subject can reach follows from the policy"},
	{"analysis/lineage", []string{"ingest/event", "replay/state", "replay/request", "replay/authn"},
		"what several events show is told with what authentication finds in one"},
	{"analysis/leastpriv", []string{"ingest/event", "rbacindex", "verdict", "replay/state", "replay/state/content", "replay/state/kept",
		"replay/authn", "replay/implied"}, "a suggestion is proved with the index, and with the checks that " +
		"a request implies, of what events or rollups tell"},
	{"analysis/revert", []string{"rbacindex", "replay/state", "replay/state/content"},
		"what an object was before a write follows from the policy in time"},
	{"analysis/whatif", []string{"ingest/event", "rbacindex", "verdict", "replay/authz", "replay/authz/node",
		"replay/implied", "replay/state", "replay/state/content", "replay/state/kept"},
		"a draft is asked of the authorizers that decided, and of the checks that requests imply"},
	{"query", []string{"ingest/event", "rbacindex", "verdict", "replay", "replay/authn", "replay/authz", "replay/config",
		"replay/state", "replay/state/content", "replay/state/kept", "replay/state/observe", "storage/queries", "storage/codec",
		"analysis/completeness", "analysis/detect", "analysis/drift", "analysis/escalation", "analysis/leastpriv", "analysis/lineage",
		"analysis/revert", "analysis/whatif", "query/past"},
		"questions are answered from the store and the replica, whoever asks and however"},
	{"query/past", []string{"rbacindex", "replay/state/kept", "replay/state/observe", "storage/queries", "storage/codec", "verdict",
		"analysis/leastpriv"},
		"what was done is read and kept without knowing the questions"},
	{"query/api", []string{"query", "storage/queries"}, "HTTP knows questions by their names and parameters, not by what they ask"},
	{"query/memory", []string{"ingest/event", "verdict", "replay/state/kept", "replay/state/observe", "storage/queries", "storage/codec",
		"analysis/detect", "query"}, "a log in memory answers what a store answers of the same rows"},
	{"query/client", []string{"query", "query/api"}, "who asks knows the answers' types, and the handler when it is in the same process"},
	{"server", []string{"*"}, "what a process consists of is wired in one place"},
	{"doctor", []string{"*"}, "what an installation needs is asked of every room"},
	{"dashboards", nil, "dashboards show what they are handed"},
	{"deploy", nil, "deploy holds files"},
	{"test/workload", []string{"ingest/event", "replay/state/kept", "replay/state/observe"},
		"generated events come with the policy they follow from"},
	{"test/recording", []string{"ingest/event", "verdict", "replay", "replay/evaluate", "replay/authn", "replay/config"},
		"a test kit judges recordings the way cmd does"},
	{"internal/linearscan", []string{"rbacindex"}, "the reference decides the requests that the index decides, on the " +
		"objects it is made of"},
	{"test/chserver", []string{"storage/embedded"}, "a test kit serves the engine to other processes"},
	{"test", nil, "test kits stand beside the rooms they serve"},
	{"internal", nil, "internal is what belongs to no room"},
}

// namesInternal are the rooms that may import of internal only what they name; every other may import all of it.
var namesInternal = []string{"cmd/retrial"}

// pure rooms and folders do no I/O and read no clock, so that a replay is a function of its inputs.
var pure = []string{
	"ingest/event", "ingest/redact", "verdict", "rbacindex",
	"replay", "replay/state", "replay/state/content", "replay/state/forget", "replay/state/graph", "replay/state/instant",
	"replay/state/kept", "replay/state/observe", "replay/request", "replay/reason", "replay/release", "replay/config", "replay/authn",
	"replay/authz", "replay/authz/node", "replay/admission", "replay/implied", "replay/review", "replay/evaluate",
	"analysis/completeness", "analysis/detect", "analysis/drift", "analysis/escalation", "analysis/leastpriv", "analysis/lineage",
	"analysis/revert", "analysis/whatif", "query", "query/changeset", "query/known", "query/memory", "query/past", "query/resource",
	"internal/gzipped", "internal/jsontext", "internal/kubenames", "internal/manifest",
	"internal/moment", "internal/near", "internal/params", "internal/patchops",
	"internal/phrase", "internal/safe",
}

var impureImports = []string{
	"net", "net/http", "os", "os/exec", "github.com/segmentio/kafka-go", "github.com/ClickHouse/clickhouse-go/v2",
	"github.com/ClickHouse/ch-go", "go.uber.org/zap", "github.com/prometheus/client_golang/prometheus",
}

// forbiddenAnywhere in the main module: import path prefix and why.
var forbiddenAnywhere = map[string]string{
	"k8s.io/kubernetes": "the real Kubernetes code is the oracle of nested test modules; nothing of it reaches the product",
}

// onlyFromWiring may be imported by server, by the benchmarks, by doctor (whether the engine can run is its own to say), by
// tests and by test kits alone.
var onlyFromWiring = map[string]string{
	module + "ingest/embedded":  "embedded engines are a choice of the wiring",
	module + "storage/embedded": "embedded engines are a choice of the wiring",
}

func TestImports(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		here, ok := roomOf(folder)
		if !ok {
			t.Errorf("%s: lies in no room; add its folder to the list of rooms", file)
			continue
		}
		for _, imp := range imports(t, file) {
			for prefix, why := range forbiddenAnywhere {
				if strings.HasPrefix(imp, prefix) {
					t.Errorf("%s imports %s: %s", file, imp, why)
				}
			}
			if why, found := onlyFromWiring[imp]; found && here.path != "cmd/retrial-bench" && here.path != "server" &&
				here.path != "doctor" && here.path != "test/chserver" && !strings.HasSuffix(here.path, "test") {
				t.Errorf("%s imports %s: %s", file, imp, why)
			}
			if slices.Contains(pure, folder) && impure(imp) {
				t.Errorf("%s imports %s: %s is pure, so that a replay is a function of its inputs", file, imp, folder)
			}
			ours, found := strings.CutPrefix(imp, module)
			if !found {
				continue
			}
			there, ok := roomOf(ours)
			if !ok || there.path == here.path {
				continue
			}
			name := there.path
			if name == "internal" {
				if !slices.Contains(namesInternal, here.path) {
					continue
				}
				name = ours
			}
			if !slices.Contains(here.may, "*") && !slices.Contains(here.may, name) {
				t.Errorf("%s imports %s: %s may not: %s", file, imp, here.path, here.why)
			}
		}
	}
}

// mayRename holds the files that move files, with why; everything else replaces them through
// internal/atomicfile, which waits for the disk.
var mayRename = map[string]string{
	"internal/atomicfile/atomicfile.go": "it is the one that does it",
	"ingest/spool/fs.go":                "the spool's disk is behind an interface that tests let fail",
	"cmd/retrial-bench/pipeline.go":     "a profile is moved, not replaced",
}

func TestFilesAreReplacedByAtomicfile(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || mayRename[filepath.ToSlash(file)] != "" {
			continue
		}
		ast.Inspect(parse(t, file, 0), func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Rename" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" {
					t.Errorf("%s calls os.Rename: use internal/atomicfile", file)
				}
			}
			return true
		})
	}
}

func TestPureRoomsReadNoClock(t *testing.T) {
	for _, file := range goFiles(t) {
		folder := filepath.ToSlash(filepath.Dir(file))
		if !slices.Contains(pure, folder) || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f := parse(t, file, 0)
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && (sel.Sel.Name == "Now" || sel.Sel.Name == "Since" ||
				sel.Sel.Name == "Until") {
				t.Errorf("%s calls time.%s: %s is pure; take the time as an argument", file, sel.Sel.Name, folder)
			}
			return true
		})
	}
}

func TestEveryPackageAndExportIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := filepath.Dir(file)
		f := parse(t, file, parser.ParseComments)
		documented[dir] = documented[dir] || f.Doc != nil
		for _, d := range f.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: exported %s has no doc comment", file, name)
			}
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: the package has no package comment", dir)
		}
	}
}

// undocumented returns the exported names of a declaration that no comment covers. A
// comment on a group of constants or variables covers the group.
func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !(d.Recv != nil && slices.Contains(wellKnown, d.Name.Name)) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil || d.Tok == token.IMPORT {
			return nil
		}
		var names []string
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && s.Comment == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
		return names
	}
	return nil
}

// wellKnown methods belong to interfaces of the standard library that say what they do.
var wellKnown = []string{"Error", "Unwrap", "Is", "String", "Close", "Read", "Write", "Len", "Less", "Swap", "MarshalJSON",
	"UnmarshalJSON", "ServeHTTP"}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

func roomOf(folder string) (room, bool) {
	var best room
	for _, r := range rooms {
		if (folder == r.path || strings.HasPrefix(folder, r.path+"/")) && len(r.path) > len(best.path) {
			best = r
		}
	}
	return best, best.path != ""
}

// impure tells whether an import is one that pure rooms do without, or a part of one that is a module.
func impure(imp string) bool {
	return slices.ContainsFunc(impureImports, func(x string) bool {
		return imp == x || strings.Contains(x, ".") && strings.HasPrefix(imp, x+"/")
	})
}

// goFiles lists the Go files of the main module, relative to its root.
func goFiles(t *testing.T) []string {
	t.Helper()
	return sources(t, false)
}

// sources lists the Go files below the root, relative to it, those of nested modules only if asked for.
func sources(t *testing.T, nested bool) []string {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "bin" ||
				name == "data") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root && !nested {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse(t *testing.T, file string, mode parser.Mode) *ast.File {
	t.Helper()
	return parseInto(t, token.NewFileSet(), file, mode)
}

func parseInto(t *testing.T, tokens *token.FileSet, file string, mode parser.Mode) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(tokens, filepath.Join("..", "..", file), nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	f := parse(t, file, parser.ImportsOnly)
	out := make([]string, 0, len(f.Imports))
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}
