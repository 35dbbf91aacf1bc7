package rbacindex

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// query is a request with what every table needs of it computed once. It lives on the
// caller's stack.
type query struct {
	a      *Attributes
	h      *hasher
	verb   verbSet
	group  uint64 // hash of the API group
	res    uint64 // hash of resource[/subresource]
	anySub uint64 // hash of */subresource
	path   uint64 // hash of the path

	resource, sub string
	shapes        shape // tables with none of these are of no interest

	costly bool // the steps of the request did not suffice
}

// takes uses up steps of the request.
func (q *query) takes(n int) bool {
	if q.a.Steps == nil {
		return true
	}
	if !q.a.Steps.take(n) {
		q.costly = true
	}
	return !q.costly
}

const (
	// stepsARule is the cost of reaching a rule, which lies anywhere in memory, and stringsAStep
	// how many of its strings are compared in a step.
	stepsARule   = 2
	stringsAStep = 8
)

// stepsOf returns the cost of going through a rule.
func stepsOf(r *rbacv1.PolicyRule) int {
	return stepsARule + (len(r.Verbs)+len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames)+len(r.NonResourceURLs))/stringsAStep
}

func (q *query) init(h *hasher, a *Attributes) {
	q.a, q.h, q.verb = a, h, verbBit(a.Verb)
	if !a.ResourceRequest {
		q.path = mix(saltPath, h.str(a.Path))
		q.shapes = shapesOfPaths
		return
	}
	q.shapes = shapesOfResources
	q.resource, q.sub = a.Resource, a.Subresource
	q.group = mix(saltResource, h.str(a.APIGroup))
	head, tail, slash := q.resource, q.sub, q.sub != ""
	if i := strings.IndexByte(head, '/'); i >= 0 {
		// Cannot come from a URL, whose segments have no slash. Rules know only the joined string,
		// so split that one; the copy is acceptable for so rare a request.
		joined := head
		if q.sub != "" {
			joined += "/" + q.sub
		}
		head, tail, slash = joined[:i], joined[i+1:], true
	}
	q.res = h.resource(head, tail, slash)
	if q.sub != "" {
		q.anySub = h.resource("*", q.sub, true)
	}
}

// lists are the sorted lists of hits a request found in one table. A rule may stand in
// several of them.
type lists struct {
	n    int
	list [maxLists][]hit
}

// maxLists is enough for a resource request: six keys with two lists each, and the wide
// rules. Requests for paths that meet more prefixes than that are evaluated rule by rule.
const maxLists = 13

// add enters a list; false means it did not fit.
func (l *lists) add(hits []hit) bool {
	if len(hits) == 0 {
		return true
	}
	if l.n == maxLists {
		return false
	}
	l.list[l.n] = hits
	l.n++
	return true
}

// collect fills l with everything in t that could allow the request; false means that it did
// not fit.
func (q *query) collect(t *table, l *lists) bool {
	if t.has&shapeWide != 0 {
		l.add(t.wide)
	}
	if !q.a.ResourceRequest {
		return q.collectPaths(t, l)
	}
	a := q.a
	if t.has&shapeExact != 0 {
		q.cell(t.find(mix(q.group, q.res), shapeExact, a.APIGroup, q.resource, q.sub), l)
		if t.has&shapeSub != 0 && q.sub != "" {
			q.cell(t.find(mix(q.group, q.anySub), shapeExact, a.APIGroup, "*", q.sub), l)
		}
	}
	if t.has&shapeAnyGroup != 0 {
		q.cell(t.find(mix(saltStar, q.res), shapeAnyGroup, "*", q.resource, q.sub), l)
		if t.has&shapeSub != 0 && q.sub != "" {
			q.cell(t.find(mix(saltStar, q.anySub), shapeAnyGroup, "*", "*", q.sub), l)
		}
	}
	if t.has&shapeAnyRes != 0 {
		q.cell(t.find(mix(q.group, saltStar), shapeAnyRes, a.APIGroup, "*", ""), l)
	}
	if t.has&shapeAny != 0 {
		q.cell(t.find(mix(saltStar, saltStar), shapeAny, "*", "*", ""), l)
	}
	return true
}

