package rbacindex

import (
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// ChangedRule is a part of what a subject came to hold, or lost: a request is in it if the
// rule allows it and none of Except does (RuleAllows).
type ChangedRule struct {
	// HeldRule is a rule held on one side only, by the grants of that side.
	HeldRule
	// Except are rules of the other side that overlap: a gained "*" where "pods" was held
	// before has the rule for "pods" here.
	Except []rbacv1.PolicyRule
}

// exceeding is a ChangedRule before it is known by which bindings.
type exceeding struct {
	mergedRule
	except []rbacv1.PolicyRule
}

// exceed returns what the rules of the units allow beyond those of the others: rules and, if the
// rest of one cannot be written as a rule, what to subtract from it.
//
// Rules are split into atoms as for Can, and of each atom the verbs that no single rule of the
// others covers are kept. Two rules together cover an atom that neither covers only where one of
// them is about less than the atom, and then it is among the exceptions: the answer is exact
// however the others' rules are written. Requests are meant as URLs make them, with no slash in the
// resource.
//
// more: the steps did not suffice, and there may be more than is returned.
func exceed(units, others []unit, paths bool, steps *Steps) (out []exceeding, more bool) {
	var held []heldRule
	same := map[*role]bool{}
	for _, u := range others {
		same[u.role] = true
		rules := u.role.rules()
		for i := range rules {
			held = append(held, newHeldRule(&rules[i], steps))
		}
	}
	// Atoms with the same exceptions are put together again.
	type family struct {
		except []int
		order  []atom
		atoms  map[atom][]share
	}
	var families []*family
	index := map[string]*family{}
	add := func(a atom, sh share, b *box) {
		b.steps = steps
		sh.verbs = b.leftOf(sh.verbs, held)
		if len(sh.verbs) == 0 || steps.spent() {
			return
		}
		b.verbs = sh.verbs
		except := b.meeting(held)
		if !steps.take(len(except)) {
			return
		}
		key := ""
		for _, i := range except {
			key += strconv.Itoa(i) + ","
		}
		f := index[key]
		if f == nil {
			f = &family{except: except, atoms: map[atom][]share{}}
			index[key] = f
			families = append(families, f)
		}
		old, ok := f.atoms[a]
		if !ok {
			f.order = append(f.order, a)
		} else if last := old[len(old)-1]; last.unit == sh.unit && last.rule == sh.rule {
			return // the rule names it twice
		}
		f.atoms[a] = append(old, sh)
	}
	room := expansion(maxAtoms)
	for ui, u := range units {
		if same[u.role] {
			continue
		}
		rules := u.role.rules()
		for ri := range rules {
			r := &rules[ri]
			sh := share{unit: int32(ui), rule: int32(ri), verbs: tidyVerbs(r.Verbs)}
			if len(sh.verbs) == 0 {
				continue
			}
			if !room.expands(r) {
				b := box{groups: r.APIGroups, resources: r.Resources, names: r.ResourceNames, steps: steps}
				if left := b.leftOf(sh.verbs, held); len(left) > 0 && !steps.spent() {
					b.verbs = left
					whole := rbacv1.PolicyRule{Verbs: left, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames}
					out = append(out, exceeding{mergedRule{rule: whole, by: []share{{unit: sh.unit, rule: sh.rule}}},
						resourceHalves(held, b.meeting(held))})
				}
			} else {
				eachResource(r, func(a atom) {
					b := box{groups: []string{a.group}, resources: []string{a.resource}}
					if a.named {
						b.names = []string{a.name}
					}
					add(a, sh, &b)
				})
			}
			if paths {
				for _, url := range r.NonResourceURLs {
					add(atom{resource: url, path: true}, sh, &box{path: url, isPath: true})
				}
			}
		}
	}
	for _, f := range families {
		for _, m := range join(f.order, f.atoms) {
			e := exceeding{mergedRule: m}
			if len(m.rule.NonResourceURLs) > 0 {
				e.except = pathHalves(held, f.except)
			} else {
				e.except = resourceHalves(held, f.except)
			}
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b exceeding) int { return compareMerged(a.mergedRule, b.mergedRule) })
	return out, steps.spent()
}

func resourceHalves(rules []heldRule, which []int) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, i := range which {
		r := &rules[i]
		out = append(out, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
	}
	return distinctRules(out)
}

func pathHalves(rules []heldRule, which []int) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, i := range which {
		out = append(out, rbacv1.PolicyRule{Verbs: rules[i].Verbs, NonResourceURLs: rules[i].NonResourceURLs})
	}
	return distinctRules(out)
}

// distinctRules drops repetitions; the same rules often come by several bindings.
func distinctRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	seen := make(map[string]bool, len(rules))
	return slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool {
		k := ruleText(&r)
		twice := seen[k]
		seen[k] = true
		return twice
	})
}

// heldRule is a rule of the other side; one with many names knows them in a set.
type heldRule struct {
	*rbacv1.PolicyRule
	names map[string]struct{}
}

