package rbacindex

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// merger merges the rules of roles. Namespaces in which a subject holds the same roles have
// the same rules, which are then merged once.
type merger struct {
	s     *Snapshot
	known map[string][]mergedRule // by the roles
	ids   map[*role]uint64        // of roles, in keys of known
}

// mergedRule is a HeldRule before it is known by which bindings.
type mergedRule struct {
	rule rbacv1.PolicyRule
	by   []share
}

// unit is one role and the bindings to it, refs[from:to] of the scope.
type unit struct {
	role     *role
	from, to int32
}

// share is a rule of one of the roles, and the verbs it contributes; nil for all.
type share struct {
	unit, rule int32
	verbs      []string
}

// held merges what the bindings of one scope give.
func (m *merger) held(ns string, refs []*ref) Held {
	out := Held{Namespace: ns}
	var h holding
	h.refs = byRole(refs, func(b *binding, from, to int) {
		k := b.roleKey()
		if r := m.s.role(k); r != nil {
			h.units = append(h.units, unit{role: r, from: int32(from), to: int32(to)})
		} else if k.Kind != 0 {
			out.Missing = append(out.Missing, k)
		}
	})
	merged := m.merged(h.units, ns == "")
	out.Rules = make([]HeldRule, len(merged))
	for i, r := range merged {
		out.Rules[i].PolicyRule, out.Rules[i].By = r.rule, h.sources(r.by)
	}
	return out
}

// merged returns the merged rules of the roles.
func (m *merger) merged(units []unit, paths bool) []mergedRule {
	if m.ids == nil {
		m.ids = map[*role]uint64{}
	}
	key := strconv.AppendBool(nil, paths)
	for _, u := range units {
		id, ok := m.ids[u.role]
		if !ok {
			id = uint64(len(m.ids))
			m.ids[u.role] = id
		}
		key = binary.LittleEndian.AppendUint64(key, id)
	}
	rules, ok := m.known[string(key)]
	if !ok {
		rules = mergeRoles(units, paths)
		m.known[string(key)] = rules
	}
	return rules
}

// atom is the smallest unit a rule can be about: one resource in one API group, of every name or of
// one; or one path.
type atom struct {
	group, resource string
	name            string
	named           bool
	path            bool // resource is a nonResourceURL
}

// expansion is how many atoms there is room for.
type expansion int

const (
	// maxExpansion bounds the atoms that one rule is split into; real rules stay below a few
	// hundred.
	maxExpansion = 4096
	// maxAtoms bounds those of all rules of an answer.
	maxAtoms = 1 << 17
)

// expands takes the room that the resource half of a rule needs; false if it is out of all
// proportion.
func (x *expansion) expands(r *rbacv1.PolicyRule) bool {
	n := len(r.APIGroups) * len(r.Resources)
	if n > maxExpansion || n*len(r.ResourceNames) > maxExpansion || n*max(1, len(r.ResourceNames)) > int(*x) {
		return false
	}
	*x -= expansion(n * max(1, len(r.ResourceNames)))
	return true
}

// mergeRoles splits the rules into atoms, collects who gives which verbs on each, and joins again
// what is given alike.
func mergeRoles(units []unit, paths bool) []mergedRule {
	var order []atom
	atoms := map[atom][]share{}
	add := func(a atom, sh share) {
		old, ok := atoms[a]
		if !ok {
			order = append(order, a)
		} else if last := old[len(old)-1]; last.unit == sh.unit && last.rule == sh.rule {
			return // the rule names it twice
		}
		atoms[a] = append(old, sh)
	}
	var out []mergedRule
	room := expansion(maxAtoms)
	for ui, u := range units {
		for ri, r := range u.role.rules() {
			sh := share{unit: int32(ui), rule: int32(ri), verbs: tidyVerbs(r.Verbs)}
			if len(sh.verbs) == 0 {
				continue
			}
			if !room.expands(&r) {
				// Excessive: it stays as it is.
				whole := rbacv1.PolicyRule{Verbs: sh.verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames}
				out = append(out, mergedRule{rule: whole, by: []share{{unit: sh.unit, rule: sh.rule}}})
			} else {
				eachResource(&r, func(a atom) { add(a, sh) })
			}
			if paths {
				for _, url := range r.NonResourceURLs {
					add(atom{resource: url, path: true}, sh)
				}
			}
		}
	}
	out = append(out, join(order, atoms)...)
	slices.SortStableFunc(out, compareMerged)
	return out
}

// eachResource visits the atoms of the resource half of a rule.
func eachResource(r *rbacv1.PolicyRule, visit func(atom)) {
	for _, g := range r.APIGroups {
		for _, res := range r.Resources {
			a := atom{group: g, resource: res}
			if len(r.ResourceNames) == 0 {
				visit(a)
				continue
			}
			a.named = true
			for _, a.name = range r.ResourceNames {
				visit(a)
			}
		}
	}
}

