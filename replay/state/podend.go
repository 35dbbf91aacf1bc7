package state

import (
	"slices"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// end returns when the pod ended: as observed, or as later observations show. A request that found it missing during its deletion shows
// that it had ended by then.
func (l *podLife) end() (end span, ended bool) {
	observed := l.gone
	if l.contested() {
		observed = anytime
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

// missedBy returns by when a pod that existed at a moment had gone: another had its name, a listing did not show it, or it was looked for
// in vain. It is noSight if nothing says so.
func (l *podLife) missedBy(since int64) int64 {
	by := l.until
	for _, list := range l.s.listings[kept.ResPod] {
		if list.nb > since && list.nb >= l.made.na {
			by = min(by, list.na)
		}
	}
	for i := range l.blinds {
		b := &l.blinds[i]
		// A pod made when this one first existed is this one.
		if (b.kind == podThere && b.nb > l.made.na || (b.kind == podGone || b.kind == podMissing) && b.nb >= l.made.na) && b.nb >= since {
			by = min(by, b.na)
		}
	}
	return by
}

// went returns when a pod went that had no node when it was read to be deleted with others; its na is noTime if it did not. It is not
// certain if the pod may have been bound in between: then it went at once, or with its grace (the registry's Store.Delete reads it once
// more).
func (l *podLife) went() (at span, certain bool) {
	if l.more == nil || l.more.away == nil || l.lastSeen() >= l.more.away.na {
		return noSpan, false
	}
	at = *l.more.away
	bound, _, isBound := l.binding()
	return at, (!isBound || bound.nb > at.na) && !l.refilled(at)
}

// contested reports whether the pod's end is known only from the deletion of a collection, which another write may have undone.
func (l *podLife) contested() bool {
	return l.more != nil && l.more.perhaps && (l.more.over && !l.finals.over || l.refilled(l.gone))
}

// refilled reports whether a pod that was read without finalizers, to be deleted with others, may have got some before its turn came.
func (l *podLife) refilled(at span) bool { return l.finals.some || l.loosened(at) }

// doubt returns the first moment from which on the pod may be gone: by a write without a recorded outcome after it was last seen; because
// only finalizers held it back, which writes of its status, which are not kept, may remove; by its deletion with others, if it may have
// ended after they were read; or by an eviction, if its containers had ended. Its na is noSight if there is none.
func (l *podLife) doubt() span {
	first, seen := anytime, l.lastSeen()
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
		// what ended one may have come before this one, or ended it
		case b.kind == podWritten, b.kind == podGone && b.nb < l.made.na && b.na > l.made.nb:
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

// collections returns the deletions of collections that may have included a pod of a namespace: of pods everywhere, and of those there.
func (s *State) collections(namespace string) [2][]blind {
	return [2][]blind{s.gone[kept.Key{Resource: kept.ResPod}], s.gone[kept.Key{Resource: kept.ResPod, Namespace: namespace}]}
}

// finalizersSeen says whether a pod had finalizers when last seen, and whether its containers had ended.
type finalizersSeen struct {
	rv   uint64 // 0 for never
	at   int64  // not before it
	some bool
	// deleted says that its deletion had been requested by then.
	deleted bool
	over    bool
}

// add notes that it was seen.
func (f *finalizersSeen) add(n finalizersSeen) {
	if n.rv == f.rv { // an answer may also have shown only the metadata of a version
		f.over = f.over || n.over
		n.over = f.over
	}
	if n.rv > f.rv || n.rv == f.rv && (n.at > f.at || n.at == f.at && (n.some && !f.some || n.some == f.some && n.deleted)) {
		*f = n
	}
}

// The answer to an eviction does not show the pod (addConditionAndDeletePod, Store.Delete, rest.BeforeDelete), only that it existed. With a
// grace of zero, its own or the pod's, and for a pod without a node, nothing but a finalizer holds the pod back.

// concerns reports whether an eviction was certainly of the pod, and not of another of its name.
func (l *podLife) concerns(b *podBlind) bool {
	if b.kind != podEvicted || b.uid != "" && b.uid != l.uid || b.nb < l.made.na || l.next != nil && b.na > l.after.nb {
		return false
	}
	for i := range l.blinds {
		if c := &l.blinds[i]; c.kind == podThere && c.nb > l.made.na && c.nb < b.na {
			return false
		}
	}
	return true
}

// lastSeen returns the latest moment at which the pod still existed.
func (l *podLife) lastSeen() int64 {
	at := l.alive
	for i := range l.blinds {
		if b := &l.blinds[i]; b.nb > at && l.concerns(b) {
			at = b.nb
		}
	}
	return at
}

// evicted returns when an eviction ended the pod, if one certainly did. Two at once are answered alike, whichever ended it: the pod existed
// when the later began, and no longer when the first was done.
func (l *podLife) evicted() (at span, ended bool) {
	at = anytime
	for i := range l.blinds {
		if b := &l.blinds[i]; l.concerns(b) && l.freely(b) {
			at.nb, at.na = max(at.nb, b.nb), min(at.na, b.na)
		}
	}
	seen := l.lastSeen()
	if at.na == noSight || l.alive >= at.na || seen > at.na {
		return noSpan, false
	}
	return span{max(at.nb, seen), at.na}, true
}

// freed returns when the pod ended, if it certainly did, by a request whose answer does not say so: an eviction, or the deletion of a
// collection that read it with finalizers, which were gone before its turn came.
func (l *podLife) freed() (at span, ended bool) {
	if at, ended = l.evicted(); ended || l.more == nil {
		return at, ended
	}
	f, seen := &l.finals, l.lastSeen()
	for i := range l.more.deletions {
		d := &l.more.deletions[i]
		if d.read == 0 || d.over && !f.over || d.sudden.na != instant.None || f.rv <= d.read || f.some || f.deleted || seen >= d.held.na {
			continue
		}
		if !l.loosened(span{f.at, d.held.na}) {
			return span{max(d.held.nb, seen), d.held.na}, true
		}
	}
	return noSpan, false
}

// freely reports whether an eviction gave the pod no grace, and no finalizer held the pod back.
func (l *podLife) freely(b *podBlind) bool {
	if !b.told || b.holds || l.finals.rv == 0 || l.finals.some {
		return false
	}
	if b.grace < 0 && l.more != nil && slices.ContainsFunc(l.more.deletions, func(d podDeletion) bool { return d.nb < b.na }) {
		return false // a deletion that is pending is left alone
	}
	if l.graceOf(b, l.spec) != 0 {
		bound, _, isBound := l.binding()
		if l.unbound == instant.None || isBound && bound.nb <= b.na {
			return false
		}
	}
	return !l.loosened(span{l.finals.at, b.na})
}

// graceOf returns the grace of an eviction: its own, or that of the pod; -1 if neither is known.
func (l *podLife) graceOf(b *podBlind, spec *podSpec) int64 {
	if b.grace < 0 && spec != nil {
		return spec.grace
	}
	return b.grace
}

// loosened reports whether an unrecorded write may have changed the pod's finalizers between two moments.
func (l *podLife) loosened(at span) bool {
	list := l.s.pods.told[l.name].noted().loosened
	for i, p := range list {
		if len(list) == maxMissing && i == maxMissing/2-1 {
			p.na = list[i+1].na // some between them were let go
		}
		if p.na > at.nb && p.nb < at.na {
			return true
		}
	}
	for i := range l.blinds {
		b := &l.blinds[i]
		may := b.kind == podWritten || b.kind == podGone || b.kind == podEvicted && (b.holds || !b.told)
		if may && b.na > at.nb && b.nb < at.na {
			return true
		}
	}
	for _, list := range l.s.collections(l.name.namespace) {
		for _, g := range list {
			if g.na > at.nb && g.nb < at.na {
				return true
			}
		}
	}
	return false
}
