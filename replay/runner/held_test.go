package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

// heldState returns the empty state of a cluster that is held from now on.
func heldState(s *states, cluster string) *state.State {
	h := s.want([]since{{cluster: cluster}}, 0, nil)[0].of
	s.take()
	h.state = state.New(cluster)
	close(h.ready)
	return h.state
}

// slowTable is a policy table whose loads wait until they are let go on, and see what was stored when they began.
type slowTable struct {
	Store
	loads atomic.Int32
	goOn  chan struct{}

	mu       sync.Mutex
	versions []verdict.PolicyVersion
}

func (s *slowTable) SavePolicy(_ context.Context, v []verdict.PolicyVersion) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions = append(s.versions, v...)
	return nil
}

func (s *slowTable) LoadPolicy(ctx context.Context, clusters []string, visit func(verdict.PolicyVersion) error) error {
	s.loads.Add(1)
	s.mu.Lock()
	list := slices.Clone(s.versions)
	s.mu.Unlock()
	select {
	case <-s.goOn:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, v := range list {
		if slices.Contains(clusters, v.Cluster) {
			if err := visit(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// latest is asked about by questions about the newest known.
var latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// bindings are the records in which user 0 of a cluster gets role bindings b0, b1, …
func bindings(cluster string, from, to int) (records []stream.Record) {
	for i := from; i < to; i++ {
		e := workload.BindRole(fmt.Sprint("b", i), 1000+3*i, 0, 1, simBase.Add(time.Duration(i)*time.Second), false)
		rec := streamtest.PolicyEventRecord(cluster, "webhook", "", simBase, e)
		rec.Position = event.Position{Epoch: simEpoch, Offset: int64(i)}
		records = append(records, rec)
	}
	return records
}

// loaderOf returns a runner that does nothing but load states from a table.
func loaderOf(t *testing.T, store Store) *Runner {
	t.Helper()
	source := &simSource{newSimLog(simPlan{}, 1, 1), &life{world: &simWorld{}, instant: true}}
	r, err := New(Config{}, source, replay.New(replay.Config{}), store)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.loadStates(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return r
}

func (r *Runner) mustApply(t *testing.T, records []stream.Record) {
	t.Helper()
	if err := r.applyPolicy(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

// TestLoadWhilePolicyIsRead: a state holds what the reader of policy passed before it was asked for, while it was loaded and after
// that; and partitions behind the reader are corrected for all of it.
func TestLoadWhilePolicyIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &slowTable{goOn: make(chan struct{})}
		r := loaderOf(t, table)
		r.mustApply(t, bindings("c", 0, 2))
		held := make(chan error)
		go func() { held <- r.hold(t.Context(), 0, []since{{cluster: "c"}}, nil) }()
		synctest.Wait()
		r.mustApply(t, bindings("c", 2, 4))
		r.mustApply(t, bindings("other", 4, 5))
		table.goOn <- struct{}{}
		if err := <-held; err != nil {
			t.Fatal(err)
		}
		r.mustApply(t, bindings("c", 5, 6))
		for i := range 6 {
			want := state.Present
			if i == 4 {
				want = state.Unknown // another cluster's
			}
			if _, got := r.states.of("c").Version(kept.RoleBindings, "ns1", fmt.Sprint("b", i), simBase.Add(time.Minute)); got != want {
				t.Errorf("b%d is %s, want %s", i, got, want)
			}
		}
		offsets := func(from int64) (list []int64) {
			found, _, _ := r.changes.since(map[int32]int64{0: from})
			for _, c := range found {
				list = append(list, c.offset)
			}
			return list
		}
		if got := offsets(1); !slices.Equal(got, []int64{1, 2, 3, 5}) {
			t.Errorf("changes at %d", got)
		}
		// Nobody needs it any more: it is let go of after a while, and loaded again when it is wanted.
		r.states.release(0, []string{"c"})
		if n := r.states.drop(r.changes, r.rest); n != 0 {
			t.Errorf("%d states let go of at once", n)
		}
		time.Sleep(r.rest)
		if n := r.states.drop(r.changes, r.rest); n != 1 || len(offsets(0)) != 0 {
			t.Errorf("%d states let go of, changes at %d", n, offsets(0))
		}
		go func() { held <- r.hold(t.Context(), 0, []since{{cluster: "c"}}, nil) }()
		synctest.Wait()
		table.goOn <- struct{}{}
		if err := <-held; err != nil || len(offsets(0)) != 5 {
			t.Errorf("%v, changes at %d", err, offsets(0))
		}
	})
}

// TestStatesThatAreAskedFor: questions load a state once for all who ask, keep few of those that no partition needs, and are told
// that nothing is known.
func TestStatesThatAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &slowTable{goOn: make(chan struct{})}
		r := loaderOf(t, table)
		r.mustApply(t, bindings("c", 0, 1))
		answers := make(chan *state.State, 20)
		for range cap(answers) {
			go func() {
				st, err := r.State(t.Context(), "c", latest)
				if err != nil {
					t.Error(err)
				}
				answers <- st
			}()
		}
		synctest.Wait()
		close(table.goOn)
		first := <-answers
		for range cap(answers) - 1 {
			if st := <-answers; st != first || st == nil {
				t.Error("another state")
			}
		}
		if n := table.loads.Load(); n != 1 {
			t.Errorf("loaded %d times", n)
		}
		time.Sleep(time.Second) // or all were wanted at one time, and which are kept is chance
		for i := range 5 * maxAsked {
			if st, err := r.State(t.Context(), fmt.Sprint("stranger", i), latest); st != nil || err != nil {
				t.Errorf("%v of a cluster nobody knows: %v", st, err)
			}
		}
		if n := len(r.states.byCluster); n > maxAsked {
			t.Errorf("%d states are kept", n)
		}
		if names := r.states.names(); len(names) != 0 {
			t.Errorf("clusters %q", names) // c was asked about before all of those
		}
		close(r.ended)
		if _, err := r.State(t.Context(), "new", latest); !errors.Is(err, errEnded) {
			t.Errorf("after the end: %v", err)
		}
	})
}
