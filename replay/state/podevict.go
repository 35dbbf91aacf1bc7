package state

import (
	"slices"

	"github.com/retrial-io/retrial/replay/state/instant"
)

// finalizersSeen is whether a pod had finalizers when it was seen last, and whether its containers had
// ended.
type finalizersSeen struct {
	rv   uint64 // 0 for never
	at   int64  // not before it
	some bool
	// deleted says that its deletion had been asked for by then.
	deleted bool
	over    bool
}

// add notes that it was seen.
func (f *finalizersSeen) add(n finalizersSeen) {
	if n.rv == f.rv { // of one version its metadata alone may have been answered, too
		f.over = f.over || n.over
		n.over = f.over
	}
	if n.rv > f.rv || n.rv == f.rv && (n.at > f.at || n.at == f.at && (n.some && !f.some || n.some == f.some && n.deleted)) {
		*f = n
	}
}

// An eviction is answered without its pod (addConditionAndDeletePod, Store.Delete,
// rest.BeforeDelete). That it was answered says that the pod was there. With a grace of zero, its own
// or the pod's, and where the pod has no node, nothing but a finalizer holds the pod back.

// concerns tells whether an eviction was of the pod for certain, and not of another of its name.
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

// lastSeen returns the latest moment since which the pod was there still.
func (l *podLife) lastSeen() int64 {
	at := l.alive
	for i := range l.blinds {
		if b := &l.blinds[i]; b.nb > at && l.concerns(b) {
			at = b.nb
		}
	}
	return at
}

// evicted returns when an eviction ended the pod, if one did for certain. Of two at once both are
// answered alike, whichever ended it: it was there when the later began, and not any more when the
// first was done.
func (l *podLife) evicted() (at span, ended bool) {
	at = span{instant.None, noSight}
	for i := range l.blinds {
		if b := &l.blinds[i]; l.concerns(b) && l.freely(b) {
			at.nb, at.na = max(at.nb, b.nb), min(at.na, b.na)
		}
	}
	seen := l.lastSeen()
	if at.na == noSight || l.alive >= at.na || seen > at.na {
		return span{instant.None, instant.None}, false
	}
	return span{max(at.nb, seen), at.na}, true
}

// freed returns when the pod ended, if it did for certain, by what was answered without telling so:
// an eviction, or the deletion of a collection that had read it with finalizers, which were gone
// before its turn came.
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
	return span{instant.None, instant.None}, false
}

// freely tells whether an eviction gave the pod no grace, and no finalizer held the pod back.
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

// graceOf returns the grace of an eviction: its own, or that of the pod; -1 when neither is known.
func (l *podLife) graceOf(b *podBlind, spec *podSpec) int64 {
	if b.grace < 0 && spec != nil {
		return spec.grace
	}
	return b.grace
}

// loosened tells whether a write nobody recorded may have changed the pod's finalizers between two
// moments.
func (l *podLife) loosened(at span) bool {
	list := l.s.pods.loosened[l.name]
	for i, p := range list {
		if len(list) == maxMissing && i == maxMissing/2-1 {
			p.ended = list[i+1].ended // some between them were let go
		}
		if p.ended > at.nb && p.began < at.na {
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
