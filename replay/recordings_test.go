package replay_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/internal/recording"
)

// outcomes of the recordings in testdata/recordings, which scripts/record.sh makes.
var outcomes = map[string]map[string]int{}

// TestRecordings judges real apiservers in other configurations than the usual one: what was
// decided, by whom, and who it was. Nothing may drift; nothing is left open but a webhook's
// own answers.
func TestRecordings(t *testing.T) {
	const root = "testdata/recordings"
	folders, err := os.ReadDir(root)
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
			result, err := recording.Judge(t.Context(), filepath.Join(root, f.Name()))
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
