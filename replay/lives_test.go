package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/test/recording"
	"github.com/retrial-io/retrial/verdict"
)

// lives says how many requests there are in each recording in testdata/lives, and how many of
// them may be left open: writes reach the apiserver's caches at a moment that no log tells.
var lives = map[string]struct{ requests, ambiguous, indeterminate int }{
	"1.28.15":            {6119, 4, 0},
	"1.33.13":            {5835, 3, 0},
	"1.36.3":             {5880, 7, 0},
	"1.36.3-controllers": {5886, 4, 0},
	"1.37.2":             {5811, 13, 0},
	"1.37.2-suite":       {5755, 0, 0},
}

// TestLives judges clusters with real controllers and kubelets from their birth on, while
// namespaces with running pods come and go, or Kubernetes' own end-to-end suite runs
// (test/apiserver/life). No decision differs.
func TestLives(t *testing.T) {
	const folder = "testdata/lives"
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		if _, known := lives[f.Name()]; f.IsDir() && !known {
			t.Errorf("nothing is said of %s", f.Name())
		}
	}
	for name, want := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var open []string
			n := map[verdict.Outcome]int{}
			requests := map[string]bool{}
			err := recording.Verdicts(t.Context(), filepath.Join(folder, name), func(e *event.Event, v *verdict.Verdict) error {
				if requests[e.AuditID] {
					t.Errorf("%s was judged twice", e.AuditID)
				}
				requests[e.AuditID] = true
				n[v.Outcome]++
				if v.Outcome != verdict.OutcomeMatch && v.Outcome != verdict.OutcomeNotJudged {
					open = append(open, fmt.Sprintf("%s %s: %s %s by %s: recorded %s %q, replayed %s: %s", v.Outcome, e.AuditID, e.Verb,
						e.RequestURI, e.User.Username, v.Recorded, v.RecordedReason, v.Replayed, v.Cause))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(requests) != want.requests || n[verdict.OutcomeDrift] > 0 || n[verdict.OutcomeAmbiguous] > want.ambiguous ||
				n[verdict.OutcomeIndeterminate] > want.indeterminate {
				t.Errorf("%d requests: %v, want %+v and no drift\n%s", len(requests), n, want, strings.Join(open, "\n"))
			}
		})
	}
}
