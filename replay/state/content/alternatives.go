package content

import (
	"crypto/rand"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// A binding never changes its role. One whose end or beginning is in doubt may be any of several bindings to different roles; at most, all
// of them grant. View.Most has each of them: the first under the name of the binding, the others under names that only Most has.

// maxAlternatives bounds the roles that are told apart; a binding that may name more grants anything.
const maxAlternatives = 64

// Instead is part of the names of what a binding may be instead. No client can guess it.
var Instead = "/or/" + rand.Text() + "/"

// GrantsAnything is the name of a role, in View.Most only, that grants anything.
var GrantsAnything = "anything" + Instead

// Each applies made to a content and to what it may be instead.
func (c *Content) Each(made func(*Content) *Content) *Content {
	if c == nil {
		return nil
	}
	d := *made(c)
	d.Or = c.Or.Each(made)
	return &d
}

// IsPart reports whether a content, or what it may be instead, holds more than is known.
func (c *Content) IsPart() bool { return c != nil && (c.Cut || c.Or.IsPart()) }

// eitherBinding returns a content that grants all that either of two bindings, or what they may be instead, grants.
func eitherBinding(c, d *Content) *Content {
	var all []*Content
	for a := c; a != nil; a = a.Or {
		all = append(all, a)
	}
	for b := d; b != nil; b = b.Or {
		_, ref, _ := b.Binding()
		i := 0
		for ; i < len(all); i++ {
			if _, other, _ := all[i].Binding(); other == ref {
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
		whoever.Object = toAnything(whoever.Object)
		for _, a := range all[1:] {
			whoever = *withSubjectsOf(&whoever, a)
		}
		all = []*Content{&whoever}
	}
	var out *Content
	for i := len(all) - 1; i >= 0; i-- {
		a := *all[i]
		a.Or, out = out, &a
	}
	return out
}

// withSubjectsOf returns a binding with the subjects of another added.
func withSubjectsOf(c, other *Content) *Content {
	d := *c
	d.Digest, d.Cut = c.Digest^other.Digest, c.Cut || other.Cut
	if c.isEverything() || other.isEverything() {
		return d.Everything()
	}
	had, _, _ := c.Binding()
	more, _, _ := other.Binding()
	subjects, ok := join(had, more, subjectKey, true)
	if !ok {
		return d.Everything()
	}
	d.Object = granting(c.Object, nil, subjects)
	return &d
}

// toAnything returns a binding to the role that grants anything.
func toAnything(object any) any {
	return rebound(object, func(_ *metav1.ObjectMeta, ref *rbacv1.RoleRef) {
		*ref = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: GrantsAnything}
	})
}

// rebound returns a copy of a binding with its name or role changed, and anything else as it is.
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

// Alternatives returns the changes that give an index of all that may hold what else the object may be, and remove what it may have been
// before. A nil content is not in doubt.
func (c *Content) Alternatives(most *rbacindex.Snapshot, k rbacindex.Key) (changes []rbacindex.Change) {
	for a := c; a != nil; a = a.Or {
		if _, ref, ok := a.Binding(); ok && ref.Name == GrantsAnything {
			role := &rbacv1.ClusterRole{Rules: anything}
			role.Name = GrantsAnything
			changes = append(changes, rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: GrantsAnything},
				Object: role})
		}
	}
	at, i := k, 1
	if c != nil {
		for a := c.Or; a != nil; a, i = a.Or, i+1 {
			at.Name = k.Name + Instead + strconv.Itoa(i)
			changes = append(changes, rbacindex.Change{Key: at, Object: named(a.Object, at.Name)})
		}
	}
	for most != nil {
		at.Name = k.Name + Instead + strconv.Itoa(i)
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

// ObjectOf returns the object to which a key of View.Most belongs: a binding that may name several roles has several keys there. It returns
// any other key as it is.
func ObjectOf(k rbacindex.Key) rbacindex.Key {
	k.Name, _, _ = strings.Cut(k.Name, Instead)
	return k
}

// RoleOf returns the role that the object of a binding names.
func RoleOf(k rbacindex.Key, object any) rbacindex.Key {
	_, ref, _ := (&Content{Object: object}).Binding()
	if ref.Kind == "Role" {
		return rbacindex.Key{Kind: rbacindex.KindRole, Namespace: k.Namespace, Name: ref.Name}
	}
	return rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: ref.Name}
}
