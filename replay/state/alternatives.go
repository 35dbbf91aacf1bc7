package state

import (
	"strconv"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/content"
)

// InDoubt returns the object in doubt that a key of RBAC or of Most is of; ok is false for any other.
func (v *View) InDoubt(k rbacindex.Key) (object rbacindex.Key, ok bool) {
	object = content.ObjectOf(k)
	return object, v.IsDoubted(object)
}

// RolesOf returns the roles that a binding names, or of which it may name one where it is in doubt; open
// tells that it may name others.
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
