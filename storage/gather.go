package storage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// gathering has callers that come at the same time share one statement: whoever comes first
// waits for his turn, and speaks for all who have come until then.
type gathering[M any] struct {
	turn chan struct{} // has an element while somebody speaks; a channel, for simulated time to pass meanwhile
	mu   sync.Mutex
	open *gathered[M] // takes members; nil: the next caller begins one
}

func newGathering[M any]() *gathering[M] { return &gathering[M]{turn: make(chan struct{}, 1)} }

// gathered are the callers of one statement.
type gathered[M any] struct {
	members []M
	ctxs    []context.Context // of the members
	grown   chan struct{}     // has an element when somebody joined; who speaks waits on it
	done    chan struct{}
	err     error
}

// do adds a caller and returns what serve returned for everybody with him; the context of serve ends when those of all callers have. room
// tells whether those before leave room for him; else he begins anew. patience tells whether who speaks waits for more, and for how long at
// the most; nil: never.
func (g *gathering[M]) do(ctx context.Context, m M, room func(before []M) bool, patience func(now []M) time.Duration,
	serve func(context.Context, []M) error) error {
	g.mu.Lock()
	if all := g.open; all != nil && room(all.members) {
		all.members, all.ctxs = append(all.members, m), append(all.ctxs, ctx)
		select {
		case all.grown <- struct{}{}:
		default:
		}
		g.mu.Unlock()
		<-all.done
		return all.err
	}
	all := &gathered[M]{members: []M{m}, ctxs: []context.Context{ctx}, grown: make(chan struct{}, 1), done: make(chan struct{})}
	g.open = all
	g.mu.Unlock()
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.wait(all, patience)
	defer close(all.done)
	ctx, cancel := untilAllEnd(all.ctxs)
	defer cancel()
	all.err = serve(ctx, all.members)
	return all.err
}

// untilAllEnd returns a context that ends when all of them have; cancel lets go of them.
func untilAllEnd(ctxs []context.Context) (ctx context.Context, cancel func()) {
	if len(ctxs) == 1 {
		return ctxs[0], func() {}
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctxs[0]))
	var left atomic.Int64
	left.Store(int64(len(ctxs)))
	stops := make([]func() bool, len(ctxs))
	for i, c := range ctxs {
		stops[i] = context.AfterFunc(c, func() {
			if left.Add(-1) == 0 {
				end()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		end()
	}
}

// wait closes the gathering to others once there is nobody to wait for.
func (g *gathering[M]) wait(all *gathered[M], patience func([]M) time.Duration) {
	var late <-chan time.Time
	for {
		g.mu.Lock()
		more := time.Duration(0)
		if patience != nil && g.open == all {
			more = patience(all.members)
		}
		if more <= 0 {
			if g.open == all {
				g.open = nil
			}
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		if late == nil {
			t := time.NewTimer(more)
			defer t.Stop()
			late = t.C
		}
		select {
		case <-all.grown:
		case <-late:
			patience = nil
		}
	}
}

// lookup is what one partition asks Known.
type lookup struct {
	rows  []verdict.Row
	known []verdict.KnownRow
}
