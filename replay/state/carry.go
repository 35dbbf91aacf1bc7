package state

import (
	"slices"

	"github.com/retrial-io/retrial/replay/state/kept"
)

// carry says what a step takes from the one before it.
type carry uint16

const carryNothing carry = 0

const (
	// carryContent: what is kept is as before; the step's content, if any, is of the metadata.
	carryContent carry = 1 << iota
	// carryLife: if its deletion was requested, it is unknown whether the object still exists.
	carryLife
	// carryDoubt: if its deletion was requested, it is still being deleted.
	carryDoubt
	// carryLost: the write may have been done; the step's content is what it asked for, nil for the object's end.
	carryLost
	// carryMade: and could only make the object.
	carryMade
	// carryRole: what was written is not known, but a binding names the role it named before.
	carryRole
	// carryPatched: the step's content is a patch of what was before.
	carryPatched
	// carryShown: a request found the object there.
	carryShown
	// carryLate: the write may be done for a while after its answer was lost.
	carryLate
	// carryGone: by then the object may have gone, unseen.
	carryGone
)

// carry derives the steps that take something from the one before them. Only finalizers hold a node that is being deleted, and a write of
// its status, of which there are too many to keep, may remove the last one.
func (o *object) carry(steps []step) {
	var before step // absent
	for i := range steps {
		if i > 0 {
			before = steps[i-1]
		}
		if steps[i].as != carryNothing {
			o.carryOver(before, steps[i:])
		}
	}
	if o.key.Resource != kept.ResNode {
		return
	}
	for i := range steps {
		if s := &steps[i]; s.phase == phasePresent && s.content.Deleting {
			s.unknown(true)
		}
	}
}

// unknown makes the step one of an object of which nothing is known, but perhaps that it is being deleted.
func (s *step) unknown(ending bool) { s.phase, s.content, s.ending = phaseUnknown, nil, ending }

// carryOver works out the first of some steps from the one before it.
func (o *object) carryOver(before step, steps []step) {
	s := &steps[0]
	sameLife := s.uid == "" || before.uid == "" || s.uid == before.uid
	there := before.phase == phasePresent && sameLife
	if s.uid == "" && there {
		s.uid = before.uid
	}
	ending := before.isEnding() || s.isEnding()
	if s.as&carryDoubt != 0 {
		s.ending = ending
	}
	switch {
	case s.as&carryLost != 0:
		if s.as&carryGone != 0 {
			before.phase, before.content, before.Bounds = phaseUnknown, nil, before.between().Perhaps()
		}
		s.lost(&before, ending)
	case s.as&carryShown != 0:
		s.found(&before)
	case s.as&carryRole != 0:
		s.Bounds = before.ofRoleAlone()
	case s.as&carryPatched != 0:
		s.patched(&before)
	case s.as&carryLife != 0 && before.isEnding() && !o.outlives(steps):
		s.unknown(true)
	case s.as&carryContent == 0:
	case there:
		s.content = before.content.With(s.content)
	case before.phase == phaseUnknown && before.Most != nil && !ending && sameLife:
		s.kept(&before)
	case s.as&carryLife == 0 && s.content != nil && o.key.Resource.RBACKind() == 0: // its metadata is all that is known, and it is there
	default:
		s.unknown(ending)
	}
}

// outlives reports whether what follows a write shows that the object still existed: another write of it, or its end, began after that one
// was done.
func (o *object) outlives(steps []step) bool {
	if len(steps) < 2 {
		return false
	}
	s, next := &steps[0], &steps[1]
	switch {
	case next.assumed || next.nb < s.na || next.as&carryLife != 0:
		return false
	case next.phase == phaseAbsent:
		return true
	}
	return next.uid != "" && next.uid == s.uid && !slices.ContainsFunc(o.versions, func(v version) bool {
		return v.rv == next.rv && v.uid == next.uid && v.made
	})
}

// isEnding reports whether the deletion of the object has been requested, or may have been.
func (s *step) isEnding() bool { return s.ending || s.content != nil && s.content.Deleting }
