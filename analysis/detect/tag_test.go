package detect

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	apirequest "github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/test/perevent"
	"github.com/retrial-io/retrial/verdict"
)

// judged is a request of the bundled recording with its verdict.
type judged struct {
	event   *event.Event
	verdict *verdict.Verdict
}

// recording returns the whole bundled recording, judged.
func recording(t testing.TB) []judged {
	t.Helper()
	all, err := recordingOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var recordingOnce = sync.OnceValues(func() ([]judged, error) {
	var out []judged
	_, err := evaluate.Run(context.Background(), evaluate.Options{
		Cluster: "sample", Engine: replay.New(replay.Config{Lag: replay.DefaultLag}),
		States: []evaluate.Input{{Name: sample.StateName, Open: sample.OpenState}},
		Events: []evaluate.Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
		Sink: func(e *event.Event, v *verdict.Verdict) error {
			// Events alias the buffers they were read into.
			own, err := event.Decode(bytes.Clone(event.AppendJSON(nil, e)))
			out = append(out, judged{own, v})
			return err
		},
	})
	return out, err
})

// TestTagAgreesWithDetector compares the marks of every recorded request with what a detector
// selects and groups.
func TestTagAgreesWithDetector(t *testing.T) {
	set := builtinSet(t)
	d := New(set, Config{})
	tagger := NewTagger(set, func(rule string, err error) { t.Errorf("%s: %v", rule, err) })
	hits := map[string]int64{}
	for _, q := range recording(t) {
		d.Observe("sample", q.event, q.verdict)
		marks := tagger.Tag("sample", q.event, q.verdict)
		if !slices.IsSortedFunc(marks, func(a, b verdict.Mark) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatalf("marks %v are not in order", marks)
		}
		for _, m := range marks {
			rule, _, _ := strings.Cut(m.Name, "/")
			hits[rule]++
			if rule == "audit-id-reuse" && m.Key != xxhash.Sum64String(q.event.AuditID) {
				t.Fatalf("key %x of audit ID %s: the store leaves out what is its hash", m.Key, q.event.AuditID)
			}
		}
	}
	if len(hits) < 20 {
		t.Errorf("%d rules selected anything", len(hits))
	}
	for _, r := range set.Rules() {
		if hits[r.ID] != d.Stats().Hits[r.ID] {
			t.Errorf("%s: %d marks, a detector selects %d requests", r.ID, hits[r.ID], d.Stats().Hits[r.ID])
		}
	}
}

// TestGuards runs every expression of every rule with its guard and without: the guard must agree
// with the interpreter.
func TestGuards(t *testing.T) {
	set := builtinSet(t)
	decided, asked := 0, 0
	in := input{}
	check := func(p *program, e *expr) {
		if e == nil {
			return
		}
		bare := expr{prog: e.prog}
		asked++
		if e.text != nil {
			got, ok := e.text(&in)
			if want, err := bare.string(&in); ok && (err != nil || got != want) {
				t.Fatalf("%s: %q without the interpreter, with it %q, %v", p.rule.ID, got, want, err)
			}
		}
		if e.guard != nil {
			if k := e.guard(&in); k != unknown {
				decided++
				if want, err := bare.bool(&in); err != nil || want != (k == isTrue) {
					t.Fatalf("%s: a guard knows %v, the interpreter says %v, %v", p.rule.ID, k == isTrue, want, err)
				}
			}
		}
	}
	all := recording(t)
	for i := 0; i < len(all); i += 11 {
		in.reset("sample", all[i].event, all[i].verdict)
		for _, p := range set.rules {
			check(p, p.expr)
			for _, g := range p.group {
				check(p, g)
			}
			for _, c := range p.counts {
				check(p, c.where)
			}
		}
	}
	if decided < asked/8 {
		t.Errorf("guards decided %d of %d", decided, asked)
	}
}

// TestTagFails reports an expression that fails, and marks nothing then.
func TestTagFails(t *testing.T) {
	set := mustLoad(t, strings.Replace(goodRule, "kind: event", "kind: event\nexpr: 'requestPatch[0] == 1'", 1))
	failed := 0
	tagger := NewTagger(set, func(rule string, err error) {
		if rule == "pods-read" && err != nil {
			failed++
		}
	})
	if marks := tagger.Tag("prod", podGet("bob", "1", 0), nil); marks != nil || failed != 1 {
		t.Errorf("marks %v, told of %d failures", marks, failed)
	}
	NewTagger(set, nil).Tag("prod", podGet("bob", "1", 0), nil)
}

// BenchmarkTag measures what marking costs the replay, per request of the recording.
func BenchmarkTag(b *testing.B) {
	all := recording(b)
	tagger := NewTagger(builtinSet(b), nil)
	m := perevent.Start(b)
	for i := 0; b.Loop(); i++ {
		q := all[i%len(all)]
		tagger.Tag("sample", q.event, q.verdict)
	}
	m.Report(b.N, 0)
}

// TestUnservedResourcesAreNoKeys: who holds * is allowed to ask for resources that do not exist, a new one with each
// request. A resource that is served, and whose object is not there, is a key as any.
func TestUnservedResourcesAreNoKeys(t *testing.T) {
	tagger := NewTagger(builtinSet(t), func(rule string, err error) { t.Errorf("%s: %v", rule, err) })
	for _, tc := range []struct {
		uri, message string
		code         int32
		marked       bool
	}{
		{"/apis/x1.example.com/v1/things", "", 404, false},
		{"/apis/apps/v1/namespaces/n/thingx", "the server could not find the requested resource", 404, false},
		{"/api/v1/namespaces/n/pods/x/thing", "", 404, false},
		{"/api/v1/nodex/n/proxy/", "", 404, false},
		{"/api/v1/namespaces/n/pods/x", `pods "x" not found`, 404, true},
		{"/api/v1/namespaces/n/services/x/proxy/path", "", 404, true}, // the answer of who is behind it
		{"/apis/apps/v1/namespaces/n/deployments", "", 200, true},
		{"/apis/apps/v1/namespaces/n/deployments", "", 504, true},
	} {
		e := podGet("mallory", "x", 0)
		e.RequestURI, e.ResponseStatus = tc.uri, &event.Status{Code: tc.code, Message: tc.message}
		v := &verdict.Verdict{Recorded: verdict.DecisionAllow}
		v.Attributes, _ = apirequest.Of(e.Verb, e.RequestURI)
		marks := tagger.Tag("c", e, v)
		got := slices.ContainsFunc(marks, func(m verdict.Mark) bool { return m.Name == "first-seen-access"+verdict.MarkFirst })
		if got != tc.marked {
			t.Errorf("%s, %d %q: marked %v, want %v", tc.uri, tc.code, tc.message, got, tc.marked)
		}
	}
}
