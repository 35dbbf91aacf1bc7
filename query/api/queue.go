package api

import (
	"context"
	"sync"
)

// queue gives questions their turns at the store. Every caller has a line of its own, and a place that becomes free goes to the caller
// who has the fewest: who asks much waits for itself. A second place, a third and so on is for a machine that has fewer than are free: one
// alone gets half of them, the next half of what is left, and somebody who comes later still finds one.
type queue struct {
	most int // questions that wait, of all callers

	mu      sync.Mutex
	free    int
	waiting int
	turns   uint64
	lines   map[asker]*line // of callers with a question that waits or is answered
	from    map[string]*origin
}

// asker is a caller. The name beside a token is the caller's own word, so what many names of one origin have counts together.
type asker struct{ origin, name string }

// line is what a caller has under way.
type line struct {
	running int
	waiting []*turn
	served  uint64 // the turn it had last
}

// origin is what all names of a machine, or of a door of this one, have under way.
type origin struct{ running, waiting int }

// turn is a question that waits.
type turn struct{ begins chan struct{} }

func newQueue(places, most int) *queue {
	return &queue{most: most, free: places, lines: map[asker]*line{}, from: map[string]*origin{}}
}

// enter waits for a turn. It fails when a line is full, or when ctx ends first; otherwise leave ends the turn.
func (q *queue) enter(ctx context.Context, who asker) (leave func(), err error) {
	t, err := q.wait(who)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.begins:
	case <-ctx.Done():
		if !q.giveUp(who, t) {
			return nil, errBusy
		}
	}
	return func() { q.leave(who) }, nil
}

// wait puts a question at the end of its caller's line, and begins whatever can begin.
func (q *queue) wait(who asker) (*turn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, o := q.lines[who], q.from[who.origin]
	if o == nil {
		o = &origin{}
	}
	if l == nil {
		l = &line{}
	}
	switch {
	case q.free > o.running: // begins at once
	case len(l.waiting) >= mostOfCaller:
		return nil, errMany
	case q.waiting >= q.most || o.waiting >= q.most/2:
		return nil, errBusy
	}
	q.lines[who], q.from[who.origin] = l, o
	t := &turn{begins: make(chan struct{})}
	l.waiting = append(l.waiting, t)
	o.waiting++
	q.waiting++
	q.next()
	return t, nil
}

// giveUp takes a question out of its line; true says that its turn had begun already.
func (q *queue) giveUp(who asker, t *turn) (began bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[who]
	for i := range l.waiting {
		if l.waiting[i] == t {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			q.waiting--
			q.from[who.origin].waiting--
			q.forget(who)
			return false
		}
	}
	return true
}

func (q *queue) leave(who asker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	q.lines[who].running--
	q.from[who.origin].running--
	q.forget(who)
	q.next()
}

// forget drops what is known of a caller without a question.
func (q *queue) forget(who asker) {
	if l := q.lines[who]; l.running == 0 && len(l.waiting) == 0 {
		delete(q.lines, who)
	}
	if o := q.from[who.origin]; *o == (origin{}) {
		delete(q.from, who.origin)
	}
}

// next begins questions while places are free for those who wait.
func (q *queue) next() {
	for {
		var first asker
		var of *line
		for who, l := range q.lines {
			if len(l.waiting) > 0 && q.free > q.from[who.origin].running && (of == nil || q.before(who, l, first, of)) {
				first, of = who, l
			}
		}
		if of == nil {
			return
		}
		t, o := of.waiting[0], q.from[first.origin]
		of.waiting = of.waiting[1:]
		q.turns++
		of.running, of.served = of.running+1, q.turns
		o.running, o.waiting = o.running+1, o.waiting-1
		q.free, q.waiting = q.free-1, q.waiting-1
		close(t.begins)
	}
}

// before reports whether a caller's turn comes before another's.
func (q *queue) before(a asker, of *line, b asker, than *line) bool {
	if x, y := q.from[a.origin].running, q.from[b.origin].running; x != y {
		return x < y
	}
	if of.running != than.running {
		return of.running < than.running
	}
	return of.served < than.served
}
