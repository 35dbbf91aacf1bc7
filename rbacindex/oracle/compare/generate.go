package compare

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/retrial-io/retrial/rbacindex"
)

// generator makes policies and questions. All randomness comes from its seed.
type generator struct{ *rand.Rand }

// newGenerator returns the generator of one lot of a run.
func newGenerator(seed, lot uint64) generator { return generator{rand.New(rand.NewPCG(seed, lot))} }

func (g generator) pick(from []string) string { return from[g.IntN(len(from))] }

// one reports true once in n times.
func (g generator) one(n int) bool { return g.IntN(n) == 0 }

// some returns up to n picks: now and then none, sometimes the same twice.
func (g generator) some(n int, from []string) []string {
	if g.one(12) {
		return nil
	}
	out := make([]string, 1+g.IntN(n))
	for i := range out {
		out[i] = g.pick(from)
	}
	return out
}

// Few names, so that they meet; odd ones, near ones and ones of other cases among them.
var (
	verbs = []string{"get", "get", "get", "list", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "post", "put",
		"head", "options",
		"use", "GET", "Get", "", "*", "**", "ge", "get ", "bind", "escalate", "impersonate", "approve", "sign"}
	apiGroups = []string{"", "", "", "apps", "apps", rbacv1.GroupName, "batch", "*", "*", "App", "apps ", "*.io", "日本"}
	resources = []string{"pods", "pods", "pods", "deployments", "secrets", "Pods", "nodes", "pods/log", "pods/exec", "deployments/scale",
		"*", "*", "*/log", "*/scale", "*/exec", "*/*",
		"*/", "", "/", "/log", "pods/", "pods/*", "pods/log/x", "*/log/x", "roles", "clusterroles", "ünï/ço", "pod", "podss"}
	resourceNames = []string{"pods", "pods", "pods", "deployments", "secrets", "Pods", "nodes", "roles", "clusterroles", "*", "", "ünï",
		"pod", "podss", "pods/log"}
	subresources = []string{"", "", "", "", "log", "exec", "scale", "status", "*", "log/x", "/", "ço", "Log"}
	names        = []string{"", "", "a", "a", "b", "c", "A", "*", "ä", "a/b", "x y", "r1", "mine"}
	namespaces   = []string{"default", "default", "kube-system", "n", "ns:x", "é"}
	paths        = []string{"", "/", "/healthz", "/healthz/", "/healthz/ready", "/healthzz", "/Healthz", "/api", "/api/v1", "/apis/apps/v1",
		"*", "/*", "/healthz*", "/api/é/x", "healthz", "//"}
	urls = []string{"", "/", "/healthz", "/healthz", "/healthz/*", "/healthz*", "*", "/*", "**", "/api", "/api/*", "/api/**", "/api/*/x",
		"/api/é*", "*/ready", "/healthz/ready"}
	users = []string{"alice", "alice", "bob", "Alice", "", "*", "system:anonymous", "system:masters", "system:admin", "ops",
		"system:serviceaccount:default:sa", "system:serviceaccount:default:sa", "system:serviceaccount:n:sa",
		"system:serviceaccount:ns:x:sa", "system:serviceaccount::sa",
		"system:serviceaccount:ns:x", "system:serviceaccount:default:", "system:serviceaccount:", "System:serviceaccount:default:sa",
		"system:serviceaccount:default:SA",
		"äöü", "a\"b\\c", "a\nb", "a b", "日本語", "\xff\xfe"}
	groups = []string{"ops", "ops", "devs", "devs", "", "*", "Ops", "system:authenticated", "system:unauthenticated",
		"system:serviceaccounts", "system:serviceaccounts:default",
		"system:masters ", "System:masters", "system:master", "alice", "gr\tp", "グループ"}
	masters      = "system:masters"
	roleNames    = []string{"r1", "r1", "r1", "r2", "r2", "r2", "r3", "r3", "r4", "R1", "cluster-admin", "r\"q", "ж", "", "system:r:x", "*"}
	bindingNames = []string{"b1", "b2", "b3", "b4", "b5", "b6", "B1", "b\\7", "b日", "system:b:x"}
	accountNames = []string{"sa", "sa", "sa", "", "SA", "x:sa", "x", "*"}
	accountSpace = []string{"", "", "", "default", "default", "n", "ns", "ns:x", "Default"}
	subjectKinds = []string{"User", "User", "User", "User", "User", "Group", "Group", "Group", "Group", "Group",
		"ServiceAccount", "ServiceAccount", "ServiceAccount", "ServiceAccount", "ServiceAccount", "user", "Robot", ""}
	roleKinds = []string{"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "Role", "Role", "Role",
		"Role", "Foo", "", "role"}
	refGroups = []string{rbacv1.GroupName, rbacv1.GroupName, rbacv1.GroupName, "", "x"}
)

