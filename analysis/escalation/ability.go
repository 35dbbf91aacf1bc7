package escalation

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// pattern is a request without its namespace and name. Patterns are numbered: see patterns.
type pattern struct{ verb, group, resource, sub string }

func (p pattern) attributes(namespace, name string) rbacindex.Attributes {
	return rbacindex.Attributes{ResourceRequest: true, Verb: p.verb, APIGroup: p.group, Resource: p.resource, Subresource: p.sub,
		Namespace: namespace, Name: name}
}

// patterns numbers the requests that ways take. An item of a rule stands for those that it matches;
// "*" for all.
type patterns struct {
	list []pattern
	at   map[pattern]ability

	verbs, groups, resources map[string]mask
	all                      mask
}

// ability is a number of patterns.
type ability int

func (p *patterns) number(of pattern) ability {
	if a, ok := p.at[of]; ok {
		return a
	}
	if p.at == nil {
		p.at, p.verbs, p.groups, p.resources = map[pattern]ability{}, map[string]mask{}, map[string]mask{}, map[string]mask{}
	}
	a := ability(len(p.list))
	p.at[of] = a
	p.list = append(p.list, of)
	word := func(of map[string]mask, w string) {
		m := of[w]
		m.set(a)
		of[w] = m
	}
	word(p.verbs, of.verb)
	word(p.groups, of.group)
	if of.sub == "" {
		word(p.resources, of.resource)
	} else {
		word(p.resources, of.resource+"/"+of.sub)
		word(p.resources, "*/"+of.sub)
	}
	p.all.set(a)
	return a
}

// allowed returns the patterns that a rule allows for some name, as [rbacindex.RuleAllows] decides.
func (p *patterns) allowed(rule *rbacv1.PolicyRule) mask {
	any := func(list []string, of map[string]mask) mask {
		var m mask
		for _, w := range list {
			if w == "*" {
				return p.all
			}
			m.add(of[w])
		}
		return m
	}
	m := any(rule.Resources, p.resources)
	if m.empty() {
		return m
	}
	return m.and(any(rule.Verbs, p.verbs)).and(any(rule.APIGroups, p.groups))
}

// names are the names a request is allowed for: all of them, or some. The name "" is that of
// a request without one.
type names struct {
	all  bool
	some []string // sorted; nil if all
}

func (n names) none() bool { return !n.all && len(n.some) == 0 }

func (n names) has(name string) bool {
	if n.all {
		return true
	}
	_, ok := slices.BinarySearch(n.some, name)
	return ok
}

// named returns the names without the request that has no name.
func (n names) named() names {
	if !n.all && len(n.some) > 0 && n.some[0] == "" {
		n.some = n.some[1:]
	}
	return n
}

func (n names) or(m names, e *effort) names {
	switch {
	case n.all || m.all:
		return names{all: true}
	case len(n.some) == 0:
		return m
	case len(m.some) == 0:
		return n
	case !e.take(len(n.some) + len(m.some)):
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

func (n names) and(m names, e *effort) names {
	switch {
	case n.all:
		return m
	case m.all:
		return n
	}
	if len(m.some) < len(n.some) {
		n, m = m, n
	}
	if !e.take(4 * len(n.some)) { // each is looked up
		return names{}
	}
	var out []string
	for _, x := range n.some {
		if m.has(x) {
			out = append(out, x)
		}
	}
	return names{some: out}
}

// first returns a name; "" stands for any.
func (n names) first() string {
	if n.all || len(n.some) == 0 {
		return ""
	}
	return n.some[0]
}

// able is what a role allows of the patterns, without the others; sorted by ability.
type able []permitted

type permitted struct {
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

// ables reduces rules to patterns. Names are left out if there are no steps left for them.
func (p *patterns) ables(rules []rbacv1.PolicyRule, e *effort) able {
	var every, some mask // allowed for all names, and for some
	var naming []int     // rules that allow something for some
	var allows []mask    // each of naming
	for i := range rules {
		m := p.allowed(&rules[i])
		switch {
		case m.empty():
		case len(rules[i].ResourceNames) == 0:
			every.add(m)
		default:
			naming, allows = append(naming, i), append(allows, m)
			some.add(m)
		}
	}
	if every.empty() && some.empty() {
		return nil
	}
	var out able
	var last []int // rules by which the one before was allowed
	var kept names
	for a := range p.list {
		what := ability(a)
		n := names{all: every.has(what)}
		if !n.all && some.has(what) {
			if !e.take(len(naming)) {
				continue
			}
			var by []int
			for i, m := range allows {
				if m.has(what) {
					by = append(by, naming[i])
				}
			}
			if !slices.Equal(by, last) { // the same rules allow the same names
				last, kept = by, namesOf(rules, by, e)
			}
			n = kept
		}
		if !n.none() {
			out = append(out, permitted{what, n})
		}
	}
	return out
}

// namesOf returns the names of several rules; none if there are no steps left for them.
func namesOf(rules []rbacv1.PolicyRule, by []int, e *effort) names {
	total := 0
	for _, i := range by {
		total += len(rules[i].ResourceNames)
	}
	if !e.take(4 * total) { // they are sorted
		return names{}
	}
	some := make([]string, 0, total)
	for _, i := range by {
		some = append(some, rules[i].ResourceNames...)
	}
	slices.Sort(some)
	return names{some: slices.Compact(some)}
}

// mask is a set of abilities.
type mask [2]uint64

func (m *mask) set(a ability)     { m[a/64] |= 1 << (a % 64) }
func (m mask) has(a ability) bool { return m[a/64]&(1<<(a%64)) != 0 }
func (m *mask) add(n mask)        { m[0] |= n[0]; m[1] |= n[1] }
func (m mask) and(n mask) mask    { return mask{m[0] & n[0], m[1] & n[1]} }
func (m mask) empty() bool        { return m[0]|m[1] == 0 }
