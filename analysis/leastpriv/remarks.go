package leastpriv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// keeps lists the bindings of groups. loose is what the suggestion removes.
func (a *Advisor) keeps(s *Suggestion, u *usage, ix *usedIndex, loose []scopedAtom) {
	e := a.effort()
	done := map[rbacindex.Key]bool{}
	var groups []string
	for _, set := range u.groups {
		groups = append(groups, set...)
	}
	slices.Sort(groups)
	for _, group := range slices.Compact(groups) {
		for _, k := range a.group[group] {
			if done[k] {
				continue
			}
			done[k] = true
			o, _ := a.view.RBAC.Get(k)
			_, ref, _ := rbacindex.BindingOf(o)
			rules, _ := rulesOf(a.view.RBAC, &ref, k.Namespace)
			keep := Keep{Binding: k.String(), Role: roleText(&ref, k.Namespace), Group: group}
			unused, _, excess, _ := ix.unusedOf("", "", rules, k.Namespace, e)
			relied, known := ix.servedBy(rules, k.Namespace, e)
			keep.Excess, keep.Relied = excess, relied
			keep.TooLarge = !known || slices.ContainsFunc(unused, func(u Unused) bool { return u.TooLarge }) || !keep.undoes(loose, rules,
				k.Namespace, e)
			s.Excess.Kept += keep.Excess
			if keep.Relied > 0 || keep.Excess > 0 || keep.TooLarge {
				s.Keeps = append(s.Keeps, keep)
			}
		}
	}
	slices.SortStableFunc(s.Keeps, func(a, b Keep) int { return cmp.Compare(b.Excess, a.Excess) })
}

// undoes lists what of loose the binding grants; false if that takes too many steps.
func (keep *Keep) undoes(loose []scopedAtom, rules []rbacv1.PolicyRule, scope string, e *effort) bool {
	long := lengths(rules)
	for i := range loose {
		l := &loose[i]
		if scope != "" && scope != l.scope {
			continue
		}
		if len(keep.Undoes) == maxListed {
			break
		}
		if !e.take(long) {
			return false
		}
		if text := grantText(&l.atom); slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return covers(&r, &l.atom) }) &&
			!slices.Contains(keep.Undoes, text) {
			keep.Undoes = append(keep.Undoes, text)
		}
	}
	return true
}

// gaps describes what the suggestion does not know.
func (a *Advisor) gaps(s *Suggestion, u *usage, h *history, final *rbacindex.Snapshot) {
	add := func(format string, args ...any) { s.Gaps = append(s.Gaps, fmt.Sprintf(format, args...)) }
	for _, class := range slices.Sorted(maps.Keys(u.unjudged)) {
		add("%s", unjudgedText(class, u.unjudged[class]))
	}
	if n := u.contentUnknown(); n > 0 {
		add("%d writes were logged without their content, or their events are past retention: what they needed behind the authorizer is "+
			"not known (log roles, bindings and certificate requests at RequestResponse)", n)
	}
	if n := s.tooLarge(); n > 0 {
		add("%d rules and bindings are too large to weigh: what was used of them is not known, and their excess is a lower bound", n)
	}
	for i := range h.leftOut {
		if n := &h.leftOut[i]; !n.allowed(final) {
			add("left out, because no exact rule can allow it: %s", n.String())
		}
	}
	back := 0
	for i := range h.needs {
		if !h.needs[i].allowed(a.view.RBAC) {
			back++
		}
	}
	switch {
	case back > 0 && !a.strict:
		add("%d distinct requests were allowed by grants that have been taken away since: this does not give them back", back)
	case back > 0 && len(s.Apply) > 0:
		add("%d distinct requests were allowed by grants that have been taken away since: this gives them back", back)
	}
	if text := periodText(h.needs, a.recording.To.Sub(a.recording.From)); text != "" {
		add("%s", text)
	}
	for _, o := range s.Owned {
		add("%s belongs to %s: change it there, or it is written again", o.Object, o.Owner)
	}
	for _, r := range s.Remove {
		meta := a.meta(r.key)
		if meta.Labels["kubernetes.io/bootstrapping"] != "" && meta.Annotations["rbac.authorization.kubernetes.io/autoupdate"] != "false" {
			add("%s is made again when an apiserver starts, unless it stays with the annotation "+
				"rbac.authorization.kubernetes.io/autoupdate set to false", r.key)
		}
	}
	for _, ns := range a.missingNamespaces(s) {
		add("namespace %s does not exist: its Role cannot be applied before it is created again", ns)
	}
	for _, k := range a.doubted(u) {
		add("%s may give the subject more, by a write whose answer was lost: the suggestion neither relies on it nor removes it; check "+
			"what it is before applying", k)
	}
	if n := len(a.view.Unknown) + len(a.view.UnknownKinds); n > 0 {
		add("%d objects or kinds of the policy are not known: what they grant is missing here", n)
	}
}

// tooLarge counts what was not weighed.
func (s *Suggestion) tooLarge() int {
	n := 0
	for i := range s.Unused {
		if s.Unused[i].TooLarge {
			n++
		}
	}
	for i := range s.Keeps {
		if s.Keeps[i].TooLarge {
			n++
		}
	}
	return n
}

// doubted returns the bindings of a subject and its groups, and their roles, that may give more than
// is certain.
func (a *Advisor) doubted(u *usage) []rbacindex.Key {
	var out []rbacindex.Key
	if a.view.Most == nil {
		return nil
	}
	var groups []string
	for _, set := range u.groups {
		groups = append(groups, set...)
	}
	for _, h := range HeldBy(a.view.Most, u.user, append(groups, content.GroupAnybody)) {
		for _, k := range [...]rbacindex.Key{h.Binding, rbacindex.RoleKey(&h.Role, h.Binding.Namespace)} {
			if object, ok := a.view.InDoubt(k); ok && !slices.Contains(out, object) {
				out = append(out, object)
			}
		}
	}
	return out
}

// missingNamespaces returns the namespaces of objects to apply that are known not to exist.
func (a *Advisor) missingNamespaces(s *Suggestion) []string {
	var out []string
	for _, o := range s.Apply {
		ns := change(o).Key.Namespace
		if ns == "" || slices.Contains(out, ns) {
			continue
		}
		if _, known := a.state.Version(kept.Namespaces, "", ns, a.recording.To); known == state.Absent {
			out = append(out, ns)
		}
	}
	return out
}

// owned lists the objects of a change that something else writes.
func (a *Advisor) owned(apply Objects, remove []Remove) []Owned {
	var keys []rbacindex.Key
	for _, o := range apply {
		keys = append(keys, change(o).Key)
	}
	for i := range remove {
		keys = append(keys, remove[i].key)
	}
	slices.SortFunc(keys, rbacindex.Key.Compare)
	out := []Owned{}
	for _, k := range slices.Compact(keys) {
		meta := a.meta(k)
		if owner := OwnerOf(&meta); owner != "" {
			out = append(out, Owned{Object: k.String(), Owner: owner})
		}
	}
	return out
}
