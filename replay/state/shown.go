package state

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/content"
)

// settleAfter is how long what was asked for may go on when its answer is lost, as long as nothing
// newer is known to have been written: etcd gives a proposal up after seven seconds. What finds an
// object as it was, or missing, within it does not say that nothing will come of it.
const settleAfter = int64(10 * time.Second)

// lingers is how long after the write something may still come of it.
func (b *blind) lingers() int64 {
	if b.maybe {
		return settleAfter
	}
	return 0
}

// settledBy tells whether nothing comes any more of the writes that left the object in doubt.
func (s *step) settledBy(at int64) bool {
	return s.as&carryLate == 0 || at >= s.na+settleAfter
}

// insertShown places requests that found the object where no change of it was under way. They tell
// something where a lost answer left open whether it is there.
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

// found works out a step at which the object was there: what it is then, if before was open in nothing
// else. It stays marked where it tells nothing.
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

// seenAround returns the first of the steps before at that overlap a lost answer's write, where all of
// them are versions that were seen later and whose writes nobody saw: they came before it, by it, or after
// it. It is -1 where another write overlaps.
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

// endsAround tells whether the one step before at that overlaps a lost answer's write is an end that
// nobody saw and that came by the time the write was over, or later: it was before the write, by it, or after it.
func endsAround(steps []step, at int, write span) bool {
	if at < 2 || steps[at-2].overlaps(write) {
		return false
	}
	end := &steps[at-1]
	return end.phase == phaseAbsent && end.assumed && end.nb <= write.nb && write.na <= end.na
}

// seenLater tells whether a step is of a version whose write nobody saw.
func (s *step) seenLater() bool {
	return s.assumed && s.phase == phasePresent && s.as == carryNothing && s.rv != 0
}

// seenBy returns by when a version was there that a write made which was done at the latest long after
// its answer was lost.
func (o *object) seenBy(s *step, lost int64) int64 {
	by := lost + settleAfter
	for i := range o.versions {
		if v := &o.versions[i]; v.rv == s.rv && v.uid == s.uid {
			by = min(by, v.seen.na)
		}
	}
	return max(by, lost)
}

// mayFollow places what was asked for by a write whose answer was lost behind the versions that were
// seen while something could still come of it, and of which nobody saw the write.
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

// madeUnheard takes out the beginnings, which nobody saw, of objects that were seen to end: those that
// a write whose answer was lost made, where there was none before it.
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

// mayMake tells whether a write whose answer was lost may have brought its object into being.
func (b *blind) mayMake() bool {
	if !b.maybe || b.content == nil {
		return false
	}
	p := b.content.Patch()
	return p == nil || p.Made != nil || p.Blind
}
