package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// disagreement is one answer of the state that is not what the registry held.
type disagreement struct {
	object string
	at     time.Time
	live   bool // asked at that moment, not at the end
	text   string
}

// String returns it in one line.
func (d disagreement) String() string {
	when := "at the end"
	if d.live {
		when = "at once"
	}
	return fmt.Sprintf("%s at %s, asked %s: %s", d.object, d.at.Format("15:04:05.000000"), when, d.text)
}

// counts is how many answers there were about a kind, how many of them were unknown, and how many
// were given within the bounds of a change.
type counts struct{ Answers, Unknown, Changing int }

func (c counts) plus(d counts) counts {
	return counts{c.Answers + d.Answers, c.Unknown + d.Unknown, c.Changing + d.Changing}
}

// judge compares a state with what the registry held.
type judge struct {
	history *history
	objects []string // resource/namespace/name of all there ever were or were asked for
	found   []disagreement
	counts  map[string]counts // by resource
	decoded map[string]any
	// hook changes what is observed; nil changes nothing.
	hook func([]observe.Observation) []observe.Observation
}

// compare plays what was learnt to a state and compares.
func compare(h *history, seq sequence, hook func([]observe.Observation) []observe.Observation) *judge {
	j := &judge{history: h, counts: map[string]counts{}, decoded: map[string]any{}, hook: hook}
	names := map[string]bool{}
	for i := range seq.Steps {
		if o := seq.Steps[i].Object; o != "" {
			names[o] = true
		}
	}
	for _, m := range h.moments {
		for key := range m.pairs {
			parts := strings.Split(strings.TrimPrefix(key, "/registry/"), "/")
			if len(parts) == 2 {
				parts = slices.Insert(parts, 1, "")
			}
			names[strings.Join(parts, "/")] = true
		}
	}
	j.objects = slices.Sorted(maps.Keys(names))
	j.compare()
	return j
}

// compare tells a state what was learnt, in the order in which it arrived, and asks it about each
// moment when all that was done by then has arrived, and about all moments at the end.
func (j *judge) compare() {
	st := state.New("oracle")
	var held []news
	next := 0
	apply := func(n *news) {
		obs := n.obs
		if j.hook != nil {
			obs = j.hook(slices.Clone(obs))
		}
		st.Apply(obs...)
	}
	for i := range j.history.moments {
		for next < len(j.history.news) && j.history.news[next].moment <= i {
			n := j.history.news[next]
			next++
			for k := range held {
				if held[k].late--; held[k].late == 0 {
					apply(&held[k])
				}
			}
			held = slices.DeleteFunc(held, func(n news) bool { return n.late == 0 })
			if n.late > 0 {
				held = append(held, n)
				continue
			}
			apply(&n)
		}
		if len(held) == 0 {
			j.ask(st, &j.history.moments[i], true)
		}
	}
	for k := range held {
		apply(&held[k])
	}
	for i := range j.history.moments {
		j.ask(st, &j.history.moments[i], false)
	}
}

// object returns what the registry held of an object, nil if there was none.
func object[T any](j *judge, m *moment, name string) *T {
	kv := m.pairs["/registry/"+strings.ReplaceAll(name, "//", "/")]
	if kv == nil {
		return nil
	}
	key := fmt.Sprint(name, kv.ModRevision)
	if o, ok := j.decoded[key]; ok {
		return o.(*T)
	}
	o := new(T)
	if err := json.Unmarshal(kv.Value, o); err != nil {
		panic(fmt.Sprintf("read %s: %v", name, err))
	}
	j.decoded[key] = o
	return o
}

// question is one question about an object at a moment.
type question struct {
	*judge
	st       *state.State
	m        *moment
	live     bool
	full     string
	resource string
	ns, name string
}

func (q *question) differs(format string, args ...any) {
	q.found = append(q.found, disagreement{q.full, q.m.at, q.live, fmt.Sprintf(format, args...)})
}

