package leastpriv

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// atom is the smallest thing a rule can grant: one verb on one resource of one group, of any name
// or of one, or on one URL. Wildcards are kept as written.
type atom struct {
	verb, group, resource string // resource with its subresource, as rules write it
	name                  string
	named                 bool
	url                   string // non-resource: the other fields but verb are empty
}

// atomsOf splits a rule into atoms.
func atomsOf(r *rbacv1.PolicyRule) []atom {
	var out []atom
	for _, verb := range r.Verbs {
		for _, url := range r.NonResourceURLs {
			out = append(out, atom{verb: verb, url: url})
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				if len(r.ResourceNames) == 0 {
					out = append(out, atom{verb: verb, group: group, resource: resource})
				}
				for _, name := range r.ResourceNames {
					out = append(out, atom{verb: verb, group: group, resource: resource, name: name, named: true})
				}
			}
		}
	}
	return out
}

// wild reports whether an atom grants more than one request shape.
func (a *atom) wild() bool {
	return a.verb == "*" || a.group == "*" || a.resource == "*" || strings.HasPrefix(a.resource, "*/") || strings.HasSuffix(a.url, "*")
}

// covers reports whether one rule grants the whole of an atom, as the apiserver's check on
// role writes understands it: a wildcard needs a wildcard.
func covers(r *rbacv1.PolicyRule, a *atom) bool {
	if !slices.Contains(r.Verbs, a.verb) && !slices.Contains(r.Verbs, "*") {
		return false
	}
	if a.url != "" {
		return slices.ContainsFunc(r.NonResourceURLs, func(own string) bool {
			return own == "*" || own == a.url || strings.HasSuffix(own, "*") && strings.HasPrefix(a.url, strings.TrimRight(own, "*"))
		})
	}
	if !slices.Contains(r.APIGroups, a.group) && !slices.Contains(r.APIGroups, "*") {
		return false
	}
	_, sub, hasSub := strings.Cut(a.resource, "/")
	if !slices.ContainsFunc(r.Resources, func(own string) bool {
		return own == "*" || own == a.resource || hasSub && own == "*/"+sub
	}) {
		return false
	}
	if len(r.ResourceNames) == 0 {
		return true
	}
	return a.named && slices.Contains(r.ResourceNames, a.name)
}

// holds reports whether a subject's rules, together, cover all of the wanted ones in a namespace.
// What is too large to compare counts as not held: a writer of such a role keeps the verb that
// allows it.
func holds(s *rbacindex.Snapshot, user string, groups []string, namespace string, wanted []rbacv1.PolicyRule) bool {
	c := s.Covers(user, groups, namespace, wanted, 1, rbacindex.NewSteps(rbacindex.CoverSteps))
	return c.Covered()
}

// Bounds on how much of a policy is weighed. The author of a role controls what its lists multiply
// to.
const (
	allSteps   = 1 << 26 // of all subjects of an Advisor
	mostSteps  = 1 << 22 // of one subject, for each of: what it holds, what its groups grant, and what remains
	leastSteps = 1 << 16 // of one subject, whatever others used
	mostAtoms  = 1 << 16 // weighed for one subject
	ruleAtoms  = 1 << 13 // weighed of one rule; real rules have some hundreds
)

// effort is the budget that remains for weighing one subject. A step is a string compared or an
// atom examined.
type effort struct {
	left, atoms int
	all         *int // of allSteps
}

// take uses n steps and reports whether that many remained; otherwise it uses none.
func (e *effort) take(n int) bool {
	if n > e.left {
		return false
	}
	e.left -= n
	*e.all -= min(n, *e.all)
	return true
}

// weighs reports whether a rule may be split into atoms.
func (e *effort) weighs(r *rbacv1.PolicyRule) bool {
	n := atomCount(r)
	if n > ruleAtoms || n > e.atoms || !e.take(n) {
		return false
	}
	e.atoms -= n
	return true
}

// atomCount returns how many atoms a rule stands for.
func atomCount(r *rbacv1.PolicyRule) int {
	return len(r.Verbs) * (len(r.NonResourceURLs) + len(r.APIGroups)*len(r.Resources)*max(1, len(r.ResourceNames)))
}

// length returns how many strings of a rule an atom is compared with.
func length(r *rbacv1.PolicyRule) int {
	return 1 + len(r.Verbs) + len(r.NonResourceURLs) + len(r.APIGroups) + len(r.Resources) + len(r.ResourceNames)
}

// lengths returns the sum of length over several rules.
func lengths(rules []rbacv1.PolicyRule) int {
	n := 0
	for i := range rules {
		n += length(&rules[i])
	}
	return n
}
