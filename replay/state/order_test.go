package state_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/testfile"
)

// recorded returns everything observed of a recorded log, its snapshots included, and
// moments to ask about.
func recorded(t testing.TB, dir string) (obs []observe.Observation, times []time.Time) {
	start, end := readSnapshot(t, dir, "state-start.json"), readSnapshot(t, dir, "state-end.json")
	obs = policyWrites(t, testfile.Read(t, filepath.Join(dir, "audit.jsonl")))
	for i := 0; i < len(obs); i += 1 + len(obs)/40 {
		times = append(times, obs[i].NotBefore, obs[i].NotAfter)
	}
	slices.SortFunc(times, time.Time.Compare)
	obs = append(obs, start.Observations()...)
	return append(obs, end.Observations()...), times
}

// ask renders what a State answers at the given times.
func ask(s *state.State, times []time.Time) []string {
	var out []string
	for i, at := range times {
		for _, l := range describe(s, at) {
			out = append(out, fmt.Sprintf("%d %s", i, l))
		}
		for j, v := range s.RBACWindow(at.Add(-100*time.Millisecond), at) {
			for _, c := range v.Changed {
				out = append(out, fmt.Sprintf("%d %d %s", i, j, c))
			}
		}
		for _, ns := range []string{"sandbox", "temp-6e322", "temp-a00d6", "none"} {
			out = append(out, fmt.Sprintf("%d %s %s", i, ns, s.Namespace(ns, at, at.Add(time.Second))))
			uid, known := s.ServiceAccount(ns, "default", at)
			out = append(out, fmt.Sprintf("%d %s %s %s", i, ns, uid, known))
		}
	}
	slices.Sort(out)
	return out
}

// Whatever the order and grouping in which observations arrive, however often, and
// whatever was asked in between, the answers are the same.
func TestAnyOrder(t *testing.T) {
	for name, dir := range corpora(t) {
		t.Run(name, func(t *testing.T) {
			obs, times := recorded(t, dir)
			once := state.New("c")
			once.Apply(obs...)
			want := ask(once, times)
			if len(want) < 1000 {
				t.Fatalf("only %d answers", len(want))
			}
			seeds := 3
			for seed := range uint64(seeds) {
				rnd := rand.New(rand.NewPCG(seed, 7))
				order := slices.Concat(obs, obs[:len(obs)/10])
				// The first seed is nearly in order, as webhooks deliver; the others are not.
				if seed == 0 {
					for i := range order {
						j := min(len(order)-1, i+rnd.IntN(20))
						order[i], order[j] = order[j], order[i]
					}
				} else {
					rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
				}
				s := state.New("c")
				for i := 0; i < len(order); {
					n := min(len(order)-i, 1+rnd.IntN(8))
					s.Apply(order[i : i+n]...)
					i += n
					if rnd.IntN(8) == 0 {
						at := times[rnd.IntN(len(times))]
						s.RBAC(at)
						s.RBACWindow(at, at.Add(time.Second))
					}
				}
				if d := diff(want, ask(s, times)); d != "" {
					t.Fatalf("seed %d: answers differ:\n%s", seed, cut(d))
				}
				revision := s.Revision()
				if effects := s.Apply(order...); len(effects) != 0 || s.Revision() != revision {
					t.Fatalf("seed %d: applying everything again had %d effects, revision %d then %d", seed, len(effects), revision,
						s.Revision())
				}
			}
		})
	}
}

func cut(s string) string {
	if len(s) > 4000 {
		return s[:4000] + "…"
	}
	return s
}

// The effects of late observations cover every answer they change: outside the stretch of
// time of all effects that concern an object, the view says of it what it said before.
func TestEffectsCoverChanges(t *testing.T) {
	obs, all := recorded(t, "testdata/slice")
	var times []time.Time
	for i := 0; i < len(all); i += 5 {
		times = append(times, all[i])
	}
	rnd := rand.New(rand.NewPCG(11, 13))
	for range 12 {
		late := rnd.IntN(len(obs))
		s := state.New("c")
		s.Apply(slices.Concat(obs[:late], obs[late+1:])...)
		before := make([][]string, len(times))
		for i, at := range times {
			before[i] = describe(s, at)
		}
		effects := s.Apply(obs[late])
		for i, at := range times {
			now := describe(s, at)
			if slices.Equal(before[i], now) {
				continue
			}
			if !slices.ContainsFunc(effects, func(e state.Effect) bool {
				return !at.Before(e.From) && (e.To.IsZero() || !at.After(e.To))
			}) {
				t.Fatalf("late %s\nchanged the view at %s outside of all effects %+v:\n%s", obs[late].Append(nil), at, effects,
					cut(diff(before[i], now)))
			}
		}
	}
}
