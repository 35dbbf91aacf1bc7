package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// states returns what everything acknowledged tells of each cluster.
func (w *simWorld) states() map[string]*state.State {
	states := map[string]*state.State{}
	for _, p := range w.log.partitions(stream.TopicPolicy) {
		for _, rec := range w.log.logs[place{stream.TopicPolicy, p}] {
			if states[rec.Cluster] == nil {
				states[rec.Cluster] = state.New(rec.Cluster)
			}
			if obs, err := observationsOf(new(event.Decoder), &rec); err == nil {
				states[rec.Cluster].Apply(obs...)
			}
		}
	}
	return states
}

// ask asks a process about old moments while it works. The function it returns asks once more, when all is known, and compares the answers
// with what everything tells; it returns what is wrong.
func (w *simWorld) ask(r *Runner) func() []string {
	if !w.plan.old {
		return func() []string { return nil }
	}
	rng := rand.New(rand.NewPCG(w.plan.seed, 5))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan []string)
	question := func() (cluster string, at time.Time) {
		return []string{"east", "west"}[rng.IntN(2)], simBase.Add(-time.Duration(rng.Int64N(int64(22 * 24 * time.Hour))))
	}
	go func() {
		var wrong []string
		for ctx.Err() == nil {
			cluster, at := question()
			st, err := r.State(ctx, cluster, at)
			if ctx.Err() == nil && err == nil && st != nil && st.Horizon().After(at) {
				wrong = append(wrong, fmt.Sprintf("asked about %s at %s, a state has forgotten what was before %s", cluster, at,
					st.Horizon()))
			}
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		}
		ended <- wrong
	}()
	return func() []string {
		cancel()
		wrong := <-ended
		all := w.states()
		for range 20 {
			cluster, at := question()
			st, err := r.State(context.Background(), cluster, at)
			if err != nil {
				return append(wrong, err.Error())
			}
			if got, want := rolesAt(st, at), rolesAt(all[cluster], at); !slices.Equal(got, want) {
				wrong = append(wrong, fmt.Sprintf("%s at %s has %s, want %s", cluster, at, got, want))
			}
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		}
		return wrong
	}
}

func rolesAt(st *state.State, at time.Time) (out []string) {
	if st == nil {
		st = state.New("")
	}
	v := st.RBAC(at)
	v.RBAC.All(func(k rbacindex.Key, _ any) bool {
		out = append(out, k.String())
		return true
	})
	for _, k := range v.UnknownKinds {
		out = append(out, fmt.Sprint("unknown kind ", k))
	}
	for _, k := range v.Unknown {
		out = append(out, fmt.Sprint("unknown ", k))
	}
	slices.Sort(out)
	return out
}
