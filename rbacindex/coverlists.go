package rbacindex

import (
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The dimensions of a rule, in the order in which pieces are listed. Of paths there are two.
const (
	dimGroup = iota
	dimResource
	dimVerb
	dimName
	dims

	dimPath     = 0
	dimPathVerb = 1
)

// lattice is one half of the wanted rules, about resources or about paths, with the values of
// each dimension numbered, and the owner's rules as sets of those numbers.
type lattice struct {
	paths bool
	n     int // dimensions

	values [dims]map[string]int32
	ids    [dims][]int32      // the values of all wanted rules that are about something, one after the other
	next   [dims]int          // of ids, where those of the current rule begin
	subs   map[string][]int32 // resources among the values, by their subresource
	sorted []string           // paths, ascending: the number is the place

	cubes []cube
	among [dims][][]int32 // cubes by value
	whole [dims][]int32   // cubes with every value of the dimension
	place [dims][]int32   // of a value in the current rule, plus one; 0 if it is not there
	seen  []int32         // per cube the last rule that visited it, plus one
	found []int32         // room for the values of a part
	steps *Steps
}

// cube is a rule of the owner: the product of what it covers in each dimension.
type cube [dims]part

// part is the covered values of one dimension.
type part struct {
	all    bool
	values []int32
}

// covers is Covers.
func covers(owner []*rbacv1.PolicyRule, wanted []rbacv1.PolicyRule, most int, steps *Steps) Coverage {
	out := Coverage{TooCostly: true}
	if !steps.take(1 + len(owner)) {
		return out
	}
	var halves []*lattice
	if !slices.ContainsFunc(owner, coversResources) {
		halves = append(halves, &lattice{n: dims, steps: steps})
	}
	if !slices.ContainsFunc(owner, coversPaths) {
		halves = append(halves, &lattice{n: 2, paths: true, steps: steps})
	}
	for _, l := range halves {
		if !l.number(wanted) || !l.own(owner) {
			return out
		}
	}
	found := &uncovered{most: most}
	for i := range wanted {
		for _, l := range halves {
			done := l.uncovered(&wanted[i], int32(i+1), found)
			if !done || found.more {
				if len(found.list) == 0 {
					return out
				}
				return Coverage{Uncovered: found.list, More: true}
			}
		}
	}
	return Coverage{Uncovered: found.list}
}

// anything reports whether a list is the wildcard alone, as roles of administrators have it.
func anything(list []string) bool { return len(list) == 1 && list[0] == "*" }

// coversResources reports whether a rule allows every verb on every resource.
func coversResources(r *rbacv1.PolicyRule) bool {
	return anything(r.APIGroups) && anything(r.Resources) && anything(r.Verbs) && len(r.ResourceNames) == 0
}

// coversPaths reports whether a rule allows every verb on every path.
func coversPaths(r *rbacv1.PolicyRule) bool {
	return anything(r.NonResourceURLs) && anything(r.Verbs) && len(r.ResourceNames) == 0
}

// of returns the lists of a rule. One without resourceNames is about one value, the empty list.
func (l *lattice) of(r *rbacv1.PolicyRule) [dims][]string {
	if l.paths {
		return [dims][]string{dimPath: r.NonResourceURLs, dimPathVerb: r.Verbs}
	}
	return [dims][]string{r.APIGroups, r.Resources, r.Verbs, r.ResourceNames}
}

// isNothing reports whether a rule is about nothing in this half.
func (l *lattice) isNothing(r *rbacv1.PolicyRule) bool {
	if l.paths {
		return len(r.NonResourceURLs) == 0 || len(r.Verbs) == 0
	}
	return len(r.APIGroups) == 0 || len(r.Resources) == 0 || len(r.Verbs) == 0
}

// stepsAValue is the cost of numbering a value, in a map that grows.
const stepsAValue = 6

// number numbers the values of the wanted rules; false if that takes too many steps.
func (l *lattice) number(wanted []rbacv1.PolicyRule) bool {
	var all [dims]int
	for i := range wanted {
		if l.isNothing(&wanted[i]) {
			continue
		}
		for d, list := range l.of(&wanted[i]) {
			all[d] += len(list)
		}
	}
	for i := range wanted {
		if l.isNothing(&wanted[i]) {
			continue
		}
		for d, list := range l.of(&wanted[i]) {
			if !l.steps.take(len(list)) {
				return false
			}
			if l.values[d] == nil && len(list) > 0 {
				l.values[d] = make(map[string]int32, max(len(list), min(all[d]/2, 1<<12)))
				l.ids[d] = make([]int32, 0, all[d])
			}
			for _, v := range list {
				at, ok := l.values[d][v]
				if ok {
					l.ids[d] = append(l.ids[d], at)
					continue
				}
				if !l.steps.take(stepsAValue) {
					return false
				}
				at = int32(len(l.values[d]))
				l.values[d][v] = at
				l.ids[d] = append(l.ids[d], at)
				if l.paths && d == dimPath {
					l.sorted = append(l.sorted, v)
				}
				if _, sub, ok := strings.Cut(v, "/"); ok && !l.paths && d == dimResource {
					if l.subs == nil {
						l.subs = map[string][]int32{}
					}
					l.subs[sub] = append(l.subs[sub], at)
				}
			}
		}
	}
	if l.paths {
		l.sort()
	}
	for d := range l.n {
		l.place[d] = make([]int32, len(l.values[d]))
		l.among[d] = make([][]int32, len(l.values[d]))
	}
	return true
}

// sort numbers paths by their order.
func (l *lattice) sort() {
	slices.Sort(l.sorted)
	place := make([]int32, len(l.sorted))
	for i, v := range l.sorted {
		place[l.values[dimPath][v]] = int32(i)
		l.values[dimPath][v] = int32(i)
	}
	for i, id := range l.ids[dimPath] {
		l.ids[dimPath][i] = place[id]
	}
}

// own takes in the owner's rules.
func (l *lattice) own(owner []*rbacv1.PolicyRule) bool {
	if l.paths && len(l.sorted) == 0 || !l.paths && (len(l.values[dimGroup]) == 0 || len(l.values[dimResource]) == 0) {
		return true // nothing is wanted
	}
	for _, r := range owner {
		c, ok := l.cube(r)
		if !ok {
			return false
		}
		if c == nil {
			continue
		}
		at := int32(len(l.cubes))
		l.cubes = append(l.cubes, *c)
		for d := range l.n {
			if c[d].all {
				l.whole[d] = append(l.whole[d], at)
			}
			for _, v := range c[d].values {
				l.among[d][v] = append(l.among[d][v], at)
			}
		}
	}
	l.seen = make([]int32, len(l.cubes))
	return true
}

// cube makes the cube of a rule, nil if that covers nothing that is wanted. The verbs come first:
// they are the fewest.
func (l *lattice) cube(r *rbacv1.PolicyRule) (*cube, bool) {
	if l.paths && len(r.ResourceNames) > 0 {
		return nil, l.steps.take(1) // covers no path, even if it has some
	}
	var c cube
	have := l.of(r)
	order := [dims]int{dimVerb, dimGroup, dimResource, dimName}
	if l.paths {
		order = [dims]int{dimPathVerb, dimPath}
	}
	for _, d := range order[:l.n] {
		part, ok := l.part(d, have[d])
		if !ok {
			return nil, false
		}
		if !part.all && len(part.values) == 0 {
			return nil, true
		}
		c[d] = part
	}
	return &c, true
}

// part returns what a list covers in a dimension.
func (l *lattice) part(d int, list []string) (part, bool) {
	if !l.steps.take(1 + len(list)) {
		return part{}, false
	}
	if !l.paths && d == dimName {
		if len(list) == 0 {
			return part{all: true}, true
		}
	} else if slices.Contains(list, "*") {
		return part{all: true}, true
	}
	out := l.found[:0]
	for _, v := range list {
		if l.paths && d == dimPath {
			prefix := strings.TrimRight(v, "*")
			if prefix != v {
				from := sort.SearchStrings(l.sorted, prefix)
				for i := from; i < len(l.sorted) && strings.HasPrefix(l.sorted[i], prefix); i++ {
					out = append(out, int32(i))
				}
				continue
			}
		}
		if at, ok := l.values[d][v]; ok {
			out = append(out, at)
		}
		if !l.paths && d == dimResource {
			if sub, ok := strings.CutPrefix(v, "*/"); ok {
				out = append(out, l.subs[sub]...)
			}
		}
		if len(out) > l.steps.left {
			return part{}, l.steps.take(len(out))
		}
	}
	l.found = out
	if len(out) == 0 || !l.steps.take(len(out)) {
		return part{}, len(out) == 0
	}
	slices.Sort(out)
	return part{values: slices.Clone(slices.Compact(out))}, true
}

// uncovered finds the pieces of one half of a wanted rule that no cube covers; false if that
// takes too many steps.
func (l *lattice) uncovered(r *rbacv1.PolicyRule, turn int32, found *uncovered) bool {
	switch {
	case !l.steps.take(1):
		return false
	case l.isNothing(r):
		return true
	}
	w := want{lattice: l, have: l.of(r), found: found}
	for d := range l.n {
		n := len(w.have[d])
		w.ids[d] = l.ids[d][l.next[d] : l.next[d]+n]
		l.next[d] += n
	}
	defer func() {
		for d := range l.n {
			for _, id := range w.ids[d] {
				l.place[d][id] = 0
			}
		}
	}()
	for d := range l.n {
		if !l.steps.take(1 + len(w.ids[d])) {
			return false
		}
		if len(w.ids[d]) == 0 { // names
			w.unnamed = true
			w.distinct[d] = 1
			continue
		}
		w.classes[d] = make([]int32, len(w.ids[d]))
		for i, id := range w.ids[d] {
			at := &l.place[d][id]
			if *at == 0 {
				w.distinct[d]++
				*at = int32(w.distinct[d])
			}
			w.classes[d][i] = *at - 1
		}
	}
	whole, ok := w.gather(turn)
	return ok && (whole || w.subtract())
}

// gather collects the cubes that meet the rule, as boxes of its own values. whole: one of them
// covers it all.
func (w *want) gather(turn int32) (whole, ok bool) {
	l := w.lattice
	// Cubes are found by the dimension in which the fewest have something in common with it.
	best, least := 0, -1
	for d := range l.n {
		n := len(l.whole[d])
		if !w.unnamed || d != dimName { // what is for every name is covered by such only
			for _, id := range w.ids[d] {
				n += len(l.among[d][id])
			}
		}
		if least < 0 || n < least {
			best, least = d, n
		}
	}
	found := [][]int32{l.whole[best]}
	if !w.unnamed || best != dimName {
		for _, id := range w.ids[best] {
			found = append(found, l.among[best][id])
		}
	}
	for _, cubes := range found {
		for _, i := range cubes {
			if !l.steps.take(1) {
				return false, false
			}
			if l.seen[i] == turn {
				continue
			}
			l.seen[i] = turn
			if whole, ok = w.meet(&l.cubes[i]); whole || !ok {
				return whole, ok
			}
		}
	}
	return false, true
}
