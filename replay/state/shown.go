package state

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/content"
)

// settleAfter is how long a write may still take effect after its answer was lost, unless something newer is known to have been written:
// etcd gives up a proposal after seven seconds. Finding the object unchanged, or missing, within that time does not show that the write
// failed.
const settleAfter = int64(10 * time.Second)

// lingers returns until when the write may still take effect.
func (b *blind) lingers() int64 {
	if b.maybe {
		return settleAfter
	}
	return 0
}

// settledBy reports whether the writes that left the object in doubt can no longer take effect.
func (s *step) settledBy(at int64) bool {
	return s.as&carryLate == 0 || at >= s.na+settleAfter
}

// insertShown places requests that found the object while no change of it was under way. They matter where a lost answer left open whether
// it exists.
func (o *object) insertShown(steps []step) []step {
	if !slices.ContainsFunc(steps, func(s step) bool { return s.as&carryLost != 0 }) {
		return steps
	}
	for _, p := range o.shown {
		at := 0
		for at < len(steps) && steps[at].na <= p.nb {
			at++
		}
		if at > 0 && (at == len(steps) || steps[at].nb >= p.na) {
			steps = slices.Insert(steps, at, step{span: span{p.nb, p.na}, phase: phaseUnknown, as: carryShown})
		}
	}
	return steps
}

// found derives a step at which the object existed: what it is then, if only its existence was open. The step stays marked if it says
// nothing.
func (s *step) found(before *step) {
	at, as := s.span, s.as
	*s = *before
	s.span, s.as = at, as
	if before.phase != phaseUnknown || before.Least != nil || before.There == nil || before.mayEnd && at.nb < before.na+settleAfter {
		return
	}
	if s.as, s.Least, s.mayEnd = carryNothing, s.There, false; s.Most.SameMeaning(s.Least) {
		s.phase, s.content, s.Bounds = phasePresent, s.Most, content.Bounds{}
	}
}

// seenAround returns the first of the steps before at that overlap a lost answer's write, if all of them are versions seen later whose
// writes were not seen: they came before it, by it, or after it. It is -1 if another write overlaps.
func seenAround(steps []step, at int, write span) int {
	first := -1
	for i := range steps[:at] {
		if !steps[i].overlaps(write) {
			continue
		}
		if !steps[i].seenLater() {
			return -1
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// endsAround reports whether the only step before at that overlaps a lost answer's write is an unseen end that came by the time the write
// was over, or later: it was before the write, by it, or after it.
func endsAround(steps []step, at int, write span) bool {
	if at < 2 || steps[at-2].overlaps(write) {
		return false
	}
	end := &steps[at-1]
	return end.phase == phaseAbsent && end.assumed && end.nb <= write.nb && write.na <= end.na
}

// seenLater reports whether a step is of a version whose write was not seen.
func (s *step) seenLater() bool {
	return s.assumed && s.phase == phasePresent && s.as == carryNothing && s.rv != 0
}

// seenBy returns by when a version existed whose write may have been done long after its answer was lost.
func (o *object) seenBy(s *step, lost int64) int64 {
	by := lost + settleAfter
	for i := range o.versions {
		if v := &o.versions[i]; v.rv == s.rv && v.uid == s.uid {
			by = min(by, v.seen.na)
		}
	}
	return max(by, lost)
}

// mayFollow places what a write with a lost answer asked for behind the versions that were seen while it could still take effect, and whose
// own writes were not seen.
func (o *object) mayFollow(steps []step, from int, lost *step) []step {
	until := lost.na + settleAfter
	for i := from; i < len(steps); i++ {
		s := steps[i]
		if !s.seenLater() || s.na >= until {
			break
		}
		again := *lost
		again.span = span{s.na, s.na}
		add := []step{again}
		for j := range o.versions {
			if v := &o.versions[j]; v.rv == s.rv && v.uid == s.uid && v.seen.last.nb >= until {
				s.span = v.seen.last
				add = append(add, s)
			}
		}
		steps = slices.Insert(steps, i+1, add...)
		i += len(add)
	}
	return steps
}

// madeUnheard removes the assumed beginnings of objects of which only the end was seen, if a write with a lost answer made them and none
// existed before it.
func (o *object) madeUnheard(steps []step, listings []*listing) []step {
	if !slices.ContainsFunc(o.blinds, func(b blind) bool { return b.mayMake() }) {
		return steps
	}
	for i := len(steps) - 2; i >= 0; i-- {
		s, end := &steps[i], &steps[i+1]
		if !s.bare() || end.phase != phaseAbsent {
			continue
		}
		vacant, from := i > 0, s.na // another had ended
		absent := func(p span) {
			if p.na <= end.nb && p.nb >= s.na {
				vacant, from = true, max(from, p.nb)
			}
		}
		for _, l := range listings {
			if !o.presentIn(l) {
				absent(l.span)
			}
		}
		for _, p := range o.missing {
			absent(p)
		}
		if vacant && slices.ContainsFunc(o.blinds, func(b blind) bool { return b.mayMake() && b.na > from && b.nb < end.na }) {
			steps = slices.Delete(steps, i, i+1)
		}
	}
	return steps
}

// mayMake reports whether a write whose answer was lost may have made its object.
func (b *blind) mayMake() bool {
	if !b.maybe || b.content == nil {
		return false
	}
	p := b.content.Patch()
	return p == nil || p.Made != nil || p.Blind
}
