package rbacindex_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// generator makes small, dense policies and requests from few names, so that nearly every
// feature of RBAC meets every other. All randomness comes from its seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0x52425451))}
}

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// some returns up to n picks, sometimes none, sometimes the same twice.
func some(g generator, n int, from ...string) []string {
	var out []string
	for range g.IntN(n + 1) {
		out = append(out, pick(g, from...))
	}
	return out
}

var (
	genVerbs = []string{"get", "get", "list", "watch", "create", "delete", "patch", "use", "GET", "", "*", "ge", "post", "bind",
		"impersonate"}
	genGroups    = []string{"", "", "apps", "rbac.authorization.k8s.io", "*", "App", "日本"}
	genResources = []string{"pods", "pods", "pods/log", "pods/exec", "nodes", "*", "*/log", "*/*", "*/", "", "/", "/log", "pods/",
		"pods/log/x", "*/log/x", "secrets", "ünï/ço"}
	genSubs       = []string{"", "", "", "log", "exec", "*", "log/x", "/", "ço"}
	genNames      = []string{"", "a", "b", "c", "*", "ä", "a/b", "x y"}
	genNamespaces = []string{"default", "kube-system", "n", "ns:x", "é"}
	genPaths      = []string{"", "/", "/healthz", "/healthz/", "/healthz/ready", "/api", "/api/v1", "*", "/*", "/healthz*", "/api/é/x",
		"healthz"}
	genURLs = []string{"", "/", "/healthz", "/healthz/*", "/healthz*", "*", "/*", "**", "/api", "/api/**", "/api/*/x", "/api/é*",
		"*/ready"}
	genUsers = []string{"alice", "bob", "", "system:anonymous", "system:serviceaccount:default:sa", "system:serviceaccount:n:sa",
		"system:serviceaccount:ns:x:sa",
		"system:serviceaccount::sa", "system:serviceaccount:ns:x", "äöü", "a\"b\\c", "a\nb", "\xff\xfe", "ops"}
	genSubjectGroups = []string{"ops", "devs", "", "system:authenticated", "alice", "gr\tp", "グループ"}
	genRoles         = []string{"r1", "r2", "r3", "r4", "r\"q", "ж", ""}
	genBindings      = []string{"b1", "b2", "b3", "b4", "b5", "b6", "b\\7", "b日"}
)

func (g generator) rule() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: some(g, 3, genVerbs...)}
	if g.IntN(5) > 0 {
		r.APIGroups = some(g, 3, genGroups...)
		r.Resources = some(g, 4, genResources...)
		if g.IntN(3) == 0 {
			r.ResourceNames = some(g, 3, genNames...)
		}
	}
	if g.IntN(3) == 0 {
		r.NonResourceURLs = some(g, 4, genURLs...)
	}
	if g.IntN(12) == 0 { // more groups and resources than are entered pair by pair
		r.APIGroups, r.Resources = append(r.APIGroups, some(g, 9, genGroups...)...), append(r.Resources, some(g, 9, genResources...)...)
	}
	if g.IntN(60) == 0 { // a rule too wide to expand
		for i := range 70 {
			r.Resources = append(r.Resources, fmt.Sprint("r", i))
			r.APIGroups = append(r.APIGroups, fmt.Sprint("g", i))
		}
	}
	if g.IntN(60) == 0 { // more names than are entered one by one
		for i := range 1100 {
			r.ResourceNames = append(r.ResourceNames, fmt.Sprint("name-", i))
		}
	}
	if g.IntN(60) == 0 { // more prefixes meeting one path than a query holds lists
		for i := range 40 {
			r.NonResourceURLs = append(r.NonResourceURLs, "/healthz/ready/and/a/very/long/way/to/go"[:i]+"*")
		}
	}
	return r
}

func (g generator) rules() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for range g.IntN(5) {
		out = append(out, g.rule())
	}
	return out
}

func (g generator) subjects() []rbacv1.Subject {
	var out []rbacv1.Subject
	for range g.IntN(5) {
		s := rbacv1.Subject{Kind: pick(g, "User", "User", "Group", "Group", "ServiceAccount", "ServiceAccount", "user", "Robot", ""),
			APIGroup: pick(g, "", "rbac.authorization.k8s.io", "x")}
		switch s.Kind {
		case "Group":
			s.Name = pick(g, genSubjectGroups...)
		case "ServiceAccount":
			s.Name = pick(g, "sa", "sa", "", "x:sa", "x")
			s.Namespace = pick(g, "", "", "default", "n", "ns", "ns:x")
		default:
			s.Name = pick(g, genUsers...)
		}
		out = append(out, s)
	}
	return out
}

func (g generator) roleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{
		APIGroup: "rbac.authorization.k8s.io",
		Kind:     pick(g, "ClusterRole", "ClusterRole", "ClusterRole", "Role", "Role", "Foo", ""),
		Name:     pick(g, genRoles...),
	}
}

// object makes an object of a key's kind with random content.
func (g generator) object(k rbacindex.Key) any {
	meta := metav1.ObjectMeta{Name: k.Name, Namespace: k.Namespace}
	switch k.Kind {
	case rbacindex.KindRole:
		return &rbacv1.Role{ObjectMeta: meta, Rules: g.rules()}
	case rbacindex.KindClusterRole:
		return &rbacv1.ClusterRole{ObjectMeta: meta, Rules: g.rules()}
	case rbacindex.KindRoleBinding:
		return &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: g.subjects(), RoleRef: g.roleRef()}
	}
	return &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: g.subjects(), RoleRef: g.roleRef()}
}