// rule makes a rule. One in a few hundred is out of proportion in one list.
func (g generator) rule() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: g.some(3, verbs)}
	if g.IntN(5) > 0 {
		r.APIGroups, r.Resources = g.some(3, apiGroups), g.some(4, resources)
		if g.one(3) {
			r.ResourceNames = g.some(3, names)
		}
	}
	if g.one(3) {
		r.NonResourceURLs = g.some(4, urls)
	}
	if g.one(20) { // more groups and resources than are entered pair by pair
		r.APIGroups, r.Resources = append(r.APIGroups, g.some(9, apiGroups)...), append(r.Resources, g.some(9, resources)...)
	}
	switch g.IntN(900) {
	case 0: // too many pairs to enter one by one
		for i := range 70 {
			r.Resources = append(r.Resources, fmt.Sprint("r", i))
			r.APIGroups = append(r.APIGroups, fmt.Sprint("g", i))
		}
	case 1: // too many names
		for i := range 1100 {
			r.ResourceNames = append(r.ResourceNames, fmt.Sprint("name-", i))
		}
	case 2: // many prefixes of one path
		for i := range 40 {
			r.NonResourceURLs = append(r.NonResourceURLs, deepPath[:i]+"*")
		}
	}
	return r
}

const deepPath = "/healthz/ready/and/a/very/long/way/to/go"

func (g generator) rules(n int) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for range g.IntN(n + 1) {
		if len(out) > 0 && g.one(12) { // the same again
			out = append(out, out[g.IntN(len(out))])
			continue
		}
		out = append(out, g.rule())
	}
	return out
}

func (g generator) subject() rbacv1.Subject {
	s := rbacv1.Subject{Kind: g.pick(subjectKinds), APIGroup: g.pick(refGroups)}
	switch s.Kind {
	case rbacv1.GroupKind:
		if s.Name = g.pick(groups); g.one(30) {
			s.Name = masters
		}
	case rbacv1.ServiceAccountKind:
		s.Name, s.Namespace = g.pick(accountNames), g.pick(accountSpace)
	default:
		if s.Name = g.pick(users); g.one(20) {
			s.Namespace = g.pick(namespaces) // means nothing there
		}
	}
	return s
}

func (g generator) subjects() []rbacv1.Subject {
	var out []rbacv1.Subject
	for range g.IntN(5) {
		out = append(out, g.subject())
	}
	return out
}

func (g generator) roleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: g.pick(refGroups), Kind: g.pick(roleKinds), Name: g.pick(roleNames)}
}

// object makes an object of a key's kind with new content. Some ClusterRoles have an
// aggregationRule beside rules: what is stored is what counts.
func (g generator) object(k rbacindex.Key) any {
	meta := metav1.ObjectMeta{Name: k.Name, Namespace: k.Namespace}
	switch k.Kind {
	case rbacindex.KindRole:
		return &rbacv1.Role{ObjectMeta: meta, Rules: g.rules(4)}
	case rbacindex.KindClusterRole:
		r := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: g.rules(4)}
		if g.one(6) {
			r.AggregationRule = &rbacv1.AggregationRule{}
			if g.one(2) {
				r.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}
			}
		}
		if g.one(12) {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
				rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
		}
		return r
	case rbacindex.KindRoleBinding:
		return &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: g.subjects(), RoleRef: g.roleRef()}
	default:
	}
	return &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: g.subjects(), RoleRef: g.roleRef()}
}

