package graph

import (
	"slices"
	"sort"
)

// run is a list of many spans, ordered by the moment they had certainly begun, that finds out whether one of them holds by looking at few:
// some span holds at t exactly if the latest end among those begun by t is after t.
type run struct {
	spans []id
	// Of spans[:i+1], the latest ends; of spans[i:], the earliest beginning.
	endNB, endNA []int64
	nb           []int64
}

// place returns the index of the first span that begins after t.
func (r *run) place(t *spans, at int64) int {
	return sort.Search(len(r.spans), func(i int) bool { return t.get(r.spans[i]).na > at })
}

func (r *run) add(t *spans, s id) {
	i := r.place(t, t.get(s).na)
	r.spans = slices.Insert(r.spans, i, s)
	r.endNB = slices.Insert(r.endNB, i, 0)
	r.endNA = slices.Insert(r.endNA, i, 0)
	r.nb = slices.Insert(r.nb, i, 0)
	r.settle(t, i)
}

func (r *run) remove(t *spans, s id) bool {
	na := t.get(s).na
	i := sort.Search(len(r.spans), func(i int) bool { return t.get(r.spans[i]).na >= na })
	for ; i < len(r.spans) && t.get(r.spans[i]).na == na; i++ {
		if r.spans[i] != s {
			continue
		}
		r.spans = slices.Delete(r.spans, i, i+1)
		r.endNB = slices.Delete(r.endNB, i, i+1)
		r.endNA = slices.Delete(r.endNA, i, i+1)
		r.nb = slices.Delete(r.nb, i, i+1)
		r.settle(t, i)
		return true
	}
	return false
}

// settle recalculates the extremes that a change at index i may have moved.
func (r *run) settle(t *spans, i int) {
	endNB, endNA := Always, Always
	if i > 0 {
		endNB, endNA = r.endNB[i-1], r.endNA[i-1]
	}
	for k := i; k < len(r.spans); k++ {
		s := t.get(r.spans[k])
		endNB, endNA = max(endNB, s.endNB), max(endNA, s.endNA)
		if k > i && r.endNB[k] == endNB && r.endNA[k] == endNA {
			break
		}
		r.endNB[k], r.endNA[k] = endNB, endNA
	}
	nb := never
	if i+1 < len(r.nb) {
		nb = r.nb[i+1]
	}
	for k := min(i, len(r.spans)-1); k >= 0; k-- {
		nb = min(nb, t.get(r.spans[k]).nb)
		if k < i && r.nb[k] == nb {
			break
		}
		r.nb[k] = nb
	}
}

func (r *run) held(t *spans, w when) (h held) {
	i := r.place(t, w.from)
	if !w.window {
		in := i > 0 && r.endNA[i-1] > w.from
		return held{in, in}
	}
	h.must = i > 0 && r.endNB[i-1] > w.to
	if i = r.place(t, w.to); i > 0 && r.endNA[i-1] > w.from {
		h.may = true
		return h
	}
	// Those that may have begun earlier than they certainly had.
	for ; i < len(r.spans) && r.nb[i] <= w.to; i++ {
		if w.of(t.get(r.spans[i])).may {
			h.may = true
			break
		}
	}
	return h
}
