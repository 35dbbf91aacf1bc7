package runner

import (
	"context"
	"sync"
	"time"

	"github.com/retrial-io/retrial/internal/sleep"
)

// rest is how many times as long as an insert took, or what came of several that began together,
// the next is put off: inserts take a hundredth of one processor's time where little happens.
const rest = 99

// muster is how long after a block began others begin with it, for the store to join them.
const muster = 100 * time.Millisecond

// pace spaces the blocks of all partitions of a process. What an insert costs hardly depends on
// what it holds, so a partition that is not behind waits for its turn, and partitions take turns
// together.
type pace struct {
	longest time.Duration // a block is put off no longer

	mu      sync.Mutex
	working int           // blocks that are under way
	began   time.Time     // the first of them
	took    time.Duration // the longest insert of those that began together
	next    time.Time     // no turn before
	turned  chan struct{} // closed when next was set
}

func newPace(longest time.Duration) *pace {
	return &pace{longest: longest, turned: make(chan struct{})}
}

// begin waits for the turn of a block whose first record was due at a time, or not, if it is one of
// many that wait. The result is to be called when the block is settled, with how long its insert took.
func (p *pace) begin(ctx context.Context, due time.Time, many bool) (end func(inserting time.Duration), err error) {
	latest := due.Add(p.longest)
	for {
		p.mu.Lock()
		now := time.Now()
		open := p.working == 0 && !now.Before(p.next) || p.working > 0 && now.Sub(p.began) < muster
		if open || many || !now.Before(latest) {
			if p.working == 0 {
				p.began, p.took = now, 0
			}
			p.working++
			p.mu.Unlock()
			return p.end, nil
		}
		until, turned := latest, p.turned
		if p.working == 0 && p.next.Before(latest) {
			until = p.next
		}
		p.mu.Unlock()
		if err := sleep.Unless(ctx, time.Until(until), turned); err != nil {
			return nil, err
		}
	}
}

// end counts a block as settled; after the last of those under way there is a rest.
func (p *pace) end(inserting time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = max(p.took, inserting)
	if p.working--; p.working == 0 {
		p.next = time.Now().Add(min(rest*p.took, p.longest*3/4)) // whoever has just missed a turn waits for the next one too
		close(p.turned)
		p.turned = make(chan struct{})
	}
}