func (g generator) key() rbacindex.Key {
	switch g.IntN(6) {
	case 0:
		return rbacindex.Key{Kind: rbacindex.KindRole, Namespace: g.pick(namespaces), Name: g.pick(roleNames)}
	case 1, 2:
		return rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: g.pick(roleNames)}
	case 3:
		return rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: g.pick(bindingNames)}
	}
	return rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: g.pick(namespaces), Name: g.pick(bindingNames)}
}

// bootstrap returns the policy an apiserver makes in a new cluster.
func bootstrap() []rbacindex.Change {
	var out []rbacindex.Change
	role := func(list []rbacv1.ClusterRole) {
		for i := range list {
			out = append(out, rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: list[i].Name}, Object: &list[i]})
		}
	}
	binding := func(list []rbacv1.ClusterRoleBinding) {
		for i := range list {
			out = append(out, rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: list[i].Name},
				Object: &list[i]})
		}
	}
	role(bootstrappolicy.ClusterRoles())
	role(bootstrappolicy.ControllerRoles())
	binding(bootstrappolicy.ClusterRoleBindings())
	binding(bootstrappolicy.ControllerRoleBindings())
	for _, ns := range slices.Sorted(maps.Keys(bootstrappolicy.NamespaceRoles())) {
		list := bootstrappolicy.NamespaceRoles()[ns]
		for i := range list {
			out = append(out, rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindRole, Namespace: ns, Name: list[i].Name},
				Object: &list[i]})
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(bootstrappolicy.NamespaceRoleBindings())) {
		list := bootstrappolicy.NamespaceRoleBindings()[ns]
		for i := range list {
			out = append(out, rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: ns, Name: list[i].Name},
				Object: &list[i]})
		}
	}
	return out
}

// policy makes the writes of a new policy. One in eight is crowded: so many roles bound to
// the same few subjects that the index compiles a table for the subject; one in two hundred
// is large, and one in sixty is that of a new cluster.
func (g generator) policy() []rbacindex.Change {
	if g.one(60) {
		return bootstrap()
	}
	var out []rbacindex.Change
	put := func(k rbacindex.Key, object any) { out = append(out, rbacindex.Change{Key: k, Object: object}) }
	if g.one(8) {
		for i := range 6 + g.IntN(20) {
			role, binding := fmt.Sprint("crowd-", i), fmt.Sprint("crowd-", g.IntN(1000))
			k := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: role}
			put(k, g.object(k))
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
			subjects := []rbacv1.Subject{{Kind: "User", Name: g.pick(users[:4])}, {Kind: "Group", Name: "ops"}}
			if g.one(3) {
				k = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: g.pick(namespaces), Name: binding}
				put(k, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Subjects: subjects,
					RoleRef: ref})
			} else {
				k = rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: binding}
				put(k, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: k.Name}, Subjects: subjects, RoleRef: ref})
			}
		}
	}
	n := 4 + g.IntN(26)
	large := g.one(200)
	if large {
		n = 400
	}
	for i := range n {
		k := g.key()
		if large && g.one(2) {
			k.Name += fmt.Sprint(i % 90)
		}
		put(k, g.object(k))
	}
	return out
}

// writes makes a few writes to a policy: new content, deletions, copies under other names,
// and the same object once more.
func (g generator) writes(p *Policy) []rbacindex.Change {
	out := make([]rbacindex.Change, 0, 3)
	for range 1 + g.IntN(3) {
		k := g.key()
		if len(p.keys) > 0 && g.one(2) {
			k = p.keys[g.IntN(len(p.keys))]
		}
		switch g.IntN(6) {
		case 0, 1:
			out = append(out, rbacindex.Change{Key: k})
		case 2:
			if ref, _, subjects, ok := bindingOf(p.objects[k]); ok {
				k.Name = g.pick(bindingNames)
				meta := metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}
				if k.Kind == rbacindex.KindRoleBinding {
					out = append(out, rbacindex.Change{Key: k, Object: &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
						RoleRef: ref}})
				} else {
					out = append(out, rbacindex.Change{Key: k, Object: &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
						RoleRef: ref}})
				}
				continue
			}
			fallthrough
		default:
			out = append(out, rbacindex.Change{Key: k, Object: g.object(k)})
		}
	}
	return out
}
