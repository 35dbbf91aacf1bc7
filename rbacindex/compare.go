package rbacindex

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Difference is what a subject can do in one version of a policy and not in another, in one
// scope.
type Difference struct {
	// Name is a user name (of a ServiceAccount: the one its tokens carry) or, with Group set,
	// a group name. Both are empty where the question was about one subject.
	Name  string
	Group bool
	// Namespace is "" for the whole cluster: requests that name no namespace, and those in every
	// namespace that has no Difference of its own. A namespace that has one is not included: its
	// Difference is complete, and Gained and Lost may both be empty, for instance where a
	// RoleBinding gave all along what is now given everywhere.
	Namespace string
	// Gained is what can be done now and could not before, Lost the reverse.
	Gained, Lost []ChangedRule
	// TooLarge means that more may be gained or lost than is listed, because computing it takes too
	// much work.
	TooLarge bool
}

// Differences visits what the changed objects made possible and impossible, from old to s, for
// every user and group they concern: what the subject can do by its name alone, or the group's
// members by being in it. changed are the keys of all objects that differ between old and s.
// Subjects come by kind (groups first) and name, those whose accesses are the same not at all,
// and scopes by namespace, until visit returns false. The cost is that of the subjects that
// changed objects name, not of the policy.
func (s *Snapshot) Differences(old *Snapshot, changed []Key, visit func([]Difference) bool) {
	newComparison(old, s).visit(changed, visit)
}

func (c *comparison) visit(changed []Key, visit func([]Difference) bool) {
	for _, w := range c.concerned(changed) {
		out := c.compare([]holder{w})
		for i := range out {
			out[i].Name, out[i].Group = w.name, w.group
		}
		if len(out) > 0 && !visit(out) {
			return
		}
	}
}

// DifferencesOf returns what one subject, a user with its groups, can do in s and could not in
// old, and the reverse: all it holds together on one side against all it holds on the other.
func (s *Snapshot) DifferencesOf(old *Snapshot, user string, groups []string) []Difference {
	who := []holder{{name: user}}
	for i, g := range groups {
		if !slices.Contains(groups[:i], g) {
			who = append(who, holder{name: g, group: true})
		}
	}
	return newComparison(old, s).compare(who)
}

// DifferencesOfGroup is DifferencesOf for what a group by itself gives.
func (s *Snapshot) DifferencesOfGroup(old *Snapshot, group string) []Difference {
	return newComparison(old, s).compare([]holder{{name: group, group: true}})
}

// comparison compares two versions. Subjects that hold the same roles have the same difference,
// which is then computed once.
type comparison struct {
	old, new *Snapshot
	ids      map[*role]uint64
	known    map[string]beyond
	left     int // of compareSteps
}

// Steps of a comparison, and what one subject and scope has at the most, and whatever others
// took.
const (
	compareSteps = 1 << 24
	compareMost  = 1 << 22
	compareLeast = 1 << 14
)

// beyond is what one holding allows beyond another; more: or more than that.
type beyond struct {
	list []exceeding
	more bool
}

func newComparison(old, s *Snapshot) *comparison {
	return &comparison{old: old, new: s, ids: map[*role]uint64{}, known: map[string]beyond{}, left: compareSteps}
}