func (q *query) cell(c *cell, l *lists) {
	if c == nil {
		return
	}
	if c.verbs&q.verb != 0 {
		l.add(c.open)
	}
	if c.named != nil {
		l.add(c.named[q.a.Name])
	}
}

func (q *query) collectPaths(t *table, l *lists) bool {
	path := q.a.Path
	if t.has&shapePath != 0 {
		if c := t.find(q.path, shapePath, "", path, ""); c != nil && c.verbs&q.verb != 0 && !l.add(c.open) {
			return false
		}
	}
	for _, n := range t.prefixes {
		if n > len(path) {
			break
		}
		c := t.find(mix(saltPrefix, q.h.str(path[:n])), shapePrefix, "", path[:n], "")
		if c != nil && c.verbs&q.verb != 0 && !l.add(c.open) {
			return false
		}
	}
	return true
}

// allowed reports whether a hit in t allows the request: the key matched; the verb, and the
// name where it is looked up in a set, are left. Hits of wide rules have matched nothing yet.
func (q *query) allowed(t *table, ht *hit, wide bool) bool {
	if ht.verbs&q.verb == 0 {
		return false
	}
	if ht.names != 0 {
		if _, ok := t.names[ht.names-1][q.a.Name]; !ok {
			return false
		}
	}
	certain := ht.verbs&verbStar != 0 || q.verb != verbOther
	if !wide && certain && ht.verbs&hitGroups == 0 {
		return true
	}
	rule := &t.roles[ht.role].rules()[ht.rule]
	if !q.takes(stepsOf(rule)) {
		return false
	}
	if wide {
		return RuleAllows(q.a, rule)
	}
	return (certain || verbMatches(rule.Verbs, q.a.Verb)) && (ht.verbs&hitGroups == 0 || groupMatches(rule.APIGroups, q.a.APIGroup))
}

// match calls visit with every role of t that allows the request, ascending, and the first of
// its rules that does.
func (q *query) match(t *table, visit func(role, rule int32)) {
	var l lists
	if !q.collect(t, &l) {
		q.scan(t, visit)
		return
	}
	wide := t.has&shapeWide != 0 // then list 0 is the wide one
	if l.n == 1 {                // nearly always
		last := int32(-1)
		for i := range l.list[0] {
			ht := &l.list[0][i]
			if ht.role != last && q.allowed(t, ht, wide) {
				last = ht.role
				visit(ht.role, ht.rule)
			} else if q.costly {
				return
			}
		}
		return
	}
	for {
		best := -1
		for i := 0; i < l.n; i++ {
			hits := l.list[i]
			for len(hits) > 0 && !q.allowed(t, &hits[0], wide && i == 0) {
				if q.costly {
					return
				}
				hits = hits[1:]
			}
			l.list[i] = hits
			if len(hits) == 0 {
				continue
			}
			if best < 0 || before(&hits[0], &l.list[best][0]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		found := l.list[best][0]
		visit(found.role, found.rule)
		for i := 0; i < l.n; i++ {
			for len(l.list[i]) > 0 && l.list[i][0].role <= found.role {
				l.list[i] = l.list[i][1:]
			}
		}
	}
}

func before(a, b *hit) bool {
	return a.role < b.role || a.role == b.role && a.rule < b.rule
}

// scan is match by visiting every rule.
func (q *query) scan(t *table, visit func(role, rule int32)) {
	for ri, r := range t.roles {
		rules := r.rules()
		for i := range rules {
			if !q.takes(stepsOf(&rules[i])) {
				return
			}
			if RuleAllows(q.a, &rules[i]) {
				visit(int32(ri), int32(i))
				break
			}
		}
	}
}
