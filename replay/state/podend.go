package state

import (
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// end returns when the pod ended: as observed, or as what came after it shows. What found it missing
// while a deletion was under way shows that it had ended by then.
func (l *podLife) end() (end span, ended bool) {
	observed := l.gone
	if l.contested() {
		observed = span{instant.None, noSight}
	} else if observed.na == noSight {
		if at, certain := l.went(); certain {
			observed = at
		} else if at, certain := l.freed(); certain {
			observed = at
		}
	}
	since := max(l.lastSeen(), l.made.nb)
	by := l.missedBy(since)
	switch {
	case observed.na != noSight:
		if by > observed.nb && by < observed.na {
			observed.na = by
		}
		return span{min(observed.nb, observed.na), max(observed.na, l.made.na)}, true
	case by == noSight:
		return span{}, false
	}
	by = max(by, l.made.na)
	return span{min(since, by), by}, true
}

// missedBy returns by when the pod, there at a moment still, had gone: another had its name, a listing
// did not show it, it was looked for in vain. It is noSight when nothing tells.
func (l *podLife) missedBy(since int64) int64 {
	by := l.until
	for _, list := range l.s.listings[kept.ResPod] {
		if list.began > since && list.began >= l.made.na {
			by = min(by, list.ended)
		}
	}
	for i := range l.blinds {
		b := &l.blinds[i]
		// What was made when this one was first there is this one.
		if (b.kind == podThere && b.nb > l.made.na || (b.kind == podGone || b.kind == podMissing) && b.nb >= l.made.na) && b.nb >= since {
			by = min(by, b.na)
		}
	}
	return by
}

// went returns when a pod went that had no node when it was read, to be deleted with others; its na
// is noTime when it did not. It is not certain when it may have been bound in between: then it went
// at once, or with its grace (the registry's Store.Delete reads it once more).
func (l *podLife) went() (at span, certain bool) {
	if l.more == nil || l.more.away == nil || l.lastSeen() >= l.more.away.na {
		return span{instant.None, instant.None}, false
	}
	at = *l.more.away
	bound, _, isBound := l.binding()
	return at, (!isBound || bound.nb > at.na) && !l.refilled(at)
}

// contested tells whether the pod's end is known from the deletion of a collection alone, which
// another write may have undone.
func (l *podLife) contested() bool {
	return l.more != nil && l.more.perhaps && (l.more.over && !l.finals.over || l.refilled(l.gone))
}

// refilled tells whether a pod that was read without finalizers, to be deleted with others, may have been
// given some before its turn came.
func (l *podLife) refilled(at span) bool { return l.finals.some || l.loosened(at) }

// doubt returns the first moment from which on the pod may be gone: a write nobody recorded the
// outcome of, after it was last seen; that nothing but finalizers held it back, which writes of its
// status may take away and which are not kept; its deletion with others, which were read before,
// where it may have come to its end in between; an eviction, if its containers had ended. Its na is
// noSight when there is none.
func (l *podLife) doubt() span {
	first, seen := span{instant.None, noSight}, l.lastSeen()
	if l.contested() {
		first = span{l.gone.nb, max(l.gone.na, l.made.na)}
	}
	// A write that came before the pod was last seen, or before its known end, leaves no doubt.
	add := func(at span) {
		if l.gone.na == noSight && at.na >= seen && at.na >= l.made.nb && max(at.na, l.made.na) < first.na {
			first = span{at.nb, max(at.na, l.made.na)}
		}
	}
	if l.more != nil {
		for _, d := range l.more.deletions {
			for _, at := range [...]span{d.held, d.sudden} {
				if at.na != instant.None {
					add(at)
				}
			}
		}
	}
	if at, certain := l.went(); at.na != instant.None && !certain {
		add(at)
	}
	for i := range l.blinds {
		b := &l.blinds[i]
		switch {
		case b.kind == podWritten, b.kind == podGone && b.nb < l.made.na && b.na > l.made.nb: // what ended one may have come before this one or have ended it
			add(b.span)
		case b.kind == podEvicted && l.lives(b) && (b.uid == "" || b.uid == l.uid):
			if _, ends := l.evicted(); !ends {
				add(b.span)
			}
		}
	}
	for _, list := range l.s.collections(l.name.namespace) {
		for _, g := range list {
			add(g.span)
		}
	}
	return first
}

// collections returns the deletions of which any pod of a namespace may have been: of pods everywhere, and of those there.
func (s *State) collections(namespace string) [2][]blind {
	return [2][]blind{s.gone[kept.Key{Resource: kept.ResPod}], s.gone[kept.Key{Resource: kept.ResPod, Namespace: namespace}]}
}