func newHeldRule(r *rbacv1.PolicyRule, steps *Steps) heldRule {
	h := heldRule{PolicyRule: r}
	if len(r.ResourceNames) > 16 && steps.take(stepsAValue*len(r.ResourceNames)) {
		h.names = make(map[string]struct{}, len(r.ResourceNames))
		for _, n := range r.ResourceNames {
			h.names[n] = struct{}{}
		}
	}
	return h
}

func (r *heldRule) named(name string) bool {
	if r.names != nil {
		_, ok := r.names[name]
		return ok
	}
	return slices.Contains(r.ResourceNames, name)
}

// box is a part of a rule: the requests whose verb, group, resource and name are each in a
// list, or whose path and verb are.
type box struct {
	verbs, groups, resources []string
	names                    []string // none: all names
	path                     string
	isPath                   bool
	steps                    *Steps
}

// leftOf returns the verbs for which no rule covers the whole box. Here and below answers count
// only while there are steps left.
func (b *box) leftOf(verbs []string, rules []heldRule) []string {
	left := verbs
	for i := range rules {
		r := &rules[i]
		if !b.steps.take(1 + len(r.Verbs)) {
			return nil
		}
		if !slices.ContainsFunc(left, func(v string) bool { return verbMatches(r.Verbs, v) }) || !b.within(r) {
			continue
		}
		left = slices.DeleteFunc(slices.Clone(left), func(v string) bool { return verbMatches(r.Verbs, v) })
		if len(left) == 0 {
			return nil
		}
	}
	return left
}

// within reports whether a rule covers the box, verbs aside.
func (b *box) within(r *heldRule) bool {
	if b.isPath {
		return slices.ContainsFunc(r.NonResourceURLs, func(u string) bool { return pathWithin(b.path, u) })
	}
	if len(r.ResourceNames) > 0 {
		if !b.steps.take(len(b.names)) || len(b.names) == 0 || slices.ContainsFunc(b.names, func(n string) bool { return !r.named(n) }) {
			return false
		}
	}
	for _, g := range b.groups {
		if !b.steps.take(len(r.APIGroups)) || !groupMatches(r.APIGroups, g) {
			return false
		}
	}
	for _, res := range b.resources {
		if !b.steps.take(len(r.Resources)) || !slices.ContainsFunc(r.Resources, func(s string) bool { return resourceWithin(res, s) }) {
			return false
		}
	}
	return true
}

// meeting returns which rules could allow some request of the box. One too many would do no
// harm: it is taken away from what it does not touch.
func (b *box) meeting(rules []heldRule) []int {
	var out []int
	for i := range rules {
		if b.steps.spent() {
			return nil
		}
		if b.meets(&rules[i]) {
			out = append(out, i)
		}
	}
	return out
}

func (b *box) meets(r *heldRule) bool {
	b.steps.take(1 + len(r.Verbs))
	if !slices.ContainsFunc(b.verbs, func(v string) bool { return v == rbacv1.VerbAll && len(r.Verbs) > 0 || verbMatches(r.Verbs, v) }) {
		return false
	}
	if b.isPath {
		return slices.ContainsFunc(r.NonResourceURLs, func(u string) bool { return pathsMeet(b.path, u) })
	}
	return slices.ContainsFunc(b.groups, func(g string) bool {
		return b.steps.take(len(r.APIGroups)) && (g == rbacv1.APIGroupAll && len(r.APIGroups) > 0 || groupMatches(r.APIGroups, g))
	}) && slices.ContainsFunc(b.resources, func(x string) bool {
		return b.steps.take(len(r.Resources)) && slices.ContainsFunc(r.Resources, func(y string) bool {
			return resourceWithin(x, y) || resourceWithin(y, x)
		})
	}) && (len(b.names) == 0 || len(r.ResourceNames) == 0 ||
		b.steps.take(len(b.names)) && slices.ContainsFunc(b.names, func(n string) bool { return r.named(n) }))
}

// resourceWithin reports whether what x names in a rule is among what y names.
func resourceWithin(x, y string) bool {
	if y == rbacv1.ResourceAll || x == y {
		return true
	}
	_, sub, ok := strings.Cut(x, "/")
	return ok && sub != "" && y == "*/"+sub
}

// pathWithin reports whether what x names in a rule is among what y names.
func pathWithin(x, y string) bool {
	if x == y {
		return true
	}
	return strings.HasSuffix(y, "*") && strings.HasPrefix(strings.TrimRight(x, "*"), strings.TrimRight(y, "*")) &&
		(strings.HasSuffix(x, "*") || strings.HasPrefix(x, strings.TrimRight(y, "*")))
}

func pathsMeet(x, y string) bool {
	px, py := strings.TrimRight(x, "*"), strings.TrimRight(y, "*")
	return x == y || strings.HasSuffix(x, "*") && strings.HasPrefix(y, px) || strings.HasSuffix(y, "*") && strings.HasPrefix(x, py)
}
