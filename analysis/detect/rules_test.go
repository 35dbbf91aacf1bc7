package detect

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// testCase is one line of testdata/rules/<rule>.jsonl: requests as recorded (redacted), with the
// verdicts of the replay they were cut from. Source says what was altered by hand.
type testCase struct {
	Name     string    `json:"name"`
	Fires    bool      `json:"fires"`
	Source   string    `json:"source"`
	Since    time.Time `json:"since"`
	Requests []request `json:"requests"`
}

type request struct {
	Event   json.RawMessage  `json:"event"`
	Verdict *verdict.Verdict `json:"verdict"`
}

func (r request) decode(t testing.TB) *event.Event {
	t.Helper()
	e, err := event.Decode(r.Event)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func readCases(t testing.TB, file string) []testCase {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var out []testCase
	for lines.Scan() {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func builtinSet(t testing.TB) *Set {
	t.Helper()
	set, err := Load(BuiltinFiles())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestEveryRule runs each rule on what it must find and on the counterpart that it must not, with
// all other rules loaded: none may fail on an event that is not meant for it.
func TestEveryRule(t *testing.T) {
	set := builtinSet(t)
	for _, r := range set.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			fires, quiet := false, false
			for _, c := range readCases(t, filepath.Join("testdata", "rules", r.ID+".jsonl")) {
				if c.Source != "recorded" && !strings.HasPrefix(c.Source, "hand-made: ") {
					t.Errorf("%s: source %q is neither recorded nor hand-made", c.Name, c.Source)
				}
				d := New(set, Config{Since: c.Since})
				for _, q := range c.Requests {
					d.Observe("prod", q.decode(t), q.Verdict)
				}
				found := slices.ContainsFunc(d.Flush(), func(f Finding) bool { return f.Rule == r.ID })
				if found != c.Fires {
					t.Errorf("%s: fires = %v, want %v", c.Name, found, c.Fires)
				}
				if e := d.Stats().Errors; len(e) > 0 {
					t.Errorf("%s: expressions failed: %v %v", c.Name, e, d.Stats().FirstError)
				}
				fires, quiet = fires || c.Fires, quiet || !c.Fires
			}
			if !fires || !quiet {
				t.Errorf("has a firing case: %v, a quiet one: %v; both are needed", fires, quiet)
			}
		})
	}
}

// TestNoOrphanCases finds cases of rules that no longer exist.
func TestNoOrphanCases(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rules := builtinSet(t).Rules()
	if len(files) != len(rules) {
		t.Errorf("%d files of cases for %d rules", len(files), len(rules))
	}
}

// allRequests returns the requests of all cases.
func allRequests(t testing.TB) []request {
	files, err := filepath.Glob("testdata/rules/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []request
	for _, f := range files {
		for _, c := range readCases(t, f) {
			out = append(out, c.Requests...)
		}
	}
	return out
}

// TestHostileEvents passes every recorded event through all rules without its verdict, and
// with bodies of other shapes than rules expect: no expression may fail on them.
func TestHostileEvents(t *testing.T) {
	d := New(builtinSet(t), Config{})
	for _, q := range allRequests(t) {
		d.Observe("prod", q.decode(t), nil)
		for _, body := range []string{
			`null`, `[]`, `"x"`, `7`, `{"spec":null,"rules":null,"subjects":null,"metadata":null,"roleRef":null}`,
			`{"spec":{"containers":null,"volumes":null,"template":{"spec":null}},"subjects":[null],"rules":[null,{"verbs":null}]}`,
			`[{"op":"add","path":"/x","value":1}]`,
		} {
			e := q.decode(t)
			e.RequestObject, e.ResponseObject = []byte(body), []byte(body)
			d.Observe("prod", e, q.Verdict)
		}
	}
	if e := d.Stats().Errors; len(e) > 0 {
		t.Errorf("expressions failed: %v %v", e, d.Stats().FirstError)
	}
}

func BenchmarkObserve(b *testing.B) {
	set := builtinSet(b)
	var events []*event.Event
	requests := allRequests(b)
	for _, q := range requests {
		events = append(events, q.decode(b))
	}
	d := New(set, Config{MaxPanes: 100_000})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Observe("prod", events[i%len(events)], requests[i%len(events)].Verdict)
	}
}

// TestReads: the variables that a rule names are read for it.
func TestReads(t *testing.T) {
	for _, p := range builtinSet(t).rules {
		text := p.rule.Expr + "\n" + strings.Join(p.rule.GroupBy, "\n")
		for _, c := range p.rule.Counts {
			text += "\n" + c.Where + "\n" + c.Distinct
		}
		for _, v := range Variables() {
			named := regexp.MustCompile(`(^|[^.?"'\w:/])` + regexp.QuoteMeta(v.Name) + `($|[^"'\w:/])`).MatchString(text)
			if named && !slices.Contains(p.reads, v.Name) {
				t.Errorf("%s: %s is not read", p.rule.ID, v.Name)
			}
		}
	}
}

// A finding says who got what by which object, and is about whom the rule is about.
func TestWordsOfFindings(t *testing.T) {
	for rule, want := range map[string]struct{ test, subject, text string }{
		"cluster-admin-binding": {"kubeadm's administrators and one more", "kubernetes-super-admin",
			"; it gives cluster-admin to Group kubeadm:cluster-admins, User eve by ClusterRoleBinding kubeadm:cluster-admins"},
		"anonymous-granted":      {"", "", "; it gives "},
		"dangerous-role":         {"", "", "; it writes "},
		"deleted-account-active": {"", "system:serviceaccount:", "; the account went on making requests"},
	} {
		cases := readCases(t, "testdata/rules/"+rule+".jsonl")
		i := slices.IndexFunc(cases, func(c testCase) bool { return c.Fires && (want.test == "" || c.Name == want.test) })
		if i < 0 {
			t.Fatalf("%s: no case %q", rule, want.test)
		}
		d := New(builtinSet(t).only(rule), Config{Since: cases[i].Since})
		for _, q := range cases[i].Requests {
			d.Observe("prod", q.decode(t), q.Verdict)
		}
		found := d.Flush()
		if len(found) != 1 || !strings.Contains(found[0].Text, want.text) || !strings.HasPrefix(found[0].Subject, want.subject) {
			t.Errorf("%s: %+v, want about %q: %q", rule, found, want.subject, want.text)
		}
		if s := d.Stats(); len(s.Errors) > 0 {
			t.Errorf("%s: %v", rule, s.FirstError)
		}
	}
}

// A request may have been executed although its answer is lost: it is found, and the finding says
// so.
func TestRulesOfLostAnswers(t *testing.T) {
	for _, rule := range []string{"cluster-admin-binding", "anonymous-granted", "dangerous-role", "token-requested",
		"webhook-configuration", "system-role-modified", "admission-policy"} {
		cases := readCases(t, "testdata/rules/"+rule+".jsonl")
		q := cases[slices.IndexFunc(cases, func(c testCase) bool { return c.Fires })].Requests[0]
		for status, fires := range map[string]bool{
			`{"metadata":{},"status":"Failure","reason":"Timeout","message":"Timeout: request did not complete within requested timeout ` +
				`- context deadline exceeded","code":504}`: true,
			`{"metadata":{},"status":"Failure","message":"etcdserver: request timed out","code":500}`: true,
			`null`: true,
			`{"metadata":{},"status":"Failure","message":"Internal error occurred: failed calling webhook \"a\": x","code":500}`: false,
			`{"metadata":{},"status":"Failure","reason":"AlreadyExists","message":"x","code":409}`:                               false,
		} {
			var body map[string]any
			if err := json.Unmarshal(q.Event, &body); err != nil {
				t.Fatal(err)
			}
			body["responseStatus"], body["responseObject"] = json.RawMessage(status), nil
			lost := q
			lost.Event, _ = json.Marshal(body)
			d := New(builtinSet(t).only(rule), Config{})
			d.Observe("prod", lost.decode(t), lost.Verdict)
			found := d.Flush()
			if len(found) > 0 != fires || fires && !strings.Contains(found[0].Text, "; its answer was lost, and it may have been done") {
				t.Errorf("%s, answered %s: %+v", rule, status, found)
			}
		}
	}
}

// A patch does not say which role its binding names: the replica does, or the finding says that it is not
// known.
func TestWordsOfPatches(t *testing.T) {
	want := map[string]string{
		"a patch whose answer was lost": "it gives cluster-admin to User mallory by ClusterRoleBinding ops; " +
			"its answer was lost, and it may have been done",
		"operations of a patch without an answer": "it gives cluster-admin to User mallory by ClusterRoleBinding ops; " +
			"its answer was lost, and it may have been done",
		"a patch whose answer was lost, of a binding nobody knows": "it gives a role that is not recorded to User mallory by " +
			"ClusterRoleBinding ops; its answer was lost, and it may have been done",
		"a patch at level Metadata": "it gives cluster-admin to no recorded subject by ClusterRoleBinding ops",
	}
	for _, c := range readCases(t, "testdata/rules/cluster-admin-binding.jsonl") {
		text, ok := want[c.Name]
		if !ok {
			continue
		}
		delete(want, c.Name)
		d := New(builtinSet(t).only("cluster-admin-binding"), Config{})
		d.Observe("prod", c.Requests[0].decode(t), c.Requests[0].Verdict)
		if found := d.Flush(); len(found) != 1 || !strings.HasSuffix(found[0].Text, "; "+text) {
			t.Errorf("%s: %+v, want %q", c.Name, found, text)
		}
	}
	if len(want) > 0 {
		t.Errorf("no cases %v", want)
	}
}

// A binding of thousands is described by its first subjects, within the cost limit of an
// expression.
func TestWordsOfManySubjects(t *testing.T) {
	q := readCases(t, "testdata/rules/cluster-admin-binding.jsonl")[0].Requests[0]
	var body map[string]any
	if err := json.Unmarshal(q.Event, &body); err != nil {
		t.Fatal(err)
	}
	subjects := make([]any, 10_000)
	for i := range subjects {
		subjects[i] = map[string]any{"kind": "User", "name": "u" + strings.Repeat("x", i%9)}
	}
	body["responseObject"] = map[string]any{"kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "b"}, "subjects": subjects,
		"roleRef": map[string]any{"name": "cluster-admin"}}
	q.Event, _ = json.Marshal(body)
	d := New(builtinSet(t).only("cluster-admin-binding"), Config{})
	d.Observe("prod", q.decode(t), q.Verdict)
	if found := d.Flush(); len(found) != 1 || !strings.Contains(found[0].Text, "User uxxxx and 9995 more by ") ||
		len(d.Stats().Errors) > 0 {
		t.Errorf("%+v, %v", found, d.Stats().FirstError)
	}
}

// TestNobodyHidesBySize: a binding that names a subject of a rule behind tens of thousands of others,
// or whose subjects are too large to be recorded, is found, and its description is short.
func TestNobodyHidesBySize(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, tt := range map[string]struct {
		rule, role, last string
		many             int
		cut              bool
		says             string
	}{
		"anonymous behind others": {"anonymous-granted", "view", "system:unauthenticated", 50_000, false,
			"; it is too large to be checked"},
		"masters behind others": {"cluster-admin-binding", "view", "system:masters", 50_000, false, "; it is too large to be checked"},
		"cut out": {"cluster-admin-binding", "cluster-admin", "", 0, true,
			"; its event was too large and was recorded in part"},
		"long names": {"cluster-admin-binding", "cluster-admin", long, 0, false, "… by ClusterRoleBinding b"},
	} {
		t.Run(name, func(t *testing.T) {
			q := readCases(t, "testdata/rules/cluster-admin-binding.jsonl")[0].Requests[0]
			e := q.decode(t)
			subjects := make([]any, 0, tt.many+1)
			for range tt.many {
				subjects = append(subjects, map[string]any{"kind": "User", "name": "u"})
			}
			if tt.last != "" {
				subjects = append(subjects, map[string]any{"kind": "Group", "name": tt.last})
			}
			object := map[string]any{"kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "b"}, "subjects": subjects,
				"roleRef": map[string]any{"name": tt.role}}
			if tt.cut {
				object["cut"] = true
				event.StripBodies(e, 1<<24, "digest")
			}
			e.RequestObject = nil
			e.ResponseObject, _ = json.Marshal(object)
			set := builtinSet(t).only(tt.rule)
			d := New(set, Config{})
			d.Observe("prod", e, q.Verdict)
			found := d.Flush()
			if len(found) != 1 || !strings.Contains(found[0].Text, tt.says) || strings.Contains(found[0].Text, long[:maxBrief+1]) {
				t.Errorf("%+v, %v", found, d.Stats().FirstError)
			}
			if marks := NewTagger(set, nil).Tag("prod", e, q.Verdict); len(marks) != 1 {
				t.Errorf("marks %v", marks)
			}
		})
	}
}
