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
