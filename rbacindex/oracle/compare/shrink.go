package compare

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// shrink makes a case smaller as long as it keeps what it is kept for: writes, rules,
// subjects and list entries go, then, if words is set, strings get shorter. Where nothing can be left out any
// more, it ends; every edit makes the case smaller, so that it does.
func shrink(c Case, words bool, keep func(*Case) bool) Case {
	c = edited(&c, &walker{target: -1})
	for again := true; again; {
		again = false
		for _, words := range []bool{false, words} {
			for i := 0; ; {
				w := &walker{target: i, words: words}
				try := edited(&c, w)
				if !w.hit {
					break
				}
				if try.valid() && keep(&try) {
					c, again = try, true
					continue // what follows has moved up
				}
				i++
			}
		}
	}
	return c
}

// valid reports whether the writes can be made at all, and sets their keys to what their
// objects are now.
func (c *Case) valid() bool {
	for i := range c.Writes {
		w := &c.Writes[i]
		if w.Object == nil {
			continue
		}
		k, err := rbacindex.KeyOf(w.Object)
		if err != nil {
			return false
		}
		w.Key = k
	}
	return true
}

// edited returns a deep copy of a case with the walker's edit made.
func edited(c *Case, w *walker) Case {
	out := *c
	out.Writes = slices.Clone(c.Writes)
	if cut(w, &out.Writes, 4) {
		return out
	}
	var all []*string
	see := func(s *string) { all = append(all, s) }
	for i := range out.Writes {
		switch o := out.Writes[i].Object.(type) {
		case *rbacv1.Role:
			o = o.DeepCopy()
			out.Writes[i].Object = o
			see(&o.Name)
			see(&o.Namespace)
			w.rules(&o.Rules, see)
		case *rbacv1.ClusterRole:
			o = o.DeepCopy()
			out.Writes[i].Object = o
			if o.AggregationRule != nil && w.now() {
				o.AggregationRule = nil
			}
			see(&o.Name)
			w.rules(&o.Rules, see)
		case *rbacv1.RoleBinding:
			o = o.DeepCopy()
			out.Writes[i].Object = o
			see(&o.Name)
			see(&o.Namespace)
			w.binding(&o.RoleRef, &o.Subjects, see)
		case *rbacv1.ClusterRoleBinding:
			o = o.DeepCopy()
			out.Writes[i].Object = o
			see(&o.Name)
			w.binding(&o.RoleRef, &o.Subjects, see)
		}
	}
	w.question(&out.Question, see)
	if w.words {
		w.shorter(all)
	}
	return out
}

// walker makes one edit: the target-th of those there are, counted in the order met. It
// leaves words alone unless told.
type walker struct {
	target, at int
	words      bool
	hit        bool
}

// now reports whether the edit met now is the one.
func (w *walker) now() bool {
	w.at++
	if w.at-1 != w.target {
		return false
	}
	w.hit = true
	return true
}

// cut takes out one entry of a list; of one longer than whole also either half.
func cut[T any](w *walker, list *[]T, whole int) bool {
	n := len(*list)
	if n > whole {
		if w.now() {
			*list = slices.Clone((*list)[n/2:])
			return true
		}
		if w.now() {
			*list = slices.Clone((*list)[:n/2])
			return true
		}
	}
	for i := range *list {
		if w.now() {
			*list = slices.Delete(slices.Clone(*list), i, i+1)
			return true
		}
	}
	return false
}

func (w *walker) rules(list *[]rbacv1.PolicyRule, see func(*string)) {
	cut(w, list, 4)
	for i := range *list {
		r := &(*list)[i]
		for _, l := range []*[]string{&r.Verbs, &r.APIGroups, &r.Resources, &r.ResourceNames, &r.NonResourceURLs} {
			cut(w, l, 4)
			for j := range *l {
				see(&(*l)[j])
			}
		}
	}
}

func (w *walker) binding(ref *rbacv1.RoleRef, subjects *[]rbacv1.Subject, see func(*string)) {
	see(&ref.Name)
	w.blank(&ref.APIGroup)
	cut(w, subjects, 4)
	for i := range *subjects {
		s := &(*subjects)[i]
		w.blank(&s.Namespace)
		w.blank(&s.APIGroup)
		see(&s.Name)
		see(&s.Namespace)
	}
}

// blank empties a string.
func (w *walker) blank(s *string) {
	if *s != "" && w.now() {
		*s = ""
	}
}

func (w *walker) question(q *Question, see func(*string)) {
	a := &q.Request
	cut(w, &a.Groups, 4)
	for _, s := range []*string{&a.User, &a.Verb, &a.Namespace, &a.APIGroup, &a.Resource, &a.Subresource, &a.Name, &a.Path} {
		w.blank(s)
		see(s)
	}
	a.Groups = slices.Clone(a.Groups)
	for i := range a.Groups {
		see(&a.Groups[i])
	}
	see(&q.Ref.Name)
	if q.Update && w.now() {
		q.Update = false
	}
	q.Owner, q.Wanted = copied(q.Owner), copied(q.Wanted)
	w.rules(&q.Owner, see)
	w.rules(&q.Wanted, see)
	switch o := q.Object.(type) {
	case *rbacv1.Role:
		o = o.DeepCopy()
		q.Object = o
		see(&o.Name)
		see(&o.Namespace)
		w.rules(&o.Rules, see)
	case *rbacv1.ClusterRole:
		o = o.DeepCopy()
		q.Object = o
		if o.AggregationRule != nil && w.now() {
			o.AggregationRule = nil
		}
		see(&o.Name)
		w.rules(&o.Rules, see)
	}
}

func copied(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	out := slices.Clone(rules)
	for i := range out {
		out[i] = *out[i].DeepCopy()
	}
	return out
}

// shorter replaces a string by a shorter one wherever it stands.
func (w *walker) shorter(all []*string) {
	seen := map[string]bool{}
	for _, s := range all {
		old := *s
		if seen[old] {
			continue
		}
		seen[old] = true
		for _, next := range []string{"", "a", old[:len(old)/2], old[(len(old)+1)/2:]} {
			if len(next) < len(old) && w.now() {
				for _, other := range all {
					if *other == old {
						*other = next
					}
				}
				return
			}
		}
	}
}
