package server

import (
	"context"
	"maps"
	"slices"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// storedStates are the states of all clusters as the store has them: what the API asks when
// no replay is running.
type storedStates map[string]*state.State

// loadStates rebuilds the states from the policy table.
func loadStates(ctx context.Context, store *storage.Store) (storedStates, error) {
	states := storedStates{}
	_, err := store.LoadPolicy(ctx, func(v verdict.PolicyVersion) error {
		o, err := observe.Decode(v.Observation)
		if err != nil {
			return nil // as in the runner: what it said stays unknown
		}
		st, ok := states[v.Cluster]
		if !ok {
			st = state.New(v.Cluster)
			states[v.Cluster] = st
		}
		st.Apply(o)
		return nil
	})
	return states, err
}

// Lag is none: nothing is under way.
func (storedStates) Lag() verdict.Backlog { return verdict.Backlog{} }

// WaitDrained returns at once.
func (storedStates) WaitDrained(context.Context) error { return nil }

// Clusters names the clusters anything is known of, sorted.
func (s storedStates) Clusters() []string { return slices.Sorted(maps.Keys(s)) }

// State returns what is known of a cluster.
func (s storedStates) State(cluster string) (*state.State, bool) {
	st, ok := s[cluster]
	return st, ok
}
