package evaluate

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/verdict"
)

// corpus returns the directory of recordings that are not part of the repository.
func corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("RETRIAL_CORPUS")
	if dir == "" {
		t.Skip("RETRIAL_CORPUS is not set: it names a directory with a further recording (full-requestresponse.jsonl)")
	}
	return dir
}

func fileInput(path string) Input {
	return Input{Name: filepath.Base(path), Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// judgement is what a run says of one request.
type judgement struct {
	event   *event.Event
	verdict *verdict.Verdict
}

func run(t testing.TB, o Options) (*Summary, []judgement) {
	t.Helper()
	if o.Engine == nil {
		o.Engine = replay.New(replay.Config{Version: "test"})
	}
	var out []judgement
	o.Sink = func(e *event.Event, v *verdict.Verdict) error {
		out = append(out, judgement{e, v})
		return nil
	}
	sum, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sum, out
}

// TestCorpus judges the whole bundled recording. Its driver races on purpose with changes of
// policy; nothing but those races may be open.
func TestCorpus(t *testing.T) {
	sum, all := run(t, full(t))
	text, _ := json.MarshalIndent(sum, "", " ")
	t.Logf("%s", text)

	var drift, graph, other int
	for _, j := range all {
		v := j.verdict
		if v.Outcome == verdict.OutcomeMatch || v.Outcome == verdict.OutcomeNotJudged {
			continue
		}
		if v.Class != verdict.ClassNodeGraph {
			t.Logf("%s %s %q %s %s recorded %s replayed %s: %s", v.Outcome, v.Class, j.event.EffectiveUser().Username, j.event.Verb,
				j.event.RequestURI, v.Recorded, v.Replayed, v.Cause)
		}
		switch {
		case v.Outcome == verdict.OutcomeDrift:
			drift++
		case v.Class == verdict.ClassNodeGraph:
			graph++
		case v.Outcome == verdict.OutcomeIndeterminate:
			other++
		}
		if v.Cause == "" {
			t.Errorf("%s %s: no cause", j.event.AuditID, v.Outcome)
		}
	}
	t.Logf("drift %d, indeterminate %d (node graph %d more)", drift, other, graph)
	if drift > 3 {
		t.Errorf("%d requests drift, want at most 3", drift)
	}
	if limit := sum.Requests / 1000; sum.Verdicts.Ambiguous > limit {
		t.Errorf("%d ambiguous, want at most %d", sum.Verdicts.Ambiguous, limit)
	}
	if limit := int(sum.Requests / 50); other > limit {
		t.Errorf("%d indeterminate, want at most %d", other, limit)
	}
}
