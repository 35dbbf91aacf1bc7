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

// fresh is how long what may be judged waits for its turn although somebody asks: many questions
// together cost one insert, and those that come one after the other one a second; so it is while somebody hurries.
const fresh = time.Second

// pace spaces the blocks of all partitions of a process. What an insert costs hardly depends on
// what it holds, so a partition that is not behind waits for its turn, and partitions take turns
// together. Whoever asks for what waits ends the wait.
type pace struct {
	longest time.Duration // a block is put off no longer

	mu      sync.Mutex
	turns   map[*turn]struct{} // blocks that wait or are under way
	working int                // those under way
	began   time.Time          // the first of them
	took    time.Duration      // the longest insert of those that began together
	ended   time.Time          // the last of them
	next    time.Time          // no turn before, unless it was asked for
	asked   time.Time          // what was due by then does not wait
	hurried int                // how many want everything at once
	turned  chan struct{}      // closed when any of this changes for somebody who waits
}

// turn is a block that waits for its turn, or has it.
type turn struct {
	due         time.Time
	many, begun bool
}

func newPace(longest time.Duration) *pace {
	return &pace{longest: longest, turns: map[*turn]struct{}{}, turned: make(chan struct{})}
}

// begin waits for the turn of a block whose first record was due at a time, or not, if it is one of
// many that wait. The result is to be called when the block is settled, with how long its insert took.
func (p *pace) begin(ctx context.Context, due time.Time, many bool) (end func(inserting time.Duration), err error) {
	t := &turn{due: due, many: many}
	latest := due.Add(p.longest)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns[t] = struct{}{}
	for {
		now := time.Now()
		next := p.next
		if p.hurried > 0 && next.Sub(p.ended) > fresh {
			next = p.ended.Add(fresh)
		}
		open := p.working == 0 && !now.Before(next) || p.working > 0 && now.Sub(p.began) < muster || !due.After(p.asked)
		if open || many || !now.Before(latest) {
			if p.working == 0 {
				p.began, p.took = now, 0
			}
			p.working++
			t.begun = true
			return func(inserting time.Duration) { p.end(t, inserting) }, nil
		}
		until := latest
		if p.working == 0 && next.Before(latest) {
			until = next
		}
		if err := p.wait(ctx, time.Until(until)); err != nil {
			delete(p.turns, t)
			p.turn()
			return nil, err
		}
	}
}

// end counts a block as settled; after the last of those under way there is a rest.
func (p *pace) end(t *turn, inserting time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, t)
	p.took = max(p.took, inserting)
	if p.working--; p.working == 0 {
		p.ended = time.Now()
		p.next = p.ended.Add(min(rest*p.took, p.longest*3/4)) // whoever has just missed a turn waits for the next one too
	}
	p.turn()
}

// ask gives what has waited for a while its turn, and returns when that, and what is under way, is
// settled. It does not wait for one of many.
func (p *pace) ask(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = time.Now().Add(-fresh)
	var wanted []*turn
	for t := range p.turns {
		if !t.many && (t.begun || !t.due.After(p.asked)) {
			wanted = append(wanted, t)
		}
	}
	p.turn()
	for _, t := range wanted {
		for {
			if _, under := p.turns[t]; !under {
				break
			}
			if err := p.wait(ctx, time.Minute); err != nil {
				return err
			}
		}
	}
	return nil
}

// hurry has nothing wait for its turn until done is called.
func (p *pace) hurry() (done func()) {
	add := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hurried += n
		p.turn()
	}
	add(1)
	return func() { add(-1) }
}

// wait lets go of the lock until something changes, for a time at most.
func (p *pace) wait(ctx context.Context, atMost time.Duration) error {
	turned := p.turned
	p.mu.Unlock()
	defer p.mu.Lock()
	return sleep.Unless(ctx, atMost, turned)
}

// turn wakes everybody who waits.
func (p *pace) turn() {
	close(p.turned)
	p.turned = make(chan struct{})
}
