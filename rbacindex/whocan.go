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

// Held is what a subject holds in one scope.
type Held struct {
	// Namespace is "" for what ClusterRoleBindings give, which holds everywhere, else the
	// namespace of the RoleBindings.
	Namespace string
	// Rules are the rules, merged; see Can.
	Rules []HeldRule
	// Missing are the roles that bindings of this scope name and that do not exist, each once.
	Missing []Key
}

// HeldRule is a rule that one or more grants together give.
type HeldRule struct {
	rbacv1.PolicyRule
	// By are the grants, each a binding and one rule of its role.
	By []Source
}

// Source is a grant and what it contributes to a merged rule.
type Source struct {
	Grant
	// Verbs are those of the merged rule that this grant gives; nil if it gives them all.
	Verbs []string
}

// Can returns everything a subject may do, merged to few rules, with the grants each rule
// comes from: what holds cluster-wide first, then each namespace in which RoleBindings give
// something or name roles that do not exist, by name. A request in a namespace is allowed
// exactly if a rule of the cluster-wide scope or of that namespace allows it (RuleAllows).
//
// Rules are merged where that changes nothing: verbs of the same resource, then resources,
// resourceNames and API groups with the same verbs by the same grants. "*" among the verbs covers
// the others. A rule about resources and paths becomes two. In namespaces there are no paths:
// requests for them name no namespace, so RoleBindings never give any.
//
// system:masters is ignored.
func (s *Snapshot) Can(user string, groups []string) []Held {
	var who []*principal
	h := s.family.hasher
	if p, ok := s.users.get(h, "", user); ok {
		who = append(who, p)
	}
	for i, name := range groups {
		if p, ok := s.groups.get(h, "", name); ok && !slices.Contains(groups[:i], name) {
			who = append(who, p)
		}
	}
	m := merger{s: s, known: map[string][]mergedRule{}}
	var refs []*ref
	spaces := map[string][]*ref{}
	for _, p := range who {
		refs = p.cluster.appendTo(refs)
		p.spaces.all(func(sp *space) bool {
			spaces[sp.ns] = sp.refs.appendTo(spaces[sp.ns])
			return true
		})
	}
	out := []Held{m.held("", refs)}
	for ns, refs := range spaces {
		if held := m.held(ns, refs); len(held.Rules)+len(held.Missing) > 0 {
			out = append(out, held)
		}
	}
	slices.SortFunc(out, func(a, b Held) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}
