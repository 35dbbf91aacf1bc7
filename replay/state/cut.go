package state

import (
	"slices"
	"strconv"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/content"
)

// PartRecorded is the reason given for an object that holds more than is known.
const PartRecorded = "not all that it holds was recorded"

// IsPart reports whether an object is doubted because it holds more than is known.
func (v *View) IsPart(k rbacindex.Key) bool {
	_, found := slices.BinarySearchFunc(v.parts, k, compareKeys)
	return found
}

// ofRoleAlone returns the bounds of a binding after a write of unknown content: its role is as before, its subjects are unknown. They are
// empty for a role.
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

// bound sets the bounds of the steps of partly known objects.
func bound(steps []step) {
	for i := range steps {
		if s := &steps[i]; s.phase == phasePresent && s.content != nil && s.content.Cut {
			s.Bounds = s.content.Bounds()
			s.phase, s.content, s.ending = phaseUnknown, nil, s.isEnding()
		}
	}
}

// InDoubt returns the object in doubt to which a key of RBAC or of Most belongs; ok is false for any other key.
func (v *View) InDoubt(k rbacindex.Key) (object rbacindex.Key, ok bool) {
	object = content.ObjectOf(k)
	return object, v.IsDoubted(object)
}

// RolesOf returns the role that a binding names, or those it may name if it is in doubt; open says that it may name others too.
func (v *View) RolesOf(k rbacindex.Key) (roles []rbacindex.Key, open bool) {
	if object, ok := v.RBAC.Get(k); ok { // for life
		return []rbacindex.Key{content.RoleOf(k, object)}, false
	}
	if !v.IsDoubted(k) {
		return nil, v.IsUnknown(k)
	}
	at := k
	for i := 1; ; i++ {
		object, ok := v.Most.Get(at)
		if !ok {
			return roles, open
		}
		if role := content.RoleOf(k, object); role.Name == content.GrantsAnything {
			open = true
		} else {
			roles = append(roles, role)
		}
		at.Name = k.Name + content.Instead + strconv.Itoa(i)
	}
}
