package state

import "slices"

// placing puts a write without a resourceVersion in its place among the steps of an object:
//
//	steps   ──┼──────┼────────────┼──┼──────▶
//	               before        clash
//	write               ├────────────┤
//
// It comes behind the last step that was over when it began, or that it overlaps.
type placing struct {
	o     *object
	steps []step
	*blind
	creates bool // it can bring an absent object into being
	at      int  // how many steps come before it
	clash   bool // it overlaps one: which came last cannot be told
	gone    bool // by then the object may have gone, unseen
}

// insertBlind places one write. creates says that it can make an absent object.
func (o *object) insertBlind(steps []step, b *blind, creates bool) []step {
	w := placing{o: o, steps: steps, blind: b, creates: creates}
	w.locate()
	ending := w.isEnding()
	if w.tellsNothing(ending) {
		return w.steps
	}
	s := w.step(ending)
	if b.created && (b.content == nil || b.maybe || w.clash) {
		o.unnamed(w.steps[:w.at], b)
	}
	switch rbac := o.key.Resource.RBACKind() != 0; {
	case rbac && !w.clash && !b.absent && (b.ending || b.maybe):
		w.lost(&s)
	case !w.clash && !b.maybe && (b.content != nil || b.unchanged):
		w.written(&s)
	}
	add := append([]step{s}, w.seenAgain()...)
	w.steps = slices.Insert(w.steps, w.at, add...)
	if b.maybe && s.as&carryLost != 0 {
		w.steps = o.mayFollow(w.steps, w.at+len(add), &s)
	}
	return w.steps
}

// locate finds the write's place. What was there before the first known step, and was written, was
// there with unrecorded content, perhaps being deleted.
func (w *placing) locate() {
	for i := range w.steps {
		if s := &w.steps[i]; s.na <= w.nb || s.overlaps(w.span) {
			w.at, w.clash = i+1, w.clash || s.overlaps(w.span)
		}
	}
	if w.maybe && w.clash {
		if first := seenAround(w.steps, w.at, w.span); first >= 0 {
			w.at, w.clash = first, false
		} else if w.gone = endsAround(w.steps, w.at, w.span); w.gone {
			w.at, w.clash = w.at-1, false
		}
	}
	if w.creates && w.at == 0 && !w.clash && w.follows() && !w.maybe {
		w.steps = slices.Insert(w.steps, 0, before(noSpan, ""))
		w.at = 1
	}
}

// absentBefore reports whether the object was not there when the write was made.
func (w *placing) absentBefore() bool { return w.at == 0 || w.steps[w.at-1].phase == phaseAbsent }

// isEnding reports whether the write, or what it overlaps or follows, may be the object's deletion.
func (w *placing) isEnding() bool {
	if w.unchanged && w.content != nil && w.content.Deleting {
		return true
	}
	for i := range w.steps[:w.at] {
		s := &w.steps[i]
		if (i == w.at-1 || s.overlaps(w.span)) && (s.isEnding() || s.phase == phaseAbsent) {
			return true
		}
	}
	return false
}

// tellsNothing reports whether the steps are the same without the write.
func (w *placing) tellsNothing(ending bool) bool {
	if !w.clash {
		return w.absentBefore() && (!w.creates || w.absent || w.maybe && w.ending)
	}
	if last := &w.steps[w.at-1]; last.phase == phaseAbsent && !last.assumed && w.unchanged &&
		(w.o.key.Resource.RBACKind() == 0 || w.content != nil && w.content.Deleting) {
		return true // it had ended when both were done: none of the two can make an object
	}
	return w.unchanged && w.content == nil && !ending // whichever came last
}

// step returns the step of a write of which no more is known than that it was done.
func (w *placing) step(ending bool) step {
	s := step{span: w.span, phase: phaseUnknown, ending: w.ending || w.clash && ending}
	if w.absent && !w.clash {
		s.phase = phaseAbsent
		return s
	}
	if !w.created {
		s.as = carryDoubt
	}
	if w.creates && w.at > 0 && !w.clash && !w.created && !w.absent && !w.ending {
		s.as |= carryRole
	}
	return s
}

// lost makes the step one of a write that may have been done.
func (w *placing) lost(s *step) {
	s.as |= carryLost
	s.content = w.content
	if w.created {
		s.as |= carryMade
	}
	if w.maybe {
		s.as |= carryLate
	}
	if w.gone {
		s.as |= carryGone
	}
}

// written makes the step one of a write that was done and whose content is known.
func (w *placing) written(s *step) {
	s.phase, s.content, s.as = phasePresent, w.content, carryNothing
	switch {
	case w.absentBefore():
	case w.created:
		s.uid = w.replace()
	default:
		s.uid = w.steps[w.at-1].uid
	}
	if w.unchanged {
		s.as |= carryContent
	}
	if w.update {
		s.as |= carryLife
	}
	if w.content.Patch() != nil {
		s.as |= carryPatched
	}
}

// replace makes place for an object that was made while another was taken to be there, which had
// gone, unseen. It returns the uid of the new one, where only its end was seen.
func (w *placing) replace() string {
	before := w.steps[w.at-1]
	if before.bare() { // this is how it came
		w.steps = slices.Delete(w.steps, w.at-1, w.at)
		w.at--
		return before.uid
	}
	uid := w.o.unnamed(w.steps[:w.at], w.blind)
	if before.phase == phasePresent {
		w.steps = slices.Insert(w.steps, w.at, step{span: span{before.na, w.na}, phase: phaseAbsent, assumed: true})
		w.at++
	}
	return uid
}

// seenAgain returns the step before the write once more for every time it was seen later as it was before: from then on it is known again.
func (w *placing) seenAgain() (again []step) {
	if w.at == 0 {
		return nil
	}
	before := w.steps[w.at-1]
	for i := range w.o.versions {
		v := &w.o.versions[i]
		if before.rv == v.rv && before.uid == v.uid && v.rv != 0 && v.seen.last.nb >= w.na+w.lingers() {
			before.span, before.assumed = v.seen.last, true
			again = append(again, before)
		}
	}
	return again
}