// answered counts an answer, and reports whether it was known, and whether the object was rightly
// said to be there.
func (q *question) answered(known state.Known, there bool) bool {
	c := q.counts[q.resource]
	c.Answers++
	if known == state.Unknown {
		c.Unknown++
	}
	changing := q.changing()
	if changing {
		c.Changing++
	}
	q.counts[q.resource] = c
	switch {
	case changing: // before or after, whichever it was
		return false
	case known == state.Present && !there:
		q.differs("said to be there, is not")
	case known == state.Absent && there:
		q.differs("said not to be there, is")
	}
	return known == state.Present && there
}

// changing reports whether a change of the object may have become effective before the moment, or
// after it.
func (q *question) changing() bool {
	return slices.ContainsFunc(q.st.History(q.resource, q.ns, q.name), func(v state.Version) bool {
		return !v.NotBefore.After(q.m.at) && v.NotAfter.After(q.m.at)
	})
}

// ask asks the state about all objects at a moment.
func (j *judge) ask(st *state.State, m *moment, live bool) {
	var view state.View
	for _, full := range j.objects {
		parts := strings.Split(full, "/")
		q := question{judge: j, st: st, m: m, live: live, full: full, resource: parts[0], ns: parts[1], name: parts[2]}
		switch q.resource {
		case kept.Pods:
			q.pod()
		case kept.Roles, kept.ClusterRoles, kept.RoleBindings, kept.ClusterRoleBindings:
			if view.RBAC == nil {
				view = st.RBAC(m.at)
			}
			q.rbac(&view)
		case kept.Namespaces:
			q.namespace()
		case kept.Secrets:
			q.secret()
		case kept.CertificateSigning:
			q.signing()
		default:
			q.other()
		}
	}
	if !live {
		j.related(st, m, live)
	}
}

// pod asks about a pod.
func (q *question) pod() {
	is := object[corev1.Pod](q.judge, q.m, q.full)
	said, known := q.st.Pod(q.ns, q.name, q.m.at)
	if !q.answered(known, is != nil) {
		return
	}
	if said.UID != "" && said.UID != string(is.UID) {
		q.differs("said to have uid %s, has %s", said.UID, is.UID)
		return
	}
	if said.ServiceAccount != "" && said.ServiceAccount != is.Spec.ServiceAccountName {
		q.differs("said to be of account %s, is of %s", said.ServiceAccount, is.Spec.ServiceAccountName)
	}
	switch {
	case said.Bound.IsZero() && said.ServiceAccount == "": // nothing was recorded of it
	case said.Bound.IsZero() != (is.Spec.NodeName == ""), said.Node != "" && said.Node != is.Spec.NodeName:
		q.differs("said to be on node %q since %v, is on %q", said.Node, said.Bound, is.Spec.NodeName)
	}
	deletion := time.Time{}
	if is.DeletionTimestamp != nil {
		deletion = is.DeletionTimestamp.UTC()
	}
	if !said.DeletionOpen && !said.DeletionAt.Equal(deletion) {
		q.differs("said to be deleted at %v, is at %v", said.DeletionAt, deletion)
	}
}

