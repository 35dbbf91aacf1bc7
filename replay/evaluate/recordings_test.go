package evaluate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/retrial-io/retrial/internal/testfile"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/config"
)

// recordings are of apiservers in other configurations than the bundled recording's: see
// replay/testdata/recordings/README.md.
const recordings = "../testdata/recordings"

// meant is a line of scenarios.jsonl: a request with what it was made to show.
type meant struct {
	AuditID, Scenario, ID, Method, Path string
	Code                                int
	Expect, Authorizer, Authenticator   string
	Findings                            []string
	Server                              string
}

func scenarios(t testing.TB, dir string) map[string]meant {
	t.Helper()
	all := map[string]meant{}
	for line := range bytes.Lines(testfile.Read(t, filepath.Join(dir, "scenarios.jsonl"))) {
		var m meant
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		all[m.AuditID] = m
	}
	return all
}

// judgeRecording judges a recording with its configuration and state.
func judgeRecording(t testing.TB, dir string) (*Summary, []judgement) {
	t.Helper()
	history, report, err := config.ReadHistory(os.DirFS(filepath.Join(dir, "config")))
	if err != nil {
		t.Fatal(err)
	}
	_ = report
	o := Options{
		States: []Input{memoryInput("state.json", testfile.Read(t, filepath.Join(dir, "state.json")))},
		Events: []Input{memoryInput("audit.jsonl", testfile.Read(t, filepath.Join(dir, "audit.jsonl")))},
		Engine: replay.New(replay.Config{Version: "test", Apiserver: func(_, server string) *config.History { return history.Server(server) }}),
	}
	return run(t, o)
}

func TestRecordings(t *testing.T) {
	all, err := os.ReadDir(recordings)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if !e.IsDir() {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			dir := filepath.Join(recordings, e.Name())
			sum, judged := judgeRecording(t, dir)
			want := scenarios(t, dir)
			counts := map[string]int{}
			for _, j := range judged {
				v := j.verdict
				counts[v.Outcome.String()+"/"+v.Class]++
				m := want[j.event.AuditID]
				switch v.Outcome {
				case replay.OutcomeMatch, replay.OutcomeNotJudged:
				default:
					t.Errorf("%s %s: %s: %s %s %q %s %s: recorded %s %q, replayed %s by %q: %s", v.Outcome, v.Class, m.Scenario, j.event.AuditID, m.ID, j.event.EffectiveUser().Username, j.event.Verb, j.event.RequestURI,
						v.Recorded, v.RecordedReason, v.Replayed, v.Authorizer, v.Cause)
				}
			}
			t.Logf("%v %+v", counts, sum.Verdicts)
		})
	}
}