// join joins atoms that are given alike: their names, then their resources, then their groups. Each
// step joins only what is equal in everything else, so the resulting rule is about exactly the
// product of its lists.
func join(order []atom, atoms map[atom][]share) []mergedRule {
	type part struct {
		groups, resources, names []string
		named, path              bool
		given                    int // index into givens
	}
	var givens []mergedRule // verbs and who gives them
	index := map[string]int{}
	var parts []*part
	// fold joins parts that the key does not tell apart.
	fold := func(key func(*part) string, into func(to, from *part)) {
		at := map[string]*part{}
		kept := parts[:0]
		for _, p := range parts {
			k := key(p)
			if to, ok := at[k]; ok {
				into(to, p)
				continue
			}
			at[k] = p
			kept = append(kept, p)
		}
		parts = kept
	}
	for _, a := range order {
		given := total(atoms[a])
		text := quoteAll(given.rule.Verbs)
		for _, sh := range given.by {
			text += strconv.Itoa(int(sh.unit)) + ":" + strconv.Itoa(int(sh.rule)) + quoteAll(sh.verbs)
		}
		i, ok := index[text]
		if !ok {
			i = len(givens)
			index[text] = i
			givens = append(givens, given)
		}
		p := &part{resources: []string{a.resource}, named: a.named, path: a.path, given: i}
		if !a.path {
			p.groups = []string{a.group}
		}
		if a.named {
			p.names = []string{a.name}
		}
		parts = append(parts, p)
	}
	base := func(p *part) string {
		return strconv.Itoa(p.given) + strconv.FormatBool(p.named) + strconv.FormatBool(p.path)
	}
	fold(func(p *part) string { return base(p) + quoteAll(p.groups) + "|" + quoteAll(p.resources) },
		func(to, from *part) { to.names = append(to.names, from.names...) })
	for _, p := range parts {
		slices.Sort(p.names)
	}
	fold(func(p *part) string { return base(p) + quoteAll(p.groups) + "|" + quoteAll(p.names) },
		func(to, from *part) { to.resources = append(to.resources, from.resources...) })
	for _, p := range parts {
		slices.Sort(p.resources)
	}
	fold(func(p *part) string { return base(p) + quoteAll(p.resources) + "|" + quoteAll(p.names) },
		func(to, from *part) { to.groups = append(to.groups, from.groups...) })
	out := make([]mergedRule, len(parts))
	for i, p := range parts {
		slices.Sort(p.groups)
		out[i] = mergedRule{rule: rbacv1.PolicyRule{Verbs: givens[p.given].rule.Verbs, APIGroups: p.groups, ResourceNames: p.names},
			by: givens[p.given].by}
		if p.path {
			out[i].rule.NonResourceURLs = p.resources
		} else {
			out[i].rule.Resources = p.resources
		}
	}
	return out
}

// total adds up shares: all verbs, and of each share those it gives when it is not all.
func total(shares []share) mergedRule {
	var all []string
	for _, sh := range shares {
		all = append(all, sh.verbs...)
	}
	all = tidyVerbs(all)
	by := slices.Clone(shares)
	for i := range by {
		if slices.Equal(by[i].verbs, all) {
			by[i].verbs = nil
		}
	}
	return mergedRule{rule: rbacv1.PolicyRule{Verbs: all}, by: by}
}

// tidyVerbs returns the verbs once each, the usual ones in their usual order; "*" alone when
// it is among them.
func tidyVerbs(verbs []string) []string {
	if slices.Contains(verbs, rbacv1.VerbAll) {
		return []string{rbacv1.VerbAll}
	}
	out := slices.Clone(verbs)
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(verbRank(a), verbRank(b)), strings.Compare(a, b))
	})
	return slices.Compact(out)
}

func verbRank(verb string) int {
	i := slices.Index([]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, verb)
	if i < 0 {
		return len("12345678")
	}
	return i
}

// quoteAll writes a list so that no two lists read the same.
func quoteAll(list []string) string {
	var b []byte
	for _, s := range list {
		b = append(strconv.AppendQuote(b, s), ',')
	}
	return string(b)
}

// compareMerged orders rules for reading: resources before paths, then by what they are
// about.
func compareMerged(a, b mergedRule) int {
	pa, pb := len(a.rule.NonResourceURLs) > 0, len(b.rule.NonResourceURLs) > 0
	if pa != pb {
		if pa {
			return 1
		}
		return -1
	}
	return cmp.Or(
		slices.Compare(a.rule.APIGroups, b.rule.APIGroups), slices.Compare(a.rule.Resources, b.rule.Resources),
		slices.Compare(a.rule.NonResourceURLs, b.rule.NonResourceURLs),
		slices.Compare(a.rule.ResourceNames, b.rule.ResourceNames), slices.Compare(a.rule.Verbs, b.rule.Verbs))
}
