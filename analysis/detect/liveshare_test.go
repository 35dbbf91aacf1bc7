package detect

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// shareOnly is a store that notes of which clusters it is asked.
type shareOnly struct {
	*storage.Store
	asked map[string]bool
}

func (s shareOnly) note(clusters []string) {
	for _, c := range clusters {
		s.asked[c] = true
	}
}

func (s shareOnly) ClustersOf(ctx context.Context, clusters []string) ([]queries.Cluster, error) {
	s.note(clusters)
	return s.Store.ClustersOf(ctx, clusters)
}

func (s shareOnly) MarkSums(ctx context.Context, clusters []string, since time.Time) ([]verdict.MarkSum, time.Time, error) {
	s.note(clusters)
	sums, next, err := s.Store.MarkSums(ctx, clusters, since)
	for _, m := range sums {
		s.asked[m.Cluster] = true
	}
	return sums, next, err
}

func (s shareOnly) Marked(ctx context.Context, filters []verdict.MarkFilter, visit func(verdict.Row, []int) error) error {
	for _, f := range filters {
		s.asked[f.Cluster] = true
	}
	return s.Store.Marked(ctx, filters, visit)
}

func (s shareOnly) FindingsOf(ctx context.Context, clusters, rules []string, spans []time.Time) ([]verdict.StoredFinding, error) {
	s.note(clusters)
	return s.Store.FindingsOf(ctx, clusters, rules, spans)
}

func (s shareOnly) SpansDone(ctx context.Context, clusters []string) ([]verdict.SpanDone, error) {
	s.note(clusters)
	done, err := s.Store.SpansDone(ctx, clusters)
	for _, d := range done {
		s.asked[d.Cluster] = true
	}
	return done, err
}

// TestLiveOfAShare: processes that keep the findings of their own clusters find together what one does, while clusters move from one to
// another, which then works out nothing that was done, and while whoever lost one works on for a moment. Nothing is read of the others.
func TestLiveOfAShare(t *testing.T) {
	h := newHistory(t, 3)
	s := storagetest.Open(t)
	ctx := t.Context()
	clock := t0.Add(100 * time.Hour)
	clusters := []string{"prod", "test", "other"} // of the last there is nothing
	start := func(mine ...string) (*Live, shareOnly) {
		st := shareOnly{s, map[string]bool{}}
		l, err := NewLive(h.set, st, LiveConfig{Lateness: time.Minute, Now: func() time.Time { return clock },
			Mine: func(c string) bool { return slices.Contains(mine, c) }})
		if err != nil {
			t.Fatal(err)
		}
		return l, st
	}
	pass := func(l *Live) Pass {
		t.Helper()
		clock = clock.Add(20 * time.Second)
		p, err := l.Pass(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, of := start(clusters[0])
	b, _ := start(clusters[1:]...)
	if p := pass(a); p.Spans > 0 || len(of.asked) > 0 {
		t.Errorf("%+v of an empty store, asked about %v", p, of.asked)
	}
	for n := range 12 {
		if err := s.Insert(ctx, fmt.Sprint("block ", n), h.block()); err != nil {
			t.Fatal(err)
		}
		if err := s.RollUp(ctx); err != nil {
			t.Fatal(err)
		}
		if n == 6 { // they change places; who had the cluster before does not know it yet
			old := a
			a, _ = start(clusters[1:]...)
			b, of = start(clusters[0])
			pass(b)
			pass(old)
		}
		pass(a)
		pass(b)
	}
	for name := range of.asked {
		if name != clusters[0] {
			t.Errorf("who keeps the findings of %s reads those of %s", clusters[0], name)
		}
	}
	clock = clock.Add(time.Hour) // it has been quiet
	for _, l := range []*Live{a, b} {
		pass(l)
		clock = clock.Add(time.Hour)
		if p := pass(l); p.Left != 0 {
			t.Errorf("%d spans are left", p.Left)
		}
	}
	same(t, "of two shares", found(t, s), h.want())
	whole, _ := start(clusters...)
	if p := pass(whole); p.Spans != 0 || p.Left != 0 {
		t.Errorf("who takes all over works out %+v: all of it was done", p)
	}
}
