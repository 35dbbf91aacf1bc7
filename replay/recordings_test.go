package replay_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/test/recording"
)

// outcomes of the recordings in testdata/recordings, which scripts/record.sh makes.
var outcomes = map[string]map[string]int{
	"abac": {"match": 532, "not_judged/impersonation-refused": 1, "not_judged/unauthenticated": 5},
	"aggregated": {"match": 392, "not_judged/impersonation-refused": 1, "not_judged/unauthenticated": 1, "wardle:match": 72,
		"wardle:not_judged/unauthenticated": 1},
	"always-allow":          {"match": 258, "not_judged/unauthenticated": 8},
	"always-deny":           {"match": 127, "not_judged/unauthenticated": 7},
	"authentication-reload": {"match": 495, "not_judged/unauthenticated": 7},
	"identities": {"match": 828, "not_judged/impersonation-bad-request": 1, "not_judged/impersonation-refused": 5,
		"not_judged/unauthenticated": 18},
	"nodes": {"match": 237},
	"oidc": {"match": 458, "not_judged/impersonation-bad-request": 1, "not_judged/impersonation-refused": 3,
		"not_judged/unauthenticated": 26},
	"oidc-flags": {"match": 126, "not_judged/unauthenticated": 9},
	"reload":     {"indeterminate/webhook-answer": 26, "match": 549, "not_judged/authorizer-error": 2, "not_judged/unauthenticated": 10},
	"webhooks": {"indeterminate/webhook-answer": 37, "match": 447, "not_judged/authorizer-error": 4,
		"not_judged/impersonation-refused": 1, "not_judged/unauthenticated": 7},
}

const recordings = "testdata/recordings"

// TestRecordings judges real apiservers in other configurations than the usual one: what was
// decided, by whom, and who it was. Nothing may drift; nothing is left open but a webhook's
// own answers.
func TestRecordings(t *testing.T) {
	folders, err := os.ReadDir(recordings)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		names[f.Name()] = true
		t.Run(f.Name(), func(t *testing.T) {
			t.Parallel()
			result, err := recording.Judge(t.Context(), filepath.Join(recordings, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range result.Problems {
				if i == 20 {
					t.Errorf("and %d more", len(result.Problems)-i)
					break
				}
				t.Error(p)
			}
			if want := outcomes[f.Name()]; !maps.Equal(result.Outcomes, want) {
				t.Errorf("outcomes\n%q: %#v, want\n%#v", f.Name(), result.Outcomes, want)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		if !names[name] {
			t.Errorf("the recording %s is gone", name)
		}
	}
}

// TestRecordingsBlind: the replica decides without the record. Taking it away changes neither
// a decision nor a grant.
func TestRecordingsBlind(t *testing.T) {
	for name := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(recordings, name)
			want, err := recording.Decisions(t.Context(), dir, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := recording.Decisions(t.Context(), dir, true)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) || len(want) == 0 {
				t.Fatalf("%d requests without the record, %d with it", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("with the record\n%s\nwithout\n%s", want[i], got[i])
				}
			}
		})
	}
}
