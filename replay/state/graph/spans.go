package graph

import "math"

// span is a stretch of time with blurred ends: it began in [nb, na] and ended in [endNB, endNA], nanoseconds since 1970, or at never.
type span struct {
	nb, na       int64
	endNB, endNA int64
}

const never = int64(math.MaxInt64)

// empty reports whether there is no moment the span can hold.
func (s *span) empty() bool { return s.endNA <= s.nb }

// meet returns the time that two spans share.
func (s *span) meet(o *span) span {
	return span{max(s.nb, o.nb), max(s.na, o.na), min(s.endNB, o.endNB), min(s.endNA, o.endNA)}
}

// when is a question about time: one moment, or a window of moments.
type when struct {
	from, to int64
	window   bool
}

// held is an answer to a when: whether something may have held at some moment of it, and
// whether it held at every moment. Of a single moment both are the same.
type held struct{ may, must bool }

func (h held) or(o held) held  { return held{h.may || o.may, h.must || o.must} }
func (h held) and(o held) held { return held{h.may && o.may, h.must && o.must} }

// of answers for a span. A single moment is in a span from the moment it had certainly begun until it had certainly ended: as in the rest
// of the state, the newest version that was certainly there counts.
func (w when) of(s *span) held {
	if !w.window {
		in := s.na <= w.from && w.from < s.endNA
		return held{in, in}
	}
	return held{s.nb <= w.to && w.from < s.endNA, s.na <= w.from && w.to < s.endNB}
}

// id numbers a span or a name. 0 is none.
type id uint32

// spans holds spans under small numbers, in chunks that never move. Freed numbers are used again.
type spans struct {
	chunks []*[chunkSize]span
	next   id // the first number never used
	free   []id
}

const chunkSize = 1024

func (t *spans) get(i id) *span { return &t.chunks[i/chunkSize][i%chunkSize] }

func (t *spans) add(s span) id {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		*t.get(i) = s
		return i
	}
	t.next++ // 0 is none
	if int(t.next/chunkSize) == len(t.chunks) {
		t.chunks = append(t.chunks, new([chunkSize]span))
	}
	*t.get(t.next) = s
	return t.next
}

func (t *spans) remove(i id) { t.free = append(t.free, i) }

func (t *spans) len() int { return int(t.next) - len(t.free) }

// names numbers the names of nodes and namespaces while something uses them.
type names struct {
	ids  map[string]id
	list []named
	free []id
}

type named struct {
	name string
	uses int
}

// anyName is the number of an unknown name.
const anyName id = 1

func newNames() names { return names{ids: map[string]id{}, list: make([]named, anyName+1)} }

// use returns the number of a name and counts one more user of it.
func (t *names) use(name string) id {
	i, ok := t.ids[name]
	if !ok {
		if n := len(t.free); n > 0 {
			i, t.free = t.free[n-1], t.free[:n-1]
			t.list[i] = named{name: name}
		} else {
			i = id(len(t.list))
			t.list = append(t.list, named{name: name})
		}
		t.ids[name] = i
	}
	t.list[i].uses++
	return i
}

// done removes one user.
func (t *names) done(i id) {
	if i <= anyName {
		return
	}
	n := &t.list[i]
	if n.uses--; n.uses == 0 {
		delete(t.ids, n.name)
		*n = named{}
		t.free = append(t.free, i)
	}
}
