package whatif

import (
	"fmt"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/retrial-io/retrial/internal/near"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// What a draft does to an object.
const (
	Added      = "added"
	Replaced   = "replaced"
	Deleted    = "deleted"
	Same       = "unchanged"
	Aggregated = "aggregated" // its rules are computed anew, because a role that it takes rules from changes
)

// Change is what a draft does to an object.
type Change struct {
	Object string `json:"object"`         // Kind/name or Kind/namespace/name
	What   string `json:"what"`           // added, replaced, deleted, unchanged, aggregated
	File   string `json:"file,omitempty"` // that it was read from
	Line   int    `json:"line,omitempty"` // it begins at in the file
}

// Simulation is a policy before and after a draft.
type Simulation struct {
	Before, After state.View
	Changes       []Change
	// Changed are the objects that differ.
	Changed []rbacindex.Key
	// Notes say what would not go as the draft has it.
	Notes []string

	open []rbacindex.Key // aggregated roles whose rules are not known afterwards
}

// Simulate applies a draft to a policy. labelsOf returns the labels of a ClusterRole of the policy, of which a view knows none; ok is false
// where they are not known.
func Simulate(before state.View, draft []Object, labelsOf func(rbacindex.Key) (set map[string]string, ok bool)) (*Simulation, error) {
	s := &Simulation{Before: before, Changes: []Change{}, Notes: []string{}}
	var changes []rbacindex.Change
	own := map[rbacindex.Key]map[string]string{}
	known := map[rbacindex.Key]bool{}
	for _, o := range draft {
		if known[o.Key] {
			return nil, fmt.Errorf("%s is both written and deleted", o.Key)
		}
		known[o.Key] = true
		have, exists := before.RBAC.Get(o.Key)
		unsure := !exists && before.IsUnknown(o.Key) || before.IsDoubted(o.Key)
		what := Added
		switch {
		case o.Object == nil && !exists && !unsure:
			return nil, fmt.Errorf("there is no %s to delete%s", o.Key, phrase.DidYouMean("; ", nearKeys(o.Key, before.RBAC)))
		case o.Object == nil:
			what = Deleted
		case exists && !unsure && sameMeaning(have, o.Object):
			what = Same
		case exists:
			what = Replaced
		}
		if o.Object != nil {
			own[o.Key] = o.Labels
			s.note(o.Key, have, o.Object, exists, before.RBAC, draft)
		}
		if what != Same {
			changes = append(changes, rbacindex.Change{Key: o.Key, Object: o.Object})
			s.Changed = append(s.Changed, o.Key)
		}
		s.Changes = append(s.Changes, Change{o.Key.String(), what, o.File, o.Line})
	}
	after, err := before.RBAC.Apply(changes...)
	if err != nil {
		return nil, fmt.Errorf("apply the draft: %w", err)
	}
	more := s.aggregate(after, known, func(k rbacindex.Key) (map[string]string, bool) {
		if set, drafted := own[k]; drafted {
			return set, true
		}
		return labelsOf(k)
	}, labelsOf)
	changes = append(changes, more...)
	if s.After, err = with(before, changes, known); err != nil {
		return nil, err
	}
	s.After.Unknown = append(s.After.Unknown, s.open...)
	slices.SortFunc(s.After.Unknown, func(a, b rbacindex.Key) int { return kept.CompareKeys(kept.KeyOf(a), kept.KeyOf(b)) })
	slices.SortFunc(s.Changed, rbacindex.Key.Compare)
	s.Changed = slices.Compact(s.Changed)
	return s, nil
}

// note says what an apiserver or a controller would do otherwise.
func (s *Simulation) note(k rbacindex.Key, have, want any, exists bool, policy *rbacindex.Snapshot, draft []Object) {
	if _, ref, ok := rbacindex.BindingOf(want); ok {
		if _, old, _ := rbacindex.BindingOf(have); exists && old != ref {
			s.Notes = append(s.Notes, fmt.Sprintf("%s names %s %s now: an apiserver refuses to change that, delete the binding first", k,
				old.Kind, old.Name))
		}
		role := rbacindex.RoleKey(&ref, k.Namespace)
		_, there := policy.Get(role)
		i := slices.IndexFunc(draft, func(o Object) bool { return o.Key == role })
		if i >= 0 && draft[i].Object == nil || i < 0 && !there && !s.Before.IsUnknown(role) {
			s.Notes = append(s.Notes, fmt.Sprintf("%s names %s, which does not exist%s", k, role,
				phrase.DidYouMean("; ", nearKeys(role, policy))))
		}
	}
	if r, ok := want.(*rbacv1.ClusterRole); ok && r.AggregationRule != nil && len(r.Rules) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%s has an aggregationRule: its own rules are replaced by those of the roles it selects", k))
	}
}

// nearKeys returns objects of a kind that are called much like one.
func nearKeys(k rbacindex.Key, policy *rbacindex.Snapshot) []string {
	var names []string
	policy.All(func(have rbacindex.Key, _ any) bool {
		if have.Kind == k.Kind {
			names = append(names, have.String())
		}
		return true
	})
	slices.Sort(names)
	return near.Words(k.String(), names, 3)
}