// rbac asks about a role or a binding.
func (q *question) rbac(view *state.View) {
	var is any
	var meta *metav1.ObjectMeta
	key := rbacindex.Key{Namespace: q.ns, Name: q.name}
	switch q.resource {
	case kept.Roles:
		key.Kind = rbacindex.KindRole
		if o := object[rbacv1.Role](q.judge, q.m, q.full); o != nil {
			is, meta = rulesOf(o.Rules, nil), &o.ObjectMeta
		}
	case kept.ClusterRoles:
		key.Kind = rbacindex.KindClusterRole
		if o := object[rbacv1.ClusterRole](q.judge, q.m, q.full); o != nil {
			is, meta = rulesOf(o.Rules, o.AggregationRule), &o.ObjectMeta
		}
	case kept.RoleBindings:
		key.Kind = rbacindex.KindRoleBinding
		if o := object[rbacv1.RoleBinding](q.judge, q.m, q.full); o != nil {
			is, meta = bindingOf(o.RoleRef, o.Subjects), &o.ObjectMeta
		}
	default:
		key.Kind = rbacindex.KindClusterRoleBinding
		if o := object[rbacv1.ClusterRoleBinding](q.judge, q.m, q.full); o != nil {
			is, meta = bindingOf(o.RoleRef, o.Subjects), &o.ObjectMeta
		}
	}
	said, there := view.RBAC.Get(key)
	known := state.Absent
	switch {
	case view.IsDoubted(key):
		known = state.Unknown
		q.bounded(view, key, is)
	case there:
		known = state.Present
	case view.IsUnknown(key):
		known = state.Unknown
	}
	version, also := q.st.Version(q.resource, q.ns, q.name, q.m.at)
	if also != known {
		q.differs("the view says %v, the state %v", known, also)
	}
	if !q.answered(known, is != nil) {
		return
	}
	if version.UID != "" && version.UID != string(meta.UID) {
		q.differs("said to have uid %s, has %s", version.UID, meta.UID)
		return
	}
	if content := contentOf(said); !reflect.DeepEqual(content, is) {
		q.differs("said to hold %v, holds %v", content, is)
	}
}

// bounded asks about an object of which what it holds at least and at the most is known.
func (q *question) bounded(view *state.View, key rbacindex.Key, is any) {
	least, _ := view.RBAC.Get(key)
	all, _ := is.([]string)
	for _, part := range contentOf(least) {
		if !slices.Contains(all, part) {
			q.differs("said to hold at least %s, holds %v", part, all)
		}
	}
	var at [][]string
	view.Most.All(func(k rbacindex.Key, most any) bool {
		if content.ObjectOf(k) == key {
			if unbounded(most) {
				all = nil
			}
			at = append(at, contentOf(most))
		}
		return true
	})
	within := func(most []string) bool {
		return !slices.ContainsFunc(all, func(part string) bool { return !slices.Contains(most, part) })
	}
	if len(all) > 0 && !slices.ContainsFunc(at, within) {
		q.differs("said to hold at the most one of %v, holds %v", at, all)
	}
}

// unbounded reports whether an object may hold any subjects, or any rules.
func unbounded(object any) bool {
	anybody := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.GroupKind && s.Name == content.GroupAnybody
		})
	}
	anything := func(rules []rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, "*") && slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*") &&
				len(r.ResourceNames) == 0
		})
	}
	switch o := object.(type) {
	case *rbacv1.Role:
		return anything(o.Rules)
	case *rbacv1.ClusterRole:
		return anything(o.Rules)
	case *rbacv1.RoleBinding:
		return anybody(o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		return anybody(o.Subjects)
	}
	return false
}

// contentOf returns what is compared of roles and bindings.
func contentOf(object any) []string {
	switch o := object.(type) {
	case *rbacv1.Role:
		return rulesOf(o.Rules, nil)
	case *rbacv1.ClusterRole:
		return rulesOf(o.Rules, o.AggregationRule)
	case *rbacv1.RoleBinding:
		return bindingOf(o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		return bindingOf(o.RoleRef, o.Subjects)
	}
	return nil
}

func rulesOf(rules []rbacv1.PolicyRule, aggregation *rbacv1.AggregationRule) []string {
	out := make([]string, 0, len(rules)+1)
	for i := range rules {
		out = append(out, fmt.Sprint(rules[i]))
	}
	if aggregation != nil {
		out = append(out, fmt.Sprint(aggregation))
	}
	return out
}

func bindingOf(ref rbacv1.RoleRef, subjects []rbacv1.Subject) []string {
	out := []string{fmt.Sprint(ref)}
	for i := range subjects {
		out = append(out, fmt.Sprint(subjects[i]))
	}
	return out
}
