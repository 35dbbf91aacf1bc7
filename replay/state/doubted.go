package state

import (
	"github.com/retrial-io/retrial/replay/state/content"
)

// A write whose answer was lost, and a deletion nobody saw the end of, leave an object of the RBAC
// kinds in doubt between two contents that are known: what it was before, and what was asked for.
// RBAC rules only add up, so what holds in both and what holds in either bound every answer.

// lost returns the bounds of a step whose write may have been done. made says that the write could only make the object; wanted is what it
// would have become, nil for its end, or a patch of what it was; before is the step it follows. changed is false if the write changed
// nothing.
func lost(before *step, made bool, wanted *content.Content) (b content.Bounds, changed bool) {
	p := wanted.Patch()
	switch {
	case before.phase == phasePresent && made, before.phase == phaseAbsent && wanted == nil:
		return b, false // there was one already, or none to end
	case before.phase == phaseAbsent && p != nil:
		return p.Made.Bounds().Perhaps(), p.Made != nil || p.Blind // no patch but an applied configuration makes one
	case before.phase == phaseAbsent:
		return wanted.Bounds().Perhaps(), true
	}
	b = before.between()
	switch {
	case b.Most == nil:
		return content.Bounds{}, true
	case wanted == nil:
		return b.Perhaps(), true
	case p == nil && b.Least != nil && content.OtherRole(b.Least, wanted):
		return before.Bounds, false // an apiserver refuses it
	case p == nil && before.phase == phasePresent && !before.isEnding() && wanted.SameMeaning(before.content):
		return before.Bounds, false
	}
	var after content.Bounds
	if p == nil {
		after = wanted.Bounds()
	} else if now, is := p.Bounds(b); is != nil && !before.isEnding() && is.SameMeaning(b.Least) {
		return before.Bounds, false
	} else {
		after = now
	}
	after = content.Bounds{Least: content.Both(b.Least, after.Least), Most: content.Either(b.Most, after.Most),
		There: content.Both(b.There, after.There)}
	if p != nil && b.Least == nil && (p.Made != nil || p.Blind) { // there may have been none
		after.Most, after.There = content.Either(after.Most, p.Made.Bounds().Most), content.Both(after.There, p.Made.Bounds().Least)
	}
	return after, true
}

// lost derives a step whose write may have been done, and may end an object that is being deleted.
func (s *step) lost(before *step, ending bool) {
	s.mayEnd = before.phase == phaseUnknown && before.mayEnd || s.as&carryLate != 0 && (ending || s.content == nil)
	b, changed := lost(before, s.as&carryMade != 0, s.content)
	if !changed {
		at := s.span
		*s = *before
		s.span, s.as = at, carryNothing
		return
	}
	if s.content, s.Bounds = nil, b; ending {
		s.Least = nil // it may have taken away what held the object back
	}
}

// between returns what is known of the content of a step.
func (s *step) between() content.Bounds {
	if s.phase == phasePresent {
		return s.content.Bounds()
	}
	return s.Bounds
}

// patched derives a step whose content is a patch of what was before.
func (s *step) patched(before *step) {
	p := s.content.Patch()
	b := before.between()
	ending := before.isEnding()
	s.phase, s.content, s.ending = phaseUnknown, nil, ending
	if before.phase == phaseAbsent || b.Most == nil {
		return
	}
	after, is := p.Bounds(b)
	switch {
	case ending:
		after.Least = nil // it may have taken away the last that held the object back
	case is != nil:
		s.phase, s.content = phasePresent, is
		return
	}
	s.Bounds = after
}

// kept derives a step that found what was in doubt there and left it unchanged.
func (s *step) kept(before *step) {
	s.phase, s.content, s.Bounds = phaseUnknown, nil, before.Bounds
	if s.mayEnd = before.mayEnd && s.nb < before.na+settleAfter; s.mayEnd {
		return
	}
	if s.Least == nil {
		s.Least = s.There
	}
	if s.Least != nil && s.Most.SameMeaning(s.Least) {
		s.phase, s.content, s.Bounds = phasePresent, s.Most, content.Bounds{}
	}
}