// sameMeaning reports whether two objects of one key mean the same to an authorizer and to the controller.
func sameMeaning(a, b any) bool {
	if as, ar, ok := rbacindex.BindingOf(a); ok {
		bs, br, _ := rbacindex.BindingOf(b)
		return ar == br && slices.Equal(as, bs)
	}
	if x, ok := a.(*rbacv1.ClusterRole); ok {
		y := b.(*rbacv1.ClusterRole)
		if !reflect.DeepEqual(x.AggregationRule, y.AggregationRule) {
			return false
		}
		if x.AggregationRule != nil {
			return true // whatever its rules are, the controller replaces them
		}
	}
	as, _ := rbacindex.RulesOf(a)
	bs, _ := rbacindex.RulesOf(b)
	return slices.EqualFunc(as, bs, rbacindex.SameRule)
}

// with returns a view with changes in it: what they write is known, whatever it was before.
func with(view state.View, changes []rbacindex.Change, known map[rbacindex.Key]bool) (out state.View, err error) {
	out = view
	if out.RBAC, err = view.RBAC.Apply(changes...); err != nil {
		return out, fmt.Errorf("apply the draft: %w", err)
	}
	if view.Most != nil {
		if out.Most, err = view.Most.Apply(changes...); err != nil {
			return out, fmt.Errorf("apply the draft: %w", err)
		}
	}
	written := func(k rbacindex.Key) bool { return known[k] }
	out.Unknown = slices.DeleteFunc(slices.Clone(view.Unknown), written)
	out.Doubted = slices.DeleteFunc(slices.Clone(view.Doubted), written)
	if len(out.Doubted) == 0 {
		out.Most = nil
	}
	return out, nil
}

// labelling returns the labels of a ClusterRole; ok is false where they are not known.
type labelling func(rbacindex.Key) (set map[string]string, ok bool)

// aggregate computes the rules of aggregated ClusterRoles anew, as Kubernetes' controller does, where the draft writes one or a role that
// one takes rules from, before or after.
func (s *Simulation) aggregate(after *rbacindex.Snapshot, drafted map[rbacindex.Key]bool, now, before labelling) []rbacindex.Change {
	type taking struct {
		key rbacindex.Key
		by  []labels.Selector
	}
	var takers []taking
	roles := map[rbacindex.Key]*rbacv1.ClusterRole{}
	after.All(func(k rbacindex.Key, o any) bool {
		r, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			return true
		}
		roles[k] = r
		if r.AggregationRule != nil {
			takers = append(takers, taking{k, rbacindex.SelectorsOf(r)})
		}
		return true
	})
	if len(takers) == 0 {
		return nil
	}
	slices.SortFunc(takers, func(a, b taking) int { return a.key.Compare(b.key) })
	order := make([]rbacindex.Key, 0, len(roles))
	for k := range roles {
		order = append(order, k)
	}
	slices.SortFunc(order, rbacindex.Key.Compare)
	matches := func(by []labels.Selector, set map[string]string) bool {
		return slices.ContainsFunc(by, func(x labels.Selector) bool { return x.Matches(labels.Set(set)) })
	}
	dirty := map[rbacindex.Key]bool{}
	for k := range drafted {
		if k.Kind == rbacindex.KindClusterRole {
			dirty[k] = true
		}
	}
	unlabelled := map[rbacindex.Key]bool{}
	for range len(takers) + 1 { // a chain of roles that take rules from each other is no longer than they are many
		again := false
		for _, t := range takers {
			wanted := drafted[t.key]
			for k := range dirty {
				old, _ := before(k)
				set, _ := now(k)
				wanted = wanted || k != t.key && (matches(t.by, old) || matches(t.by, set))
			}
			if !wanted {
				continue
			}
			var rules []rbacv1.PolicyRule
			for _, x := range t.by {
				for _, k := range order {
					set, ok := now(k)
					if !ok {
						unlabelled[k] = true
					}
					if k == t.key || !x.Matches(labels.Set(set)) {
						continue
					}
					for i := range roles[k].Rules {
						r := &roles[k].Rules[i]
						if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return rbacindex.SameRule(have, *r) }) {
							rules = append(rules, *r)
						}
					}
				}
			}
			if slices.EqualFunc(rules, roles[t.key].Rules, rbacindex.SameRule) {
				continue
			}
			roles[t.key] = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: t.key.Name}, Rules: rules,
				AggregationRule: roles[t.key].AggregationRule}
			dirty[t.key], again = true, true
		}
		if !again {
			break
		}
	}
	var out []rbacindex.Change
	for _, t := range takers {
		if !dirty[t.key] {
			continue
		}
		old, had := s.Before.RBAC.Get(t.key)
		was, _ := rbacindex.RulesOf(old)
		out = append(out, rbacindex.Change{Key: t.key, Object: roles[t.key]})
		if had && slices.EqualFunc(was, roles[t.key].Rules, rbacindex.SameRule) {
			continue
		}
		s.Changed = append(s.Changed, t.key)
		if !drafted[t.key] {
			s.Changes = append(s.Changes, Change{Object: t.key.String(), What: Aggregated})
		}
	}
	if len(out) > 0 && len(unlabelled) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("the labels of %d ClusterRoles are not known: what aggregated roles hold is not, either",
			len(unlabelled)))
		for i := range out {
			out[i].Object = nil
			s.open = append(s.open, out[i].Key)
		}
	}
	return out
}