func (g generator) key() rbacindex.Key {
	switch g.IntN(6) {
	case 0:
		return rbacindex.Key{Kind: rbacindex.KindRole, Namespace: pick(g, genNamespaces...), Name: pick(g, genRoles...)}
	case 1, 2:
		return rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: pick(g, genRoles...)}
	case 3:
		return rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: pick(g, genBindings...)}
	}
	return rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: pick(g, genNamespaces...), Name: pick(g, genBindings...)}
}

// policy makes a set of objects with distinct keys. One in eight is crowded: so many roles
// bound to the same few subjects that the index compiles a table for the subject.
func (g generator) policy() []any {
	seen := map[rbacindex.Key]bool{}
	var out []any
	if g.IntN(8) == 0 {
		for i := range 6 + g.IntN(30) {
			role, b := fmt.Sprint("crowd-", i), fmt.Sprint("crowd-", g.IntN(1000))
			k := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: role}
			ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: role}
			subjects := []rbacv1.Subject{{Kind: "User", Name: pick(g, "alice", "bob")}, {Kind: "Group", Name: "ops"}}
			out = append(out, g.object(k))
			k = rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: b}
			if g.IntN(3) == 0 {
				k = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: pick(g, genNamespaces...), Name: b}
			}
			if seen[k] {
				continue
			}
			seen[k] = true
			meta := metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}
			if k.Namespace == "" {
				out = append(out, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
			} else {
				out = append(out, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
			}
		}
	}
	for range g.IntN(60) {
		if k := g.key(); !seen[k] {
			seen[k] = true
			out = append(out, g.object(k))
		}
	}
	return out
}

func (g generator) request() *rbacindex.Attributes {
	a := &rbacindex.Attributes{User: pick(g, genUsers...), Groups: some(g, 4, genSubjectGroups...), Verb: pick(g, genVerbs...)}
	if g.IntN(4) == 0 {
		a.Path = pick(g, genPaths...)
		if g.IntN(8) == 0 {
			a.Path = "/healthz/ready/and/a/very/long/way/to/go"
		}
		if g.IntN(10) == 0 {
			a.Namespace = pick(g, genNamespaces...)
		}
		return a
	}
	a.ResourceRequest = true
	a.APIGroup = pick(g, genGroups...)
	a.Resource = pick(g, genResources...)
	a.Subresource = pick(g, genSubs...)
	a.Name = pick(g, genNames...)
	if g.IntN(3) > 0 {
		a.Namespace = pick(g, genNamespaces...)
	}
	return a
}

// aimed makes a request out of a rule and a subject that the policy has, then changes at most
// one thing about it: most such requests are allowed, or nearly.
func (g generator) aimed(objects []any) *rbacindex.Attributes {
	a := g.request()
	tw := newTwin(objects...)
	var rules []rbacv1.PolicyRule
	var subjects []rbacv1.Subject
	ns := ""
	for _, i := range g.Perm(len(objects)) {
		var ref rbacv1.RoleRef
		switch o := objects[i].(type) {
		case *rbacv1.RoleBinding:
			subjects, ref, ns = o.Subjects, o.RoleRef, o.Namespace
		case *rbacv1.ClusterRoleBinding:
			subjects, ref, ns = o.Subjects, o.RoleRef, ""
		}
		if rules, _ = tw.rules(ref, ns); len(rules) > 0 && len(subjects) > 0 {
			break
		}
	}
	if len(rules) == 0 || len(subjects) == 0 {
		return a
	}
	if ns != "" {
		a.Namespace = ns
	}
	switch s := pick(g, subjects...); s.Kind {
	case "Group":
		a.Groups = append(a.Groups, s.Name)
	case "ServiceAccount":
		sns := s.Namespace
		if sns == "" {
			sns = a.Namespace
		}
		a.User = "system:serviceaccount:" + sns + ":" + s.Name
	default:
		a.User = s.Name
	}
	r := pick(g, rules...)
	set := func(dst *string, from []string) {
		if len(from) > 0 && g.IntN(8) > 0 {
			if v := pick(g, from...); v != "*" || g.IntN(4) == 0 {
				*dst = v
			}
		}
	}
	set(&a.Verb, r.Verbs)
	if a.ResourceRequest = len(r.Resources) > 0 && (len(r.NonResourceURLs) == 0 || g.IntN(2) == 0); !a.ResourceRequest {
		set(&a.Path, r.NonResourceURLs)
		if g.IntN(2) == 0 {
			a.Path = strings.TrimRight(a.Path, "*") + pick(g, "", "x", "/x")
		}
		return a
	}
	set(&a.APIGroup, r.APIGroups)
	set(&a.Name, r.ResourceNames)
	var res string
	set(&res, r.Resources)
	if res != "" {
		a.Resource = res
		if head, tail, ok := strings.Cut(res, "/"); ok && g.IntN(4) > 0 {
			a.Resource, a.Subresource = head, tail
			if head == "*" {
				a.Resource = pick(g, "pods", "*", "")
			}
		} else if g.IntN(8) > 0 {
			a.Subresource = ""
		}
	}
	return a
}
