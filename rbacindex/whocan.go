package rbacindex

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// groupMasters may do everything, by an authorizer of its own that stands before RBAC.
const groupMasters = kubenames.Masters

// Access is one subject that a request is granted to, and all that grants it in one scope.
type Access struct {
	// Name is a user name (of a ServiceAccount: the one its tokens carry) or, with Group set,
	// a group name.
	Name  string
	Group bool
	// Namespace is where the grants hold: "" for those of ClusterRoleBindings, which hold
	// everywhere, else that of the RoleBindings.
	Namespace string
	// Grants are all granting paths in the scope, one per binding, ordered by role and binding
	// name.
	Grants []Grant
	// Superuser is set for the group system:masters, which needs no grant; Grants may be empty.
	Superuser bool
}

// Subject returns the subject as a binding would name it: a user name that a ServiceAccount's
// tokens carry is that ServiceAccount.
func (a Access) Subject() rbacv1.Subject {
	if a.Group {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: a.Name}
	}
	if ns, name, ok := kubenames.SplitServiceAccount(a.Name); ok {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.Name}
}

// WhoCan returns every subject that a request is granted to, with every grant: who would be
// allowed to make it by being that user or in that group alone. It is the exact inverse of
// Authorize; a.User and a.Groups are not looked at. A subject stands in it once for each scope
// its grants hold in.
//
// With a.Namespace set, ClusterRoleBindings count and the RoleBindings there; without, as
// for requests that name no namespace, ClusterRoleBindings only; with everywhere, the
// RoleBindings of all namespaces as well. Paths know no namespace.
//
// The group system:masters is always there. What a subject may do by being in a group stands
// under the group.
//
// The order is by kind (groups first), name and namespace. The cost is that of the answer,
// not of the policy, once the roles have been turned round, which the first call does.
func (s *Snapshot) WhoCan(a *Attributes, everywhere bool) []Access {
	ns := a.Namespace
	if !a.ResourceRequest {
		ns, everywhere = "", false
	}
	var q query
	q.init(s.family.hasher, a)
	c := collector{at: make(map[holder]int)}
	masters := c.access(holder{name: groupMasters, group: true})
	c.out[masters].Superuser = true
	s.allowing(&q, ns, everywhere, func(r *role, rule int32) { s.bound(r, ns, everywhere, rule, c.add) })
	for i := range c.out {
		slices.SortFunc(c.out[i].Grants, func(x, y Grant) int { return compareRefs(x.ref, y.ref) })
	}
	slices.SortFunc(c.out, func(x, y Access) int {
		if x.Group != y.Group {
			if x.Group {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Namespace, y.Namespace))
	})
	return c.out
}

// bound visits the bindings to a role in the scopes asked for.
func (s *Snapshot) bound(r *role, ns string, everywhere bool, rule int32, visit func(*binding, int32)) {
	h := s.family.hasher
	each := func(b *binding) bool {
		visit(b, rule)
		return true
	}
	t := &s.clusterRoleUses
	if r.r != nil {
		t = &s.roleUses
	}
	space, name := r.id()
	u, ok := t.get(h, space, name)
	if !ok {
		return
	}
	u.cluster.all(each)
	switch {
	case everywhere:
		u.spaces.all(func(in *usesSpace) bool { return in.bindings.all(each) })
	case ns != "":
		if in, ok := u.spaces.get(h, "", ns); ok {
			in.bindings.all(each)
		}
	}
}

// holder is one row of the answer.
type holder struct {
	name, ns string
	group    bool
}

// collector gathers grants by who holds them.
type collector struct {
	out []Access
	at  map[holder]int // index into out
}

func (c *collector) access(k holder) int {
	i, ok := c.at[k]
	if !ok {
		i = len(c.out)
		c.at[k] = i
		c.out = append(c.out, Access{Name: k.name, Group: k.group, Namespace: k.ns})
	}
	return i
}

// add enters a binding for each of its subjects. Of subjects that are the same to RBAC the
// first is the one reported.
func (c *collector) add(b *binding, rule int32) {
	ns, _ := b.id()
	subjects := b.subjects()
	for i := range subjects {
		name, group, ok := b.principal(&subjects[i])
		if !ok {
			continue
		}
		a := &c.out[c.access(holder{name, ns, group})]
		if n := len(a.Grants); n == 0 || a.Grants[n-1].ref.b != b {
			a.Grants = append(a.Grants, Grant{ref: &ref{b: b, subject: int32(i)}, rule: rule})
		}
	}
}
