package registry

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
)

// TestUnknowns tells how often the state says that it does not know, by level and kind, and bounds it
// where every body was recorded and the log goes back to the cluster's making: what is
// unknown there is unknown without need, but where requests overlap, an answer is not the
// object, or finalizers hold a pod or node.
func TestUnknowns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := map[level]map[string]counts{}
		for _, p := range playAll(t, 5000, 2000) {
			if !p.sequence.Born || slices.ContainsFunc(p.sequence.Steps, func(s step) bool { return s.Cut || s.Overlap }) {
				continue
			}
			byKind := table[p.sequence.Level]
			if byKind == nil {
				byKind = map[string]counts{}
				table[p.sequence.Level] = byKind
			}
			for kind, c := range compare(p.history, p.sequence, nil).counts {
				byKind[kind] = byKind[kind].plus(c)
			}
		}
		for _, l := range []level{levelRequestResponse, levelShipped, levelRequest, levelMetadata} {
			for _, kind := range slices.Sorted(maps.Keys(table[l])) {
				c := table[l][kind]
				percent := 100 * float64(c.Unknown) / float64(c.Answers)
				t.Logf("%-16s %-50s %6d answers, %5.1f %% unknown", l, kind, c.Answers, percent)
				if bound := needless(kind); l == levelRequestResponse && percent > bound {
					t.Errorf("%s: %.1f %% unknown though every body was recorded, want at most %.0f %%", kind, percent, bound)
				}
			}
		}
	})
}

// needless bounds the answers, in percent, that may be unknown of a kind when every body is recorded.
func needless(kind string) float64 {
	switch kind {
	case "pods", "nodes", "paths to nodes":
		return 20
	}
	return 15
}
