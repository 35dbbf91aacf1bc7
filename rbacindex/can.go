package rbacindex

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

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
