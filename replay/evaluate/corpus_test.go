package evaluate

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
)

// corpus returns the directory of the full recording these extra tests run on.
func corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("RETRIAL_CORPUS")
	if dir == "" {
		t.Skip("RETRIAL_CORPUS is not set: it names the directory of an unpacked recording (audit.jsonl, state-start.json, scenarios.jsonl)")
	}
	return dir
}

func fileInput(path string) Input {
	return Input{Name: filepath.Base(path), Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// judgement is what a run says of one request.
type judgement struct {
	event   *event.Event
	verdict *replay.Verdict
}

func run(t testing.TB, o Options) (*Summary, []judgement) {
	t.Helper()
	if o.Engine == nil {
		o.Engine = replay.New(replay.Config{Version: "test"})
	}
	var out []judgement
	o.Sink = func(e *event.Event, v *replay.Verdict) error {
		out = append(out, judgement{e, v})
		return nil
	}
	sum, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sum, out
}

// scenarios maps audit IDs to the scenario that sent the request.
func scenarios(t testing.TB, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s struct{ AuditID, Scenario string }
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		out[s.AuditID] = s.Scenario
	}
	return out
}

func TestCorpus(t *testing.T) {
	dir := corpus(t)
	sum, all := run(t, Options{
		States: []Input{fileInput(filepath.Join(dir, "state-start.json"))},
		Events: []Input{fileInput(filepath.Join(dir, "audit.jsonl"))},
	})
	text, _ := json.MarshalIndent(sum, "", " ")
	t.Logf("%s", text)
	scenario := scenarios(t, filepath.Join(dir, "scenarios.jsonl"))

	var drift, graph, other int
	for _, j := range all {
		v := j.verdict
		if v.Outcome == replay.OutcomeMatch || v.Outcome == replay.OutcomeNotJudged {
			continue
		}
		s := scenario[j.event.AuditID]
		if v.Class != replay.ClassNodeGraph {
			t.Logf("%s %s %s %q %s %s recorded %s replayed %s: %s", v.Outcome, v.Class, s, j.event.EffectiveUser().Username, j.event.Verb, j.event.RequestURI, v.Recorded, v.Replayed, v.Cause)
		}
		switch {
		case v.Outcome == replay.OutcomeDrift && !strings.HasPrefix(s, "point-in-time"):
			drift++
		case v.Class == replay.ClassNodeGraph:
			graph++
		case v.Outcome == replay.OutcomeIndeterminate:
			other++
		}
		if v.Cause == "" {
			t.Errorf("%s %s: no cause", j.event.AuditID, v.Outcome)
		}
	}
	t.Logf("drift outside the racing scenario %d, indeterminate %d (node graph %d more)", drift, other, graph)
	if drift > 3 {
		t.Errorf("%d requests drift outside the racing scenario, want at most 3", drift)
	}
	if limit := sum.Requests / 1000; sum.Verdicts.Ambiguous > limit {
		t.Errorf("%d ambiguous, want at most %d", sum.Verdicts.Ambiguous, limit)
	}
	if limit := int(sum.Requests / 50); other > limit {
		t.Errorf("%d indeterminate, want at most %d", other, limit)
	}
}
