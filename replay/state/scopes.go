package state

import (
	"cmp"
	"slices"

	"github.com/retrial-io/retrial/replay/state/instant"
)

// certainty orders the steps of a scope at one moment: a listing makes the scope known, and a gap that begins when a listing ends comes
// after it.
func (s *step) certainty() int {
	switch {
	case s.phase != phaseUnknown:
		return 1
	case s.assumed:
		return 0
	}
	return 2
}

// unknowns derives the steps of a scope: unknown or known, never present. Kinds begin unknown; a namespace's scope begins known, and is
// unknown while its kind is.
//
// What the scope held when any of it may have been deleted by name is not known before that, unless a listing taken before says so: one
// that reaches back from later does not.
func unknowns(whole bool, gaps, gone []blind, listings []*listing) []step {
	var steps []step
	if whole {
		steps = append(steps, step{span: noSpan, phase: phaseUnknown, assumed: true})
	}
	for _, g := range gaps {
		at := g.span
		if whole {
			at.na = at.nb // from its first moment on nothing can be sure
		}
		steps = append(steps, step{span: at, phase: phaseUnknown})
	}
	for _, l := range listings {
		at := l.na
		if l.since != instant.None && l.since < at {
			back := l.since
			for _, g := range gone {
				if g.na > back && g.nb <= l.na {
					back = min(g.na, l.na)
				}
			}
			if !whole && back > l.since {
				steps = append(steps, step{span: noSpan, phase: phaseUnknown, assumed: true})
			}
			if !slices.ContainsFunc(gaps, func(g blind) bool { return g.na > l.since && g.nb < l.na }) {
				at = back
			}
		}
		// A listing that began before a gap was over does not end it.
		if slices.ContainsFunc(gaps, func(g blind) bool { return g.nb < l.na && g.na > l.nb }) {
			continue
		}
		steps = append(steps, step{span: span{at, at}, phase: phaseAbsent})
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.na, b.na), cmp.Compare(a.certainty(), b.certainty()))
	})
	tighten(steps)
	return steps
}
