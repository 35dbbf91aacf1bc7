package rbacindex

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// CoverSteps is how much work one comparison of rules may take: some milliseconds.
const CoverSteps = 1 << 19

// Coverage reports whether rules cover others.
type Coverage struct {
	// Uncovered are the first pieces that are not covered, in the order of the wanted rules:
	// one API group, resource, verb and name (or one path and verb) each.
	Uncovered []rbacv1.PolicyRule
	// More: there are, or may be, further ones.
	More bool
	// TooCostly means that the steps did not suffice. Nothing uncovered has been found.
	TooCostly bool
}

// Covered reports that everything is covered.
func (c *Coverage) Covered() bool { return len(c.Uncovered) == 0 && !c.TooCostly }

// Covers reports whether the owner's rules cover the wanted ones, and lists up to most pieces
// that they do not. It decides as Covers of Kubernetes' component-helpers/auth/rbac/validation,
// on which the apiserver's check against escalation rests:
//
//   - one rule of the owner has to cover a piece whole;
//   - "*" as a verb, group or resource is covered by "*" only, never by a list of all there is;
//   - a piece for every name is covered by rules for every name only.
//
// Rules are compared list by list, not piece by piece: the cost follows the lengths of the
// lists, and never the product that they stand for. What takes more than the steps given is
// too costly.
func Covers(owner, wanted []rbacv1.PolicyRule, most int, steps *Steps) Coverage {
	return covers(pointers(nil, owner), wanted, most, steps)
}

// pointers appends pointers to rules.
func pointers(to []*rbacv1.PolicyRule, rules []rbacv1.PolicyRule) []*rbacv1.PolicyRule {
	for i := range rules {
		to = append(to, &rules[i])
	}
	return to
}

// Covers reports whether what the subject holds, by ClusterRoleBindings and by RoleBindings of
// the namespace when that is set, covers the wanted rules; see the function Covers.
func (s *Snapshot) Covers(user string, groups []string, namespace string, wanted []rbacv1.PolicyRule, most int, steps *Steps) Coverage {
	var owner []*rbacv1.PolicyRule
	seen := map[*role]bool{}
	for _, sc := range s.scopes(user, groups, namespace) {
		for _, u := range sc.units {
			r := u.role()
			if !seen[r] {
				seen[r], owner = true, pointers(owner, r.rules())
			}
		}
	}
	return covers(owner, wanted, most, steps)
}

// compactPieces joins pieces about one resource and name, as the apiserver does before it lists
// what is missing. Paths stay separate.
func compactPieces(pieces []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type about struct {
		group, resource, name string
		named                 bool
	}
	at := map[about]int{}
	var out []rbacv1.PolicyRule
	for _, r := range pieces {
		if len(r.NonResourceURLs) > 0 {
			out = append(out, r)
			continue
		}
		k := about{group: r.APIGroups[0], resource: r.Resources[0], named: len(r.ResourceNames) > 0}
		if k.named {
			k.name = r.ResourceNames[0]
		}
		if i, ok := at[k]; ok {
			out[i].Verbs = append(out[i].Verbs, r.Verbs...)
			continue
		}
		at[k] = len(out)
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b rbacv1.PolicyRule) int { return strings.Compare(ruleText(&a), ruleText(&b)) })
	return slices.CompactFunc(out, func(a, b rbacv1.PolicyRule) bool { return ruleText(&a) == ruleText(&b) })
}

// ruleText writes a rule as the apiserver's messages have it, for example
//
//	{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}
func ruleText(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, p := range []struct {
		name string
		list []string
	}{{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs}, {"ResourceNames", r.ResourceNames},
		{"Verbs", r.Verbs}} {
		if len(p.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", p.name, p.list))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
