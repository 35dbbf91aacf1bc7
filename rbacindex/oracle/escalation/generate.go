package escalation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// write is one request that writes an RBAC object.
type write struct {
	user      string
	groups    []string
	verb      string // create, update or patch
	old, next any    // *rbacv1.…; old is nil on create
	body      []byte
	// unchecked: the write touches nothing but what the garbage collector does, or nothing.
	unchecked bool
}

type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }
func (g generator) one(n int) bool             { return g.IntN(n) == 0 }

func (g generator) some(n int, from ...string) []string {
	var out []string
	for range 1 + g.IntN(n) {
		out = append(out, g.pick(from...))
	}
	return out
}

func (g generator) rule() rbacv1.PolicyRule {
	if g.one(5) {
		return rbacv1.PolicyRule{Verbs: g.some(2, "get", "post", "*"), NonResourceURLs: g.some(2, "/healthz", "/healthz/*",
			"/metrics", "*")}
	}
	if g.one(8) {
		return g.right()
	}
	r := rbacv1.PolicyRule{Verbs: g.some(3, "get", "list", "watch", "create", "*"), APIGroups: g.some(2, "", "", "apps", "*"),
		Resources: g.some(3, "pods", "pods", "pods/log", "secrets", "configmaps", "*/log", "*")}
	if g.one(4) {
		r.ResourceNames = g.some(2, "a", "b")
	}
	return r
}

// right returns a rule that gives escalate or bind.
func (g generator) right() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: g.some(2, "escalate", "bind", "escalate", "bind", "*"), APIGroups: []string{g.pick(rbacv1.GroupName,
		rbacv1.GroupName, "*", "")},
		Resources: g.some(2, "roles", "clusterroles", "clusterroles", "*")}
	if g.one(2) {
		r.ResourceNames = g.some(3, roleNames...)
	}
	return r
}

func (g generator) rules(n int) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for range g.IntN(n + 1) {
		out = append(out, g.rule())
	}
	return out
}

var (
	roleNames  = []string{"r1", "r2", "r3", "admin"}
	namespaces = []string{"d", "e"}
	users      = []string{"alice", "bob", "carol", "system:serviceaccount:d:sa"}
	groups     = []string{"devs", "ops"}
)

func (g generator) meta(namespace, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if g.one(3) {
		m.Labels = map[string]string{"l": g.pick("1", "2")}
	}
	return m
}

func (g generator) role(namespace, name string) any {
	if namespace != "" {
		return &rbacv1.Role{ObjectMeta: g.meta(namespace, name), Rules: g.rules(3)}
	}
	r := &rbacv1.ClusterRole{ObjectMeta: g.meta("", name), Rules: g.rules(3)}
	if g.one(8) {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"a": "b"}}}}
		if g.one(6) {
			r.AggregationRule.ClusterRoleSelectors = nil
		}
	}
	return r
}

func (g generator) subject() rbacv1.Subject {
	switch g.IntN(3) {
	case 0:
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: g.pick(groups...)}
	case 1:
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "d", Name: "sa"}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: g.pick(users...)}
}

func (g generator) binding(namespace, name string) any {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: g.pick("ClusterRole", "ClusterRole", "Role"), Name: g.pick(roleNames...)}
	if namespace == "" {
		ref.Kind = "ClusterRole"
	}
	if g.one(12) {
		ref.Name = "absent"
	}
	subjects := []rbacv1.Subject{g.subject()}
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: g.meta("", name), RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: g.meta(namespace, name), RoleRef: ref, Subjects: subjects}
}

func put(o any) rbacindex.Change {
	k, err := rbacindex.KeyOf(o)
	if err != nil {
		panic(err) // the generator makes RBAC objects only
	}
	return rbacindex.Change{Key: k, Object: o}
}

// policy makes a policy in which everybody may write RBAC objects as far as the authorizer goes.
func (g generator) policy() (writes []rbacindex.Change, objects []any) {
	add := func(o any) {
		writes, objects = append(writes, put(o)), append(objects, o)
	}
	add(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "writer"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"create", "update", "patch"},
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}}}})
	add(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "writers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
		Kind: "ClusterRole", Name: "writer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}}})
	for _, name := range roleNames {
		if g.IntN(5) > 0 {
			add(g.role("", name))
		}
		for _, ns := range namespaces {
			if g.one(2) {
				add(g.role(ns, name))
			}
		}
	}
	for i := range 2 + g.IntN(6) {
		add(g.binding(g.pick("", "", "d", "e"), fmt.Sprint("b", i)))
	}
	return writes, objects
}

