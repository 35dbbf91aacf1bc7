package state

import (
	"crypto/rand"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// A binding names its role for life. One whose end or beginning is in doubt may be one of several
// bindings to different roles, of which at the most all grant. View.Most has each of them: the first
// under the name of the binding, the others under names that only Most has.

// maxAlternatives bounds the roles that are told apart; a binding that may name more gives anything.
const maxAlternatives = 64

// instead is in the names of what a binding may be instead. No client can guess it.
var instead = "/or/" + rand.Text() + "/"

// grantsAnything is the name of a role of View.Most alone that grants anything.
var grantsAnything = "anything" + instead

// each returns what a content, and what it may be instead, is made into.
func (c *content) each(made func(*content) *content) *content {
	if c == nil {
		return nil
	}
	d := *made(c)
	d.or = c.or.each(made)
	return &d
}

// isPart tells whether a content, or what it may be instead, holds more than is known.
func (c *content) isPart() bool { return c != nil && (c.cut || c.or.isPart()) }

// eitherBinding returns what grants all that one of two bindings, or what they may be instead, does.
func eitherBinding(c, d *content) *content {
	var all []*content
	for a := c; a != nil; a = a.or {
		all = append(all, a)
	}
	for b := d; b != nil; b = b.or {
		_, ref, _ := b.binding()
		i := 0
		for ; i < len(all); i++ {
			if _, other, _ := all[i].binding(); other == ref {
				all[i] = withSubjectsOf(all[i], b)
				break
			}
		}
		if i == len(all) {
			all = append(all, b)
		}
	}
	if len(all) > maxAlternatives {
		whoever := *all[0]
		whoever.object = toAnything(whoever.object)
		for _, a := range all[1:] {
			whoever = *withSubjectsOf(&whoever, a)
		}
		all = []*content{&whoever}
	}
	var out *content
	for i := len(all) - 1; i >= 0; i-- {
		a := *all[i]
		a.or, out = out, &a
	}
	return out
}

// withSubjectsOf returns a binding that has the subjects of another, too.
func withSubjectsOf(c, other *content) *content {
	d := *c
	d.digest, d.cut = c.digest^other.digest, c.cut || other.cut
	if c.isEverything() || other.isEverything() {
		return d.everything()
	}
	had, _, _ := c.binding()
	more, _, _ := other.binding()
	subjects, ok := join(had, more, subjectKey, true)
	if !ok {
		return d.everything()
	}
	d.object = granting(c.object, nil, subjects)
	return &d
}

// toAnything returns a binding to the role that grants anything.
func toAnything(object any) any {
	return rebound(object, func(_ *metav1.ObjectMeta, ref *rbacv1.RoleRef) {
		*ref = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grantsAnything}
	})
}

// rebound returns a copy of a binding of which the name or the role was changed; anything else is returned
// as it is.
func rebound(object any, change func(*metav1.ObjectMeta, *rbacv1.RoleRef)) any {
	switch o := object.(type) {
	case *rbacv1.RoleBinding:
		x := *o
		change(&x.ObjectMeta, &x.RoleRef)
		return &x
	case *rbacv1.ClusterRoleBinding:
		x := *o
		change(&x.ObjectMeta, &x.RoleRef)
		return &x
	}
	return object
}

// alternatives returns the changes by which an index of all that may hold has what else the object may
// be, and nothing that it may have been before. A nil content is one that is not in doubt.
func (c *content) alternatives(most *rbacindex.Snapshot, k rbacindex.Key) (changes []rbacindex.Change) {
	for a := c; a != nil; a = a.or {
		if _, ref, ok := a.binding(); ok && ref.Name == grantsAnything {
			role := &rbacv1.ClusterRole{Rules: anything}
			role.Name = grantsAnything
			changes = append(changes, rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: grantsAnything}, Object: role})
		}
	}
	at, i := k, 1
	if c != nil {
		for a := c.or; a != nil; a, i = a.or, i+1 {
			at.Name = k.Name + instead + strconv.Itoa(i)
			changes = append(changes, rbacindex.Change{Key: at, Object: named(a.object, at.Name)})
		}
	}
	for most != nil {
		at.Name = k.Name + instead + strconv.Itoa(i)
		if _, there := most.Get(at); !there {
			break
		}
		changes = append(changes, rbacindex.Change{Key: at})
		i++
	}
	return changes
}

// named returns a binding under another name.
func named(object any, name string) any {
	return rebound(object, func(m *metav1.ObjectMeta, _ *rbacv1.RoleRef) { m.Name = name })
}

// ObjectOf returns the object that a key of View.Most is of: a binding that may name several roles has
// several keys there. Any other key is returned as it is.
func ObjectOf(k rbacindex.Key) rbacindex.Key {
	k.Name, _, _ = strings.Cut(k.Name, instead)
	return k
}

// InDoubt returns the object in doubt that a key of RBAC or of Most is of; ok is false for any other.
func (v *View) InDoubt(k rbacindex.Key) (object rbacindex.Key, ok bool) {
	object = ObjectOf(k)
	return object, v.IsDoubted(object)
}

// RolesOf returns the roles that a binding names, or of which it may name one where it is in doubt; open
// tells that it may name others.
func (v *View) RolesOf(k rbacindex.Key) (roles []rbacindex.Key, open bool) {
	if object, ok := v.RBAC.Get(k); ok { // for life
		return []rbacindex.Key{roleOf(k, object)}, false
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
		if role := roleOf(k, object); role.Name == grantsAnything {
			open = true
		} else {
			roles = append(roles, role)
		}
		at.Name = k.Name + instead + strconv.Itoa(i)
	}
}

// roleOf returns the role that the object of a binding names.
func roleOf(k rbacindex.Key, object any) rbacindex.Key {
	_, ref, _ := (&content{object: object}).binding()
	if ref.Kind == "Role" {
		return rbacindex.Key{Kind: rbacindex.KindRole, Namespace: k.Namespace, Name: ref.Name}
	}
	return rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: ref.Name}
}
