package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// atRest is what questions are told where no replay is running: nothing is under way.
type atRest struct{}

// Lag returns no backlog.
func (atRest) Lag() verdict.Backlog { return verdict.Backlog{} }

// WaitDrained returns at once.
func (atRest) WaitDrained(context.Context) error { return nil }

// storedStates has the states of clusters as stored, each loaded when it is asked for.
type storedStates struct {
	atRest
	store *storage.Store

	mu     sync.Mutex
	loaded map[string]*state.State // nil: nothing is known
}

// Clusters returns, sorted, the clusters of which anything is known.
func (s *storedStates) Clusters(ctx context.Context) ([]string, error) {
	return s.store.PolicyClusters(ctx)
}

// State returns what is known of a cluster, nil if nothing is: everything that is stored.
func (s *storedStates) State(ctx context.Context, cluster string, _ time.Time) (*state.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.loaded[cluster]; ok {
		return st, nil
	}
	var st *state.State
	err := s.store.LoadPolicy(ctx, []string{cluster}, func(v verdict.PolicyVersion) error {
		if st == nil {
			st = state.New(cluster)
		}
		if o, err := observe.Decode(v.Observation); err == nil { // as in the runner: what else it said stays unknown
			st.Apply(o)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the policy of cluster %s: %w", cluster, err)
	}
	if s.loaded == nil {
		s.loaded = map[string]*state.State{}
	}
	s.loaded[cluster] = st
	return st, nil
}

// logState has what is known of the cluster of a log.
type logState struct {
	atRest
	cluster string
	state   *state.State
}

// Clusters returns the cluster.
func (s logState) Clusters(context.Context) ([]string, error) { return []string{s.cluster}, nil }

// State returns what is known of the cluster.
func (s logState) State(_ context.Context, cluster string, _ time.Time) (*state.State, error) {
	if cluster != s.cluster {
		return nil, nil //nolint:nilnil // nothing is known of it
	}
	return s.state, nil
}