// write makes a write: of a new object, or of one that there is.
func (g generator) write(objects []any) write {
	w := write{user: g.pick(users...), groups: []string{"system:authenticated"}}
	if g.one(2) {
		w.groups = append([]string{g.pick(groups...)}, w.groups...)
	}
	if g.one(40) {
		w.groups = append(w.groups, "system:masters")
	}
	if g.one(2) {
		w.verb = "create"
		ns := g.pick("", "d", "e")
		if g.one(2) {
			w.next = g.role(ns, "new")
			g.held(w.next, objects)
		} else {
			w.next = g.binding(ns, "new")
		}
		w.body = encode(w.next)
		return w
	}
	w.old = objects[g.IntN(len(objects))]
	w.next, w.unchecked, w.body = g.changed(w.old, objects)
	w.verb = "patch"
	if w.body == nil {
		w.verb, w.body = "update", encode(w.next)
	}
	return w
}

// held often makes a role of pieces that a role there is has: rules somebody may hold.
func (g generator) held(role any, objects []any) {
	if g.one(3) {
		return
	}
	from := rulesOf(objects[g.IntN(len(objects))])
	if len(from) == 0 {
		return
	}
	r := *from[g.IntN(len(from))].DeepCopy()
	if g.one(2) && len(r.Verbs) > 0 {
		r.Verbs = r.Verbs[:1]
	}
	if g.one(3) && len(r.Resources) > 0 && len(r.ResourceNames) == 0 {
		r.ResourceNames = []string{"a"}
	}
	setRules(role, []rbacv1.PolicyRule{r})
}

// changed makes a change of an object: the object after it, whether the check leaves it out, and
// the body of a patch, nil for an update by the whole object.
func (g generator) changed(old any, objects []any) (next any, unchecked bool, patch []byte) {
	next = clone(old)
	meta := metaOf(next)
	merge := func(m map[string]any) []byte { return encode(m) }
	switch n := g.IntN(9); {
	case n == 0: // nothing
		if g.one(2) {
			return next, true, []byte(`{}`)
		}
		return next, true, nil
	case n == 1: // finalizers
		meta.Finalizers = []string{"example.com/f"}
		switch g.IntN(3) {
		case 0:
			return next, true, merge(map[string]any{"metadata": map[string]any{"finalizers": meta.Finalizers}})
		case 1:
			return next, true, []byte(`[{"op":"add","path":"/metadata/finalizers","value":["example.com/f"]}]`)
		}
		return next, true, nil
	case n <= 3: // a label, which is nothing when it is there
		was := meta.Labels["l"]
		meta.Labels = map[string]string{"l": g.pick("1", "2", "3")}
		same := was == meta.Labels["l"]
		if g.one(2) {
			return next, same, merge(map[string]any{"metadata": map[string]any{"labels": meta.Labels}})
		}
		return next, same, nil
	}
	if rules := rulesOf(old); rules != nil || isRole(old) {
		setRules(next, g.rules(2))
		g.held(next, objects)
		same := slices.EqualFunc(rulesOf(next), rules, func(a, b rbacv1.PolicyRule) bool { return string(encode(a)) == string(encode(b)) })
		switch g.IntN(4) {
		case 0:
			return next, same, merge(map[string]any{"rules": rulesOf(next)})
		case 1:
			if len(rules) > 0 {
				added := rulesOf(next)
				if len(added) == 0 {
					added = []rbacv1.PolicyRule{g.rule()}
				}
				setRules(next, append(slices.Clone(rules), added[0]))
				return next, false, []byte(`[{"op":"add","path":"/rules/-","value":` + string(encode(added[0])) + `}]`)
			}
		case 2:
			if r, ok := next.(*rbacv1.ClusterRole); ok {
				had := r.AggregationRule != nil
				r.AggregationRule = nil
				r.Rules = old.(*rbacv1.ClusterRole).Rules
				return next, !had, merge(map[string]any{"aggregationRule": nil})
			}
		}
		return next, same, nil
	}
	s := []rbacv1.Subject{g.subject()}
	same := string(encode(s)) == string(encode(subjectsOf(next)))
	setSubjects(next, s)
	if g.one(2) {
		return next, same, merge(map[string]any{"subjects": s})
	}
	return next, same, nil
}
