package leastpriv

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// pair is what rules are made of and narrowed by: one verb on one resource, or on one path.
type pair struct{ verb, group, resource, url string }

func comparePairs(a, b pair) int {
	return cmp.Or(strings.Compare(a.url, b.url), strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource),
		strings.Compare(a.verb, b.verb))
}

// ruleSet is what rules are to grant: pairs, by the names of objects they are restricted to.
type ruleSet struct {
	pairs map[string]map[pair]bool // by the names
	names map[string][]string      // as they are written
}

// of returns the pairs that are restricted to names, to add to; without names those of all objects.
func (s *ruleSet) of(names []string) map[pair]bool {
	key := strings.Join(slices.Sorted(slices.Values(names)), "\x00")
	if s.pairs == nil {
		s.pairs, s.names = map[string]map[pair]bool{}, map[string][]string{}
	}
	if s.pairs[key] == nil {
		s.pairs[key], s.names[key] = map[pair]bool{}, names
	}
	return s.pairs[key]
}

// rules writes few rules, in order: verbs on one resource and the same names make a rule, and resources of one group with the same verbs
// and names share it. Every rule is a full product of what it is to grant.
func (s *ruleSet) rules() (out []rbacv1.PolicyRule) {
	type place struct{ group, resource, names, url string }
	verbs := map[place][]string{}
	for names, pairs := range s.pairs {
		for p := range pairs {
			at := place{p.group, p.resource, names, p.url}
			verbs[at] = append(verbs[at], p.verb)
		}
	}
	type ruleKey struct {
		group, verbs, names string
		urls                bool
	}
	rules := map[ruleKey]*rbacv1.PolicyRule{}
	for at, list := range verbs {
		slices.Sort(list)
		k := ruleKey{group: at.group, verbs: strings.Join(list, "\x00"), names: at.names, urls: at.url != ""}
		r, ok := rules[k]
		if !ok {
			r = &rbacv1.PolicyRule{Verbs: list}
			if !k.urls {
				r.APIGroups, r.ResourceNames = []string{at.group}, slices.Clone(s.names[at.names])
			}
			rules[k] = r
		}
		if k.urls {
			r.NonResourceURLs = append(r.NonResourceURLs, at.url)
		} else {
			r.Resources = append(r.Resources, at.resource)
		}
	}
	for _, r := range rules {
		slices.Sort(r.Resources)
		slices.Sort(r.NonResourceURLs)
		out = append(out, *r)
	}
	slices.SortFunc(out, compareRules)
	return out
}

func compareRules(a, b rbacv1.PolicyRule) int {
	return cmp.Or(slices.Compare(a.NonResourceURLs, b.NonResourceURLs), slices.Compare(a.APIGroups, b.APIGroups),
		slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.Verbs, b.Verbs))
}
