package state

import (
	"slices"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// strangers follows the writes of a name that concern no pod known by uid: pods of which little more than the name was recorded.
//
//	known by uid    ├────── u1 ──────┤              ├─── u2 ───
//	writes        ┼     ┼                ┼    ┼  ┼
//	              made  of u1            made    deleted
//	strangers     ├─────┤                ├───────┤
//
// A stranger ends where a pod known by uid takes the name, where a listing does not show it, or by a write of its own.
type strangers struct {
	s       *State
	lives   []podLife
	steps   []podStep
	now     podStep
	there   bool  // one is there, or may be
	vacant  int64 // since when none is
	perhaps int64 // when what may have ended one was done at the latest
}

// podStrangers returns the steps of such pods.
func (s *State) podStrangers(n podName, lives []podLife, blinds []podBlind) []podStep {
	all := len(blinds)
	for _, list := range s.collections(n.namespace) {
		for _, g := range list {
			blinds = append(slices.Clip(blinds), podBlind{span: g.span, kind: podCollected})
		}
	}
	if len(blinds) > all {
		slices.SortFunc(blinds, comparePodBlinds)
	}
	w := strangers{s: s, lives: lives, now: absent(noSpan), vacant: instant.None, perhaps: instant.None}
	for i := range blinds {
		w.take(&blinds[i])
	}
	w.closeBy(noSight)
	return w.steps
}

// take follows one write.
func (w *strangers) take(b *podBlind) {
	w.closeBy(b.na)
	certain := w.perhaps <= b.nb // all that may have ended one came before
	if b.ends() {
		w.perhaps = b.na
	}
	is, over := w.known(b)
	switch {
	case is:
		return
	case !w.there && over != instant.None:
		w.now, w.there = absent(span{b.nb, max(b.na, over)}), true
		w.now.doubt()
		w.steps = append(w.steps, w.now)
		return
	case !w.there && b.kind != podThere && b.kind != podCollected && b.kind != podMissing:
		w.wasThere(b)
	}
	if !w.write(b) {
		return
	}
	if w.now.phase == phasePresent && !certain {
		w.now.doubt() // it may have been ended after
	}
	w.steps = append(w.steps, w.now)
	if w.there = w.now.phase != phaseAbsent; !w.there {
		w.vacant = w.now.na
	}
}

// doubt makes a step one at which there may be a pod, perhaps being deleted.
func (s *podStep) doubt() { s.phase, s.open = phaseUnknown, true }

// known reports whether a pod known by uid existed, or was made, when b was written. over, if not noTime, says that b may have made another
// after such a pod, which had ended then.
func (w *strangers) known(b *podBlind) (is bool, over int64) {
	over = instant.None
	if b.kind == podCollected {
		return false, over
	}
	for i := range w.lives {
		l := &w.lives[i]
		if b.na < l.made.nb || b.kind == podThere && b.nb > l.made.na {
			continue // another one, unless this one is seen later still
		}
		end, ended := l.end()
		switch {
		case b.made && ended && b.na > end.nb:
			over = end.na
		case !ended || b.na <= end.na || b.nb < end.na:
			return true, instant.None
		}
	}
	return false, over
}

// closeBy ends the stranger if a pod with a uid had the name by a moment, or a listing did not show it.
func (w *strangers) closeBy(at int64) {
	pod, list := noSight, noSight
	for i := range w.lives {
		if c := w.lives[i].made; c.na >= w.now.na {
			pod = min(pod, c.na)
		}
	}
	for _, l := range w.s.listings[kept.ResPod] {
		if l.nb >= w.now.na {
			list = min(list, l.na)
		}
	}
	if !w.there || min(pod, list) > at || min(pod, list) == noSight {
		return
	}
	if list < pod {
		w.steps = append(w.steps, absent(span{w.now.na, list}))
	}
	w.vacant = min(pod, list)
	w.now, w.there = absent(span{w.vacant, w.vacant}), false
}

// wasThere notes that a stranger existed before a write, with unrecorded content.
func (w *strangers) wasThere(b *podBlind) {
	at := w.vacant
	for i := range w.lives {
		if end, ended := w.lives[i].end(); ended && end.na <= b.na {
			at = max(at, end.na)
		}
	}
	w.now = absent(span{at, at})
	w.now.phase, w.now.loose = phaseUnknown, b.kind == podBound
	w.steps = append(w.steps, w.now)
	w.now, w.there = absent(w.now.span), true
	w.now.open = true
}

// write turns now into the step after a write; it returns false if there is none.
func (w *strangers) write(b *podBlind) bool {
	now := &w.now
	switch b.kind {
	case podThere:
		was := *now
		*now = podStep{span: b.span, phase: phasePresent, spec: b.spec, bound: instant.None, node: b.node, deletion: instant.None}
		switch {
		case b.node != "":
			now.bound = b.na
		case was.bound != instant.None && b.nb < was.na: // bound before the one who made it was answered
			now.bound, now.node = b.na, was.node
		}
	case podBound: // none is that is being deleted
		now.span, now.phase, now.bound, now.node, now.open = b.span, phasePresent, b.na, b.node, false
	case podChanged, podLoosened:
		now.span, now.phase = b.span, phasePresent
		if now.open {
			now.phase = phaseUnknown // it may have been being deleted
		}
	case podGone, podMissing:
		switch {
		case !w.there, b.kind == podMissing && b.nb < now.na:
			return false
		case b.nb < now.na:
			now.span = b.span
			now.doubt() // it may have come after
		case b.kind == podMissing:
			*now = absent(span{now.na, b.na}) // at any time before it
		default:
			*now = absent(b.span)
		}
	default:
		if b.kind == podCollected && (!w.there || now.phase == phaseAbsent) {
			return false
		}
		now.span = b.span
		now.doubt()
	}
	return true
}
