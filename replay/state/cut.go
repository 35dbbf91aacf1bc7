package state

import (
	"slices"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/content"
)

// PartRecorded is what is said of an object that holds more than is known.
const PartRecorded = "not all that it holds was recorded"

// IsPart tells whether an object is doubted because it holds more than is known.
func (v *View) IsPart(k rbacindex.Key) bool {
	_, found := slices.BinarySearchFunc(v.parts, k, compareKeys)
	return found
}

// ofRoleAlone returns the bounds of a binding after a write nobody knows the content of: its role is as
// before, its subjects are not known. They are empty for a role.
func (s *step) ofRoleAlone() content.Bounds {
	before := s.between()
	if _, _, ok := before.Most.Binding(); !ok {
		return content.Bounds{}
	}
	b := content.Bounds{Most: before.Most.Each((*content.Content).Everything)}
	if b.Most.Or == nil {
		b.There = content.WithList(before.Most, nil)
		b.There.Cut = true
	}
	if !s.isEnding() {
		b.Least = b.There
	}
	return b
}

// bound gives the steps of objects that are known in part their bounds.
func bound(steps []step) {
	for i := range steps {
		if s := &steps[i]; s.phase == phasePresent && s.content != nil && s.content.Cut {
			s.Bounds = s.content.Bounds()
			s.phase, s.content, s.ending = phaseUnknown, nil, s.isEnding()
		}
	}
}
