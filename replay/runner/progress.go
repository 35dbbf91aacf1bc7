package runner

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/verdict"
)

// board is where the partitions write how far they are.
type board struct {
	mu     sync.Mutex
	places map[place]*progress
	moved  chan struct{} // closed and replaced on every change
}

type place struct {
	topic     string
	partition int32
}

// progress is one owned partition's entry on the board.
type progress struct {
	board     *board
	next, end int64
	corrected map[int32]int64
}

func newBoard() *board {
	return &board{places: map[place]*progress{}, moved: make(chan struct{})}
}

func (b *board) own(topic string, partition int32, next int64) *progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &progress{board: b, next: next, end: next}
	b.places[place{topic, partition}] = p
	b.wake()
	return p
}

func (b *board) disown(topic string, partition int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.places, place{topic, partition})
	b.wake()
}

func (b *board) wake() {
	close(b.moved)
	b.moved = make(chan struct{})
}

// set notes how far the partition is; corrected is not kept.
func (p *progress) set(next, end int64, corrected map[int32]int64) {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	if p.next == next && p.end == end && maps.Equal(p.corrected, corrected) {
		return
	}
	p.next, p.end, p.corrected = next, end, maps.Clone(corrected)
	p.board.wake()
}

// lag sums what is not settled of a topic.
func (b *board) lag(topic string) (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, p := range b.places {
		if at.topic == topic {
			n += max(0, p.end-p.next)
		}
	}
	return n
}

// uncorrected counts the event partitions whose rows do not reflect the cursor.
func (b *board) uncorrected(cursor map[int32]int64) (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, p := range b.places {
		if at.topic == stream.TopicEvents && !reached(p.corrected, cursor) {
			n++
		}
	}
	return n
}

// look reports whether every partition of the topic that is owned here is settled up to its end
// and, for events, its rows reflect the cursor. It returns those that are not owned here, and
// what is closed at the next change of all that.
func (b *board) look(topic string, ends, cursor map[int32]int64) (settled bool, elsewhere []int32, moved <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	settled = true
	for partition, end := range ends {
		p := b.places[place{topic, partition}]
		switch {
		case p == nil:
			elsewhere = append(elsewhere, partition)
		case p.next < end || !reached(p.corrected, cursor):
			settled = false
		}
	}
	return settled, elsewhere, b.moved
}

// elsewhereEvery is how often it is looked up how far other processes have committed.
const elsewhereEvery = 200 * time.Millisecond

// waitSettled returns once every partition of the topic is settled up to its end and, for
// events, its rows reflect the cursor: as the board has it for those that are owned here, and
// as their owners have committed for the others, which may have sent events on to another partition.
func (r *Runner) waitSettled(ctx context.Context, topic string, ends, cursor map[int32]int64) (others bool, err error) {
	for {
		settled, elsewhere, moved := r.board.look(topic, ends, cursor)
		if settled && len(elsewhere) > 0 {
			commits, err := r.source.Commits(ctx, topic)
			if err != nil {
				return false, err
			}
			for _, p := range elsewhere {
				c := commits[p]
				others = others || c.Pending.Layout.Epoch > 0
				settled = settled && max(c.Next, 0) >= ends[p] && !c.Pending.Has() && reached(c.Pending.PolicyOffsets, cursor)
			}
		}
		if settled {
			return others, nil
		}
		var again <-chan time.Time
		if len(elsewhere) > 0 {
			again = time.After(elsewhereEvery)
		}
		select {
		case <-moved:
		case <-again:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// Lag returns how far the runner is behind.
func (r *Runner) Lag() verdict.Backlog {
	return verdict.Backlog{
		Events: r.board.lag(stream.TopicEvents), Policy: r.gate.behind(),
		DeadLetters: r.board.lag(stream.TopicDeadLetter), Corrections: r.board.uncorrected(r.changes.cursor()),
	}
}

// WaitDrained returns when everything acknowledged before the call is where it belongs:
// policy applied, events stored, their verdicts corrected for that policy, dead letters
// stored; by this process or by others that share the partitions with it.
func (r *Runner) WaitDrained(ctx context.Context) error {
	defer r.pace.hurry()()
	policy, err := r.gate.horizon(ctx)
	if err == nil {
		err = r.gate.wait(ctx, policy)
	}
	if err != nil {
		return fmt.Errorf("wait for policy to be applied: %w", err)
	}
	cursor := r.changes.cursor()
	for _, topic := range []string{stream.TopicEvents, stream.TopicDeadLetter} {
		if topic != stream.TopicEvents {
			cursor = nil
		}
		if err := r.drained(ctx, topic, cursor); err != nil {
			return fmt.Errorf("wait for %s to be settled: %w", topic, err)
		}
	}
	return nil
}

// longestCatchUp is how long a question waits for what came before it.
const longestCatchUp = time.Second

// CatchUp has policy that was acknowledged applied, and events that were acknowledged a moment ago (Hold, and a second) judged and
// stored, instead of at their turn: questions that are asked afterwards are answered with them. It waits for a second at most, and not
// for a backlog.
func (r *Runner) CatchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longestCatchUp)
	defer cancel()
	if ends, err := r.gate.horizon(ctx); err == nil {
		_ = r.gate.wait(ctx, ends) // the answer is as old as it is
	}
	_ = r.pace.ask(ctx) // the same
}

// drained returns when a topic is settled up to its present ends. What was sent on to another
// partition meanwhile is at the end of that, below the next ends.
func (r *Runner) drained(ctx context.Context, topic string, cursor map[int32]int64) error {
	for range 3 { // a record is sent on once for each change of the layout
		before := r.forwards.Load()
		ends, err := r.source.Ends(ctx, topic)
		if err != nil {
			return err
		}
		others, err := r.waitSettled(ctx, topic, ends, cursor)
		if err != nil || !others && r.forwards.Load() == before {
			return err
		}
	}
	return nil
}