// concerned returns the users and groups that the changed objects are about on either side.
func (c *comparison) concerned(changed []Key) []holder {
	seen := map[holder]bool{}
	add := func(b *binding) bool {
		subjects := b.subjects()
		for i := range subjects {
			if name, group, ok := b.principal(&subjects[i]); ok {
				seen[holder{name: name, group: group}] = true
			}
		}
		return true
	}
	for _, k := range changed {
		for _, s := range []*Snapshot{c.old, c.new} {
			h := s.family.hasher
			switch k.Kind {
			case KindRole, KindClusterRole:
				if u, ok := s.uses(k.Kind).get(h, k.Namespace, k.Name); ok {
					u.all(add)
				}
			case KindRoleBinding:
				if b, ok := s.roleBindings.get(h, k.Namespace, k.Name); ok {
					add(b)
				}
			case KindClusterRoleBinding:
				if b, ok := s.clusterRoleBindings.get(h, "", k.Name); ok {
					add(b)
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b holder) int {
		switch {
		case a.group == b.group:
			return cmp.Compare(a.name, b.name)
		case a.group:
			return -1
		}
		return 1
	})
}

// side is what a subject holds in one version: bindings by namespace, "" for the cluster's.
type side struct {
	s    *Snapshot
	refs map[string][]*ref
}

func (c *comparison) side(s *Snapshot, who []holder) side {
	out := side{s: s, refs: map[string][]*ref{}}
	for _, w := range who {
		p, ok := s.principals(w.group).get(s.family.hasher, "", w.name)
		if !ok {
			continue
		}
		out.refs[""] = p.cluster.appendTo(out.refs[""])
		p.spaces.all(func(sp *space) bool {
			out.refs[sp.ns] = sp.refs.appendTo(out.refs[sp.ns])
			return true
		})
	}
	return out
}

// holding are the bindings that count in a scope, by role.
type holding struct {
	refs  []*ref
	units []unit
}

// in returns what the side holds in a namespace, what the cluster's bindings give included.
func (d *side) in(ns string) holding {
	cluster, only := d.refs[""], d.refs[ns]
	out := holding{refs: make([]*ref, 0, len(cluster)+len(only))}
	for _, list := range [][]*ref{cluster, only} {
		if ns == "" && len(out.refs) > 0 {
			break // they are the same list
		}
		begin := len(out.refs)
		out.refs = append(out.refs, list...)
		refs := byRole(out.refs[begin:], func(b *binding, from, to int) {
			if r := d.s.role(b.roleKey()); r != nil {
				out.units = append(out.units, unit{role: r, from: int32(begin + from), to: int32(begin + to)})
			}
		})
		out.refs = out.refs[:begin+len(refs)]
	}
	return out
}

// byRole sorts references, each binding once, and visits the bindings to one role together: one of them, and where they are.
func byRole(refs []*ref, visit func(b *binding, from, to int)) []*ref {
	slices.SortFunc(refs, compareRefs)
	refs = slices.CompactFunc(refs, func(a, b *ref) bool { return a.b == b.b })
	for i := 0; i < len(refs); {
		to := i + 1
		for to < len(refs) && sameRole(refs[i].b, refs[to].b) {
			to++
		}
		visit(refs[i].b, i, to)
		i = to
	}
	return refs
}

// beyond returns what one holding allows beyond another.
func (c *comparison) beyond(a, b *holding, paths bool) beyond {
	key := make([]byte, 0, 8*(len(a.units)+len(b.units)+2))
	for _, units := range [][]unit{a.units, b.units} {
		for _, u := range units {
			id, ok := c.ids[u.role]
			if !ok {
				id = uint64(len(c.ids))
				c.ids[u.role] = id
			}
			key = binary.LittleEndian.AppendUint64(key, id)
		}
		key = binary.LittleEndian.AppendUint64(key, ^uint64(0))
	}
	if paths {
		key = append(key, 'p')
	}
	out, ok := c.known[string(key)]
	if !ok {
		withShare(&c.left, compareLeast, compareMost, func(steps *Steps) { out.list, out.more = exceed(a.units, b.units, paths, steps) })
		c.known[string(key)] = out
	}
	return out
}

// compare compares what a subject holds by all names of who together.
func (c *comparison) compare(who []holder) []Difference {
	was, is := c.side(c.old, who), c.side(c.new, who)
	spaces := slices.AppendSeq(slices.Collect(maps.Keys(was.refs)), maps.Keys(is.refs))
	slices.Sort(spaces)
	spaces = slices.DeleteFunc(slices.Compact(spaces), func(ns string) bool { return ns == "" })
	before, after := was.in(""), is.in("")
	difference := func(ns string, before, after *holding, more, less beyond) Difference {
		return Difference{Namespace: ns, Gained: after.changed(more.list), Lost: before.changed(less.list), TooLarge: more.more ||
			less.more}
	}
	out := []Difference{difference("", &before, &after, c.beyond(&after, &before, true), c.beyond(&before, &after, true))}
	gained, lost := text(c.beyond(&after, &before, false)), text(c.beyond(&before, &after, false))
	if len(out[0].Gained)+len(out[0].Lost) == 0 && !out[0].TooLarge {
		out = out[:0]
	}
	for _, ns := range spaces {
		before, after := was.in(ns), is.in(ns)
		more, less := c.beyond(&after, &before, false), c.beyond(&before, &after, false)
		if text(more) == gained && text(less) == lost {
			continue
		}
		out = append(out, difference(ns, &before, &after, more, less))
	}
	return out
}

// changed says by which bindings what is beyond is held.
func (h *holding) changed(list []exceeding) []ChangedRule {
	out := make([]ChangedRule, len(list))
	for i, e := range list {
		out[i].PolicyRule, out[i].Except = e.rule, e.except
		out[i].By = h.sources(e.by)
	}
	return out
}

// sources returns the bindings that give shares.
func (h *holding) sources(by []share) (out []Source) {
	for _, sh := range by {
		u := h.units[sh.unit]
		for _, r := range h.refs[u.from:u.to] {
			out = append(out, Source{Grant: Grant{ref: r, rule: sh.rule}, Verbs: sh.verbs})
		}
	}
	return out
}

// text writes what is beyond down to compare it; equal texts mean equal rules.
func text(of beyond) string {
	var b strings.Builder
	if of.more {
		b.WriteString("or more\n")
	}
	list := of.list
	for i := range list {
		b.WriteString(ruleText(&list[i].rule))
		for j := range list[i].except {
			b.WriteString(" -" + ruleText(&list[i].except[j]))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
