package leastpriv

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// pair returns an atom without its name.
func (a *atom) pair() pair {
	return pair{verb: a.verb, group: a.group, resource: a.resource, url: a.url}
}

// part is what is kept of a role: of each of its rules the verbs on each resource that a request had, with the rule's own names and URL
// patterns. A wildcard becomes what was used of it.
type part struct {
	rules []rbacv1.PolicyRule // of the role
	used  []map[pair]bool     // by rule
	added []map[pair]string   // by rule, with the reason: what goes with what was used
	all   bool                // everything is kept, whatever was used
	lacks *[2]int             // see lack; nil: it was not asked for
}

func newPart(rules []rbacv1.PolicyRule) *part {
	p := &part{rules: rules, used: make([]map[pair]bool, len(rules)), added: make([]map[pair]string, len(rules))}
	for i := range rules {
		p.used[i], p.added[i] = map[pair]bool{}, map[pair]string{}
	}
	return p
}

// need keeps what allows a request by rule i.
func (p *part) need(i int, a *rbacindex.Attributes) { p.used[i][pairOf(a, &p.rules[i])] = true }

// pairOf returns what a rule that allows a request has to keep for it.
func pairOf(a *rbacindex.Attributes, r *rbacv1.PolicyRule) pair {
	if a.ResourceRequest || slices.Contains(r.NonResourceURLs, a.Path) {
		return askedPair(a)
	}
	for _, url := range r.NonResourceURLs {
		if prefix, ok := strings.CutSuffix(url, "*"); ok && strings.Trim(prefix, "/") != "" && strings.HasPrefix(a.Path, prefix) {
			return pair{verb: a.Verb, url: url}
		}
	}
	return askedPair(a)
}

// askedPair returns the verb and resource, or path, that a request asked for.
func askedPair(a *rbacindex.Attributes) pair {
	if !a.ResourceRequest {
		return pair{verb: a.Verb, url: a.Path}
	}
	return pair{verb: a.Verb, group: a.APIGroup, resource: ruleResource(a)}
}

// keeps reports whether a pair of rule i is kept, as used or as added.
func (p *part) keeps(i int, a pair) bool {
	_, added := p.added[i][a]
	return added || p.used[i][a]
}

// left visits what of the role's rules is not kept, until visit returns false. It returns false if a rule is too large to be listed.
func (p *part) left(visit func(*atom) bool) bool {
	for i := range p.rules {
		if atomCount(&p.rules[i]) > ruleAtoms {
			return false
		}
		for _, a := range atomsOf(&p.rules[i]) {
			if !p.keeps(i, a.pair()) && !visit(&a) {
				return true
			}
		}
	}
	return true
}

// empty reports whether nothing is kept.
func (p *part) empty() bool {
	return !p.all && !slices.ContainsFunc(p.used, func(of map[pair]bool) bool { return len(of) > 0 })
}

// complete reports whether nothing of the role is left out.
func (p *part) complete() bool {
	if p.all {
		return true
	}
	kept := p.narrowed()
	for i := range p.rules {
		if atomCount(&p.rules[i]) > ruleAtoms {
			return false
		}
		for _, a := range atomsOf(&p.rules[i]) {
			if !slices.ContainsFunc(kept, func(r rbacv1.PolicyRule) bool { return covers(&r, &a) }) {
				return false
			}
		}
	}
	return true
}

// narrowed writes what is kept as rules.
func (p *part) narrowed() []rbacv1.PolicyRule {
	if p.all {
		return p.rules
	}
	var set ruleSet
	for i := range p.rules {
		pairs := set.of(p.rules[i].ResourceNames)
		maps.Copy(pairs, p.used[i])
		for a := range p.added[i] {
			pairs[a] = true
		}
	}
	return set.rules()
}

// with returns what is kept for the holders of two parts of a role together.
func (p *part) with(q *part) *part {
	out := newPart(p.rules)
	out.all = p.all || q.all
	for i := range p.rules {
		for _, of := range []*part{p, q} {
			maps.Copy(out.used[i], of.used[i])
			maps.Copy(out.added[i], of.added[i])
		}
		maps.DeleteFunc(out.added[i], func(a pair, _ string) bool { return out.used[i][a] })
	}
	return out
}

// more returns how much weight q keeps beyond p: in a namespace, and everywhere.
func (p *part) more(q *part) (namespaced, everywhere int) {
	if p.all {
		return 0, 0
	}
	for i := range q.rules {
		add := func(a pair) {
			if p.keeps(i, a) {
				return
			}
			at := atom{verb: a.verb, group: a.group, resource: a.resource, url: a.url}
			n := max(1, len(q.rules[i].ResourceNames))
			namespaced, everywhere = namespaced+n*granted(&at, "a"), everywhere+n*granted(&at, "")
		}
		for a := range q.used[i] {
			add(a)
		}
		for a := range q.added[i] {
			add(a)
		}
	}
	return namespaced, everywhere
}

