package runner

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/retrial-io/retrial/ingest/stream"
)

// Lag is how far the runner is behind, in records, as far as it knows without asking
// anybody.
type Lag struct {
	Events      int64 // of the owned partitions, not settled
	Policy      int64 // not applied
	DeadLetters int64 // of the owned partitions, not stored
	Corrections int64 // owned partitions that have changes of policy to look at
}

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

// reached tells whether a cursor is at or past all marks.
func reached(cursor, marks map[int32]int64) bool {
	for p, mark := range marks {
		if cursor[p] < mark {
			return false
		}
	}
	return true
}

// wait returns once every partition of the topic is owned here and settled up to its end
// and, for events, its rows reflect the cursor.
func (b *board) wait(ctx context.Context, topic string, ends, cursor map[int32]int64) error {
	for {
		b.mu.Lock()
		moved, done := b.moved, true
		for partition, end := range ends {
			p := b.places[place{topic, partition}]
			if p == nil || p.next < end || !reached(p.corrected, cursor) {
				done = false
				break
			}
		}
		b.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Lag returns how far the runner is behind.
func (r *Runner) Lag() Lag {
	return Lag{
		Events: r.board.lag(stream.TopicEvents), Policy: r.gate.behind(),
		DeadLetters: r.board.lag(stream.TopicDeadLetter), Corrections: r.board.uncorrected(r.changes.cursor()),
	}
}

// WaitDrained returns when everything acknowledged before the call is where it belongs:
// policy applied, events stored, their verdicts corrected for that policy, dead letters
// stored. It is for a process that owns all partitions, such as `serve`; with several, each
// waits for its own share to come back to it.
func (r *Runner) WaitDrained(ctx context.Context) error {
	policy, err := r.gate.horizon(ctx)
	if err == nil {
		err = r.gate.wait(ctx, policy)
	}
	if err != nil {
		return fmt.Errorf("wait for policy to be applied: %w", err)
	}
	cursor := r.changes.cursor()
	for _, topic := range []string{stream.TopicEvents, stream.TopicDeadLetter} {
		ends, err := r.source.Ends(ctx, topic)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", topic, err)
		}
		if topic != stream.TopicEvents {
			cursor = nil
		}
		if err := r.board.wait(ctx, topic, ends, cursor); err != nil {
			return fmt.Errorf("wait for %s to be settled: %w", topic, err)
		}
	}
	return nil
}
