package whatif

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/retrial-io/retrial/rbacindex"
)

// world is a policy as a plain map, which drafts are applied to without the package under test.
type world struct {
	objects map[rbacindex.Key]any
	labels  map[rbacindex.Key]map[string]string
}

func (w *world) clone() *world { return &world{maps.Clone(w.objects), maps.Clone(w.labels)} }

// apply applies a draft, and then lets every aggregated ClusterRole be computed until nothing changes.
func (w *world) apply(draft []Object) *world {
	out := w.clone()
	for _, o := range draft {
		delete(out.labels, o.Key)
		if o.Object == nil {
			delete(out.objects, o.Key)
			continue
		}
		out.objects[o.Key], out.labels[o.Key] = o.Object, o.Labels
	}
	for again := true; again; {
		again = false
		for k, o := range out.objects {
			r, ok := o.(*rbacv1.ClusterRole)
			if !ok || r.AggregationRule == nil {
				continue
			}
			rules := out.collect(r)
			if fmt.Sprint(rules) != fmt.Sprint(r.Rules) {
				again = true
				out.objects[k] = &rbacv1.ClusterRole{ObjectMeta: r.ObjectMeta, AggregationRule: r.AggregationRule, Rules: rules}
			}
		}
	}
	return out
}

// collect returns the rules that an aggregated role takes from others.
func (w *world) collect(r *rbacv1.ClusterRole) (rules []rbacv1.PolicyRule) {
	for i := range r.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			continue
		}
		for _, k := range slices.SortedFunc(maps.Keys(w.objects), rbacindex.Key.Compare) {
			from, ok := w.objects[k].(*rbacv1.ClusterRole)
			if !ok || from.Name == r.Name || !selector.Matches(labels.Set(w.labels[k])) {
				continue
			}
			for _, rule := range from.Rules {
				if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return fmt.Sprint(have) == fmt.Sprint(rule) }) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules
}

// asked is a request of the log, as generators of drafts use it.
type asked struct {
	user, verb, group, resource, namespace, name, path string
	groups                                             []string
	refused                                            bool
}

// drafts generates drafts over a policy and what was asked for.
type drafts struct {
	*rand.Rand
	world *world
	keys  []rbacindex.Key
	asked []asked
}

func newDrafts(seed uint64, w *world, requests []asked) *drafts {
	return &drafts{rand.New(rand.NewPCG(seed, 11)), w, slices.SortedFunc(maps.Keys(w.objects), rbacindex.Key.Compare), requests}
}

// draft returns one to five changes of different objects.
func (d *drafts) draft() (out []Object) {
	for range 1 + d.IntN(5) {
		for _, o := range d.change() {
			if !slices.ContainsFunc(out, func(have Object) bool { return have.Key == o.Key }) {
				out = append(out, o)
			}
		}
	}
	return out
}

func (d *drafts) change() []Object {
	k := d.keys[d.IntN(len(d.keys))]
	object := d.world.objects[k]
	if rules, ok := rbacindex.RulesOf(object); ok {
		return d.role(k, object, rules)
	}
	subjects, ref, _ := rbacindex.BindingOf(object)
	one := d.asked[d.IntN(len(d.asked))]
	subjects = slices.Clone(subjects)
	switch d.IntN(5) {
	case 0:
		return []Object{{Key: k}}
	case 1:
		subjects = append(subjects, d.subject(&one))
	case 2:
		if len(subjects) > 0 {
			subjects = slices.Delete(subjects, 0, 1)
		}
	case 3: // another binding of the same role
		k.Name = fmt.Sprintf("draft-%d", d.IntN(1000))
		subjects = []rbacv1.Subject{d.subject(&one)}
	default:
		return d.grant()
	}
	return []Object{d.binding(k, subjects, ref)}
}

func (d *drafts) role(k rbacindex.Key, object any, rules []rbacv1.PolicyRule) []Object {
	rules = slices.Clone(rules)
	out := Object{Key: k, Labels: d.world.labels[k]}
	one := d.asked[d.IntN(len(d.asked))]
	at := 0
	if len(rules) > 0 {
		at = d.IntN(len(rules))
		rules[at] = *rules[at].DeepCopy()
	}
	switch choice := d.IntN(8); {
	case choice == 0:
		return []Object{out}
	case choice == 1 && len(rules) > 0:
		rules = slices.Delete(rules, at, at+1)
	case choice == 2 && len(rules) > 0 && len(rules[at].Verbs) > 1:
		rules[at].Verbs = slices.Delete(rules[at].Verbs, 0, 1)
	case choice == 3 && len(rules) > 0 && len(rules[at].Resources) > 0:
		rules[at].ResourceNames = []string{one.name, "default"}
	case choice == 4 && len(rules) > 0:
		rules[at].Verbs = []string{"*"}
	case choice == 5 && k.Kind == rbacindex.KindClusterRole:
		out.Labels = map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + []string{"view", "edit", "admin"}[d.IntN(3)]: "true"}
		rules = append(rules, d.rule(&one))
	default:
		rules = append(rules, d.rule(&one))
	}
	meta := metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}
	out.Object = &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	if r, ok := object.(*rbacv1.ClusterRole); ok {
		to := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules, AggregationRule: r.AggregationRule}
		if r.AggregationRule != nil && d.IntN(2) == 0 {
			to.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: r.AggregationRule.ClusterRoleSelectors[:1]}
		}
		out.Object = to
	}
	return []Object{out}
}

// grant is a new role for something that was asked for, and its binding; of what was refused most often.
func (d *drafts) grant() []Object {
	one := d.asked[d.IntN(len(d.asked))]
	for range 50 {
		if one.refused {
			break
		}
		one = d.asked[d.IntN(len(d.asked))]
	}
	name := fmt.Sprintf("draft-%d", d.IntN(1000))
	role := Object{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name},
		Object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{d.rule(&one)}}}
	k := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: name}
	if one.namespace != "" && d.IntN(2) == 0 {
		k = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: one.namespace, Name: name}
	}
	return []Object{role, d.binding(k, []rbacv1.Subject{d.subject(&one)},
		rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name})}
}

func (d *drafts) rule(one *asked) rbacv1.PolicyRule {
	if one.path != "" {
		return rbacv1.PolicyRule{Verbs: []string{one.verb}, NonResourceURLs: []string{one.path}}
	}
	r := rbacv1.PolicyRule{Verbs: []string{one.verb}, APIGroups: []string{one.group}, Resources: []string{one.resource}}
	if one.name != "" && d.IntN(3) == 0 {
		r.ResourceNames = []string{one.name}
	}
	return r
}

func (d *drafts) subject(one *asked) rbacv1.Subject {
	if len(one.groups) > 0 && d.IntN(3) == 0 {
		return rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: one.groups[d.IntN(len(one.groups))]}
	}
	return rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: one.user}
}

func (d *drafts) binding(k rbacindex.Key, subjects []rbacv1.Subject, ref rbacv1.RoleRef) Object {
	meta := metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}
	if k.Kind == rbacindex.KindClusterRoleBinding {
		ref.Kind = "ClusterRole"
		return Object{Key: k, Object: &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}}
	}
	return Object{Key: k, Object: &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}}
}
