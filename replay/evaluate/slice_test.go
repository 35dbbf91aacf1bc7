package evaluate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/test/testfile"
	"github.com/retrial-io/retrial/verdict"
)

// memoryInput returns an input that is read from memory.
func memoryInput(name string, content []byte) Input {
	return Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

func slice(t testing.TB) Options {
	t.Helper()
	return Options{
		States: []Input{memoryInput("state.json", testfile.Read(t, "testdata/state.json.zst"))},
		Events: []Input{memoryInput("audit.jsonl", testfile.Read(t, "testdata/audit.jsonl.zst"))},
	}
}

// full returns the whole bundled recording.
func full(t testing.TB) Options {
	t.Helper()
	if testing.Short() {
		t.Skip("the whole recording takes its time; the slice runs with -short")
	}
	return Options{
		States: []Input{{Name: sample.StateName, Open: sample.OpenState}},
		Events: []Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
	}
}

func TestSlice(t *testing.T) {
	sum, all := run(t, slice(t))
	if int(sum.Requests) != len(all) || sum.Malformed != 0 || sum.Duplicates != 0 || sum.PolicyWritesUnreadable != 0 {
		t.Errorf("requests %d, verdicts %d, malformed %d, duplicates %d, unreadable %d", sum.Requests, len(all), sum.Malformed,
			sum.Duplicates, sum.PolicyWritesUnreadable)
	}
	for _, j := range all {
		v := j.verdict
		switch {
		case v.Outcome == verdict.OutcomeDrift, v.Outcome == verdict.OutcomeIndeterminate && v.Class != verdict.ClassNodeGraph:
			t.Errorf("%s %s %s: %s", v.Outcome, v.Class, j.event.RequestURI, v.Cause)
		case v.Outcome != verdict.OutcomeMatch && (v.Class == "" || v.Cause == "" || verdict.Explain(v.Class) == ""):
			t.Errorf("%s %s: class %q, cause %q", v.Outcome, j.event.RequestURI, v.Class, v.Cause)
		case v.Outcome == verdict.OutcomeMatch && v.Replayed != v.Recorded:
			t.Errorf("match of recorded %s and replayed %s", v.Recorded, v.Replayed)
		case slices.ContainsFunc(v.Admission.Answers, func(a verdict.AdmissionAnswer) bool { return a.Outcome == verdict.PluginDrift }):
			t.Errorf("admission drifts: %s %s: %+v", j.event.Verb, j.event.RequestURI, v.Admission.Answers)
		}
	}
	// Policy is raced on purpose three times; the rest are kubelets that were quicker than the graph.
	if sum.Verdicts.Ambiguous > 20 || sum.Verdicts.Match < 4000 || sum.Agreement == nil || *sum.Agreement != 1 {
		t.Errorf("verdicts %+v", sum.Verdicts)
	}
}

// TestWorkersDoNotMatter: any number of workers gives the same lines in the same order.
func TestWorkersDoNotMatter(t *testing.T) {
	lines := func(workers int) string {
		var out bytes.Buffer
		o := slice(t)
		o.Workers, o.Engine, o.Sink = workers, replay.New(replay.Config{}), JSONLines(&out)
		sum, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); int64(n) != sum.Requests {
			t.Errorf("%d lines for %d requests", n, sum.Requests)
		}
		return out.String()
	}
	one := lines(1)
	if many := lines(runtime.NumCPU() + 2); one != many {
		t.Error("lines differ with the number of workers")
	}
}

// blind checks that taking away what is recorded of the decision changes neither the
// replayed decision nor the grants.
func blind(t *testing.T, o Options) {
	_, want := run(t, o)
	o.Events = []Input{memoryInput("stripped", stripped(t, o.Events[0]))}
	sum, got := run(t, o)
	if sum.Verdicts.NotJudged != sum.Requests {
		t.Errorf("%d of %d stripped requests were judged", sum.Requests-sum.Verdicts.NotJudged, sum.Requests)
	}
	if len(got) != len(want) {
		t.Fatalf("%d stripped requests, %d whole ones", len(got), len(want))
	}
	for i := range want {
		if w, g := decision(want[i].verdict), decision(got[i].verdict); w != g {
			t.Fatalf("%s %s: with the record\n%s\nwithout\n%s", want[i].event.Verb, want[i].event.RequestURI, w, g)
		}
	}
}

// decision returns everything the replica decides, as text. That an update or patch made its object, and with
// it what was there before, and what a refused impersonation was refused for, is in the response
// alone.
func decision(v *verdict.Verdict) string {
	text := fmt.Sprint(v.Replayed, v.Authorizer, v.Grants, v.Errors, v.Attributes)
	if c := v.Impersonation; c != nil && c.Recorded == verdict.DecisionAllow {
		text += fmt.Sprint(*c)
	}
	if v.Replayed == verdict.DecisionForbid {
		return text // implies nothing
	}
	for _, c := range v.Implied {
		refused := c.Check == verdict.CheckImpersonation && v.Impersonation.Recorded == verdict.DecisionForbid
		if c.Check != verdict.CheckCreateOnUpdate && !refused {
			c.Recorded = verdict.DecisionNone
			if v.Attributes.Verb == "update" || v.Attributes.Verb == "patch" {
				c.Perhaps = ""
			}
			text += fmt.Sprint(c)
		}
	}
	return text
}

// stripped takes annotations and status out of every event, in the text.
func stripped(t testing.TB, in Input) []byte {
	return rewritten(t, in, func(e *event.Event) { e.Annotations, e.ResponseStatus = nil, nil })
}

func TestBlindSlice(t *testing.T)  { blind(t, slice(t)) }
func TestBlindCorpus(t *testing.T) { blind(t, full(t)) }