// writes reports whether anything that is kept changes objects.
func (p *part) writes() bool {
	return slices.ContainsFunc(p.used, func(of map[pair]bool) bool {
		for a := range of {
			if slices.Contains(writing, a.verb) && !strings.Contains(a.resource, "/") && !slices.Contains(askedOnly, a.group) {
				return true
			}
		}
		return false
	})
}

// complement adds the verbs that go with those used, as far as the role has them; more of them for a subject that is still learning.
func (p *part) complement(learning bool) {
	used := map[pair]bool{}
	for i := range p.used {
		maps.Copy(used, p.used[i])
	}
	for i := range p.rules {
		for _, a := range slices.SortedFunc(maps.Keys(p.used[i]), comparePairs) {
			with := companionsOf(&a)
			if learning {
				with = withWrites(&a, with)
			}
			for verb, reason := range with {
				more := pair{verb: verb, group: a.group, resource: a.resource}
				if used[more] {
					continue
				}
				if j := granting(p.rules, i, &more); j >= 0 && p.added[j][more] == "" {
					p.added[j][more] = reason
				}
			}
		}
	}
}

// granting returns the rule that grants what goes with rule i: itself, one without names, or none, -1.
func granting(rules []rbacv1.PolicyRule, i int, p *pair) int {
	a := rbacindex.Attributes{ResourceRequest: true, Verb: p.verb, APIGroup: p.group}
	a.Resource, a.Subresource, _ = strings.Cut(p.resource, "/")
	if len(rules[i].ResourceNames) > 0 {
		a.Name = rules[i].ResourceNames[0]
	}
	if rbacindex.RuleAllows(&a, &rules[i]) {
		return i
	}
	a.Name = ""
	return slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return rbacindex.RuleAllows(&a, &r) })
}

// why returns the reasons of what is kept although nobody used it.
func (p *part) why() map[pair]string {
	out := map[pair]string{}
	for i := range p.added {
		maps.Copy(out, p.added[i])
	}
	return out
}

// reasons lists what is kept although nobody used it.
func (p *part) reasons(role string) []Added {
	var out []Added
	if p.all {
		return nil
	}
	for i := range p.added {
		for a, reason := range p.added[i] {
			out = append(out, Added{Role: role, Verb: a.verb, Resource: resourceText(a.group, a.resource), Reason: reason})
		}
	}
	slices.SortFunc(out, func(a, b Added) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb), strings.Compare(a.Reason, b.Reason))
	})
	return slices.CompactFunc(out, func(a, b Added) bool { return a.Resource == b.Resource && a.Verb == b.Verb })
}

// Reasons of added verbs.
const (
	reasonInformer = "clients that list or watch do the other when they start again, by their version and after an interruption"
	reasonRead     = "what works with objects of a kind reads, lists and watches them"
	reasonUpdate   = "what updates or patches reads first"
	reasonLease    = "leader election gets, creates and updates its lease"
	reasonSocket   = "a websocket to it needs create"
	reasonLearning = "the subject is still learning: it writes, and works with objects of the kind"
)

// askedOnly are the groups whose objects are questions: they are created and never read.
var askedOnly = []string{"authentication.k8s.io", "authorization.k8s.io"} //nolint:gochecknoglobals // constant table

// companionsOf returns the verbs that a client that uses one will use, with the reasons.
func companionsOf(p *pair) map[string]string {
	if p.url != "" {
		return nil
	}
	out := map[string]string{}
	secret := p.group == "" && p.resource == "secrets" // nothing used on a Secret is a reason to read others
	if !secret && !strings.Contains(p.resource, "/") && !slices.Contains(askedOnly, p.group) {
		out["list"], out["watch"], out["get"] = reasonRead, reasonRead, reasonRead
	}
	switch p.verb {
	case "list", "watch": // which give what get gives
		out["list"], out["watch"], out["get"] = reasonInformer, reasonInformer, reasonRead
	case "update", "patch":
		if !secret {
			out["get"] = reasonUpdate
		}
	}
	if p.group == "coordination.k8s.io" && p.resource == "leases" && slices.Contains([]string{"get", "create", "update"}, p.verb) {
		out["get"], out["create"], out["update"] = reasonLease, reasonLease, reasonLease
	}
	if p.group == "" && p.verb == "get" && slices.Contains([]string{"pods/exec", "pods/attach", "pods/portforward"}, p.resource) {
		out["create"] = reasonSocket
	}
	delete(out, p.verb)
	return out
}

// writing are the verbs that change an object of a kind.
var writing = []string{"create", "update", "patch", "delete"} //nolint:gochecknoglobals // constant table

// withWrites adds the ordinary writes on a resource to the companions of a verb.
func withWrites(p *pair, companions map[string]string) map[string]string {
	if p.url != "" || strings.Contains(p.resource, "/") || slices.Contains(askedOnly, p.group) {
		return companions
	}
	for _, verb := range writing {
		if verb != p.verb && companions[verb] == "" && danger(p.group, p.resource, verb) < unusual {
			companions[verb] = reasonLearning
		}
	}
	return companions
}
