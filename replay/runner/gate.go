package runner

import (
	"context"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
)

// gate answers one question for all partitions: has everything been applied that was in the
// policy topic at some moment not before now? It asks the broker for the ends of the topic
// and compares offsets, so that no two clocks are compared and a quiet topic holds up
// nobody. One question serves everybody who waits.
type gate struct {
	source Source

	ready chan struct{} // closed once feed is set
	feed  PolicyFeed

	asking chan struct{} // held by the one who asks the broker
	wanted chan struct{} // has an element when somebody began to wait since the feed rested last
	mu     sync.Mutex
	waits  map[*map[int32]int64]struct{} // what is waited for
	ends   map[int32]int64               // the last answer
	asked  time.Time                     // when it was asked for
}

func newGate(source Source) *gate {
	return &gate{source: source, ready: make(chan struct{}), asking: make(chan struct{}, 1), wanted: make(chan struct{}, 1),
		waits: map[*map[int32]int64]struct{}{}}
}

// open makes the feed known to those who wait for it.
func (g *gate) open(feed PolicyFeed) {
	g.feed = feed
	close(g.ready)
}

// horizon returns the ends of the policy topic at some moment after the call began.
func (g *gate) horizon(ctx context.Context) (map[int32]int64, error) {
	began := time.Now()
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	g.mu.Lock()
	ends, fresh := g.ends, g.asked.After(began)
	g.mu.Unlock()
	if fresh {
		return ends, nil
	}
	asked := time.Now()
	ends, err := g.source.Ends(ctx, stream.TopicPolicy)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends, g.asked = ends, asked
	return ends, nil
}

// wait returns once everything below the ends has been applied.
func (g *gate) wait(ctx context.Context, ends map[int32]int64) error {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if reached(g.feed.Positions(), ends) {
		return nil
	}
	g.mu.Lock()
	g.waits[&ends] = struct{}{}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.waits, &ends)
	}()
	select {
	case g.wanted <- struct{}{}:
	default:
	}
	return g.feed.WaitFor(ctx, ends)
}

// rest lets policy records gather while nobody waits for them: each write to the policy table
// costs the store as much for one as for hundreds. It ends when somebody does. Who waits for what
// has been applied already is about to be told, and waits for nothing more.
func (g *gate) rest(ctx context.Context, atMost time.Duration) {
	select {
	case <-g.ready:
	default:
		return
	}
	select {
	case <-g.wanted:
	default:
	}
	if !g.awaited(g.feed.Positions()) {
		_ = sleep.Unless(ctx, atMost, g.wanted) // the next read looks at ctx
	}
}

// awaited reports whether somebody waits for more than has been applied up to the positions.
func (g *gate) awaited(positions map[int32]int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ends := range g.waits {
		if !reached(positions, *ends) {
			return true
		}
	}
	return false
}

// behind returns how many policy records had not been applied at the last answer.
func (g *gate) behind() (n int64) {
	select {
	case <-g.ready:
	default:
		return 0
	}
	positions := g.feed.Positions()
	g.mu.Lock()
	defer g.mu.Unlock()
	for p, end := range g.ends {
		n += max(0, end-positions[p])
	}
	return n
}
