package escalation

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// pattern is a request without its namespace and name. Patterns are numbered: see patterns.
type pattern struct{ verb, group, resource, sub string }

func (p pattern) attributes(namespace, name string) rbacindex.Attributes {
	return rbacindex.Attributes{ResourceRequest: true, Verb: p.verb, APIGroup: p.group, Resource: p.resource, Subresource: p.sub, Namespace: namespace, Name: name}
}

// patterns numbers the requests that ways take.
type patterns struct {
	list []pattern
	at   map[pattern]ability
}

// ability is a number of patterns.
type ability int

func (p *patterns) number(of pattern) ability {
	if a, ok := p.at[of]; ok {
		return a
	}
	if p.at == nil {
		p.at = map[pattern]ability{}
	}
	a := ability(len(p.list))
	p.at[of] = a
	p.list = append(p.list, of)
	return a
}

// names are the names a request is allowed for: all of them, or some. The name "" is that of
// a request without one.
type names struct {
	all  bool
	some []string // sorted; nothing when all
}

func (n names) none() bool { return !n.all && len(n.some) == 0 }

func (n names) has(name string) bool {
	if n.all {
		return true
	}
	_, ok := slices.BinarySearch(n.some, name)
	return ok
}

// named leaves out the request without a name.
func (n names) named() names {
	if !n.all && len(n.some) > 0 && n.some[0] == "" {
		n.some = n.some[1:]
	}
	return n
}

func (n names) or(m names) names {
	switch {
	case n.all || m.all:
		return names{all: true}
	case len(n.some) == 0:
		return m
	case len(m.some) == 0:
		return n
	}
	if len(m.some) > len(n.some) {
		n, m = m, n
	}
	fresh := 0
	for i, j := 0, 0; j < len(m.some); j++ {
		for i < len(n.some) && n.some[i] < m.some[j] {
			i++
		}
		if i == len(n.some) || n.some[i] != m.some[j] {
			fresh++
		}
	}
	if fresh == 0 {
		return n
	}
	out := make([]string, 0, len(n.some)+fresh)
	for i, j := 0, 0; i < len(n.some) || j < len(m.some); {
		switch {
		case j == len(m.some) || i < len(n.some) && n.some[i] < m.some[j]:
			out = append(out, n.some[i])
			i++
		case i == len(n.some) || m.some[j] < n.some[i]:
			out = append(out, m.some[j])
			j++
		default: // both
			out = append(out, n.some[i])
			i, j = i+1, j+1
		}
	}
	return names{some: out}
}

func (n names) and(m names) names {
	switch {
	case n.all:
		return m
	case m.all:
		return n
	}
	var out []string
	for _, x := range n.some {
		if m.has(x) {
			out = append(out, x)
		}
	}
	return names{some: out}
}

// first returns a name, "" standing for any.
func (n names) first() string {
	if n.all || len(n.some) == 0 {
		return ""
	}
	return n.some[0]
}

// able is what a role allows of the patterns, the others left out; ordered by ability.
type able []struct {
	what ability
	names
}

func (a able) of(what ability) names {
	for i := range a {
		if a[i].what == what {
			return a[i].names
		}
	}
	return names{}
}

// ables reduces rules to patterns.
func (p *patterns) ables(rules []rbacv1.PolicyRule) able {
	var out able
	var candidates []int
	for i := range rules {
		if p.concerns(&rules[i]) {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	for a, pat := range p.list {
		var n names
		request := pat.attributes("", "")
		for _, i := range candidates {
			rule := rules[i]
			of := names{all: true}
			if len(rule.ResourceNames) > 0 {
				some := slices.Clone(rule.ResourceNames)
				slices.Sort(some)
				of = names{some: slices.Compact(some)}
				rule.ResourceNames = nil
			}
			if rbacindex.RuleAllows(&request, &rule) {
				n = n.or(of)
			}
		}
		if !n.none() {
			out = append(out, struct {
				what ability
				names
			}{ability(a), n})
		}
	}
	return out
}

// concerns tells quickly that a rule allows no pattern.
func (p *patterns) concerns(rule *rbacv1.PolicyRule) bool {
	for _, r := range rule.Resources {
		if r == "*" || strings.HasPrefix(r, "*/") {
			return true
		}
		for i := range p.list {
			if head, sub, _ := strings.Cut(r, "/"); head == p.list[i].resource && sub == p.list[i].sub {
				return true
			}
		}
	}
	return false
}
