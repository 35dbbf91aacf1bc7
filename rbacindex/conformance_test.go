package rbacindex_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

func rule(verbs, groups, resources []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}
}

func urls(verbs []string, urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: urls}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) any {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func namespaceRole(ns, name string, rules ...rbacv1.PolicyRule) any {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: rules}
}

func clusterBinding(name, kind, role string, subjects ...rbacv1.Subject) any {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role},
		Subjects: subjects}
}

func namespaceBinding(ns, name, kind, role string, subjects ...rbacv1.Subject) any {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role},
		Subjects: subjects}
}

func user(name string) rbacv1.Subject  { return rbacv1.Subject{Kind: "User", Name: name} }
func group(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }
func account(ns, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: ns, Name: name}
}

func list(s ...string) []string { return s }

// fixtures returns a small cluster in which every row of TestConformance can be read.
func fixtures() []any {
	core := list("")
	return []any{
		clusterRole("podread", rule(list("get", "list", "watch"), core, list("pods")), rule(list("get"), core, list("pods/exec"))),
		namespaceBinding("default", "a-pods", "ClusterRole", "podread", group("ops"), user("alice"), account("", "default")),
		clusterBinding("z", "ClusterRole", "nope", group("devs")),
		namespaceBinding("default", "z2", "Role", "nope2", user("alice")),
		namespaceBinding("default", "z3", "ClusterRole", "nope", user("alice")),

		clusterRole("nsread", rule(list("get"), core, list("namespaces"))),
		namespaceBinding("default", "ns", "ClusterRole", "nsread", user("nsuser")),

		clusterRole("health", urls(list("get"), "/healthz", "/api/*"), rule(list("get"), core, list("nodes"))),
		clusterBinding("health", "ClusterRole", "health", user("prober")),
		namespaceBinding("default", "health", "ClusterRole", "health", user("nsprober")),

		clusterBinding("sa-without-namespace", "ClusterRole", "podread", account("", "robot"), account("ci", "robot")),
		namespaceBinding("default", "sa-without-namespace", "ClusterRole", "podread", account("", "robot")),

		clusterRole("logs", rule(list("get"), core, list("*/log"))),
		clusterBinding("logs", "ClusterRole", "logs", user("logger")),
		clusterRole("allres", rule(list("get"), list("*"), list("*"))),
		clusterBinding("allres", "ClusterRole", "allres", user("viewer")),

		clusterRole("named", rule(list("list", "create", "get"), core, list("configmaps"), "a")),
		clusterBinding("named", "ClusterRole", "named", user("namer")),
		clusterRole("namedempty", rule(list("create"), core, list("configmaps"), "")),
		clusterBinding("namedempty", "ClusterRole", "namedempty", user("emptynamer")),

		clusterRole("anyverb", rule(list("*"), core, list("pods"))),
		clusterBinding("anyverb", "ClusterRole", "anyverb", user("anyverb")),

		clusterBinding("foo", "Foo", "x", user("foo")),
		clusterBinding("foo2", "Foo", "y", user("foo")),

		namespaceRole("default", "local", rule(list("get"), core, list("secrets"))),
		namespaceBinding("default", "local", "Role", "local", user("local")),
		namespaceBinding("other", "local", "Role", "local", user("local")),
		clusterBinding("role-from-cluster", "Role", "local", user("clusterlocal")),

		namespaceBinding("default", "robots", "ClusterRole", "podread", rbacv1.Subject{Kind: "Robot", Name: "r2"},
			rbacv1.Subject{Kind: "user", Name: "r2"}),
		clusterBinding("odd-apigroup", "ClusterRole", "podread", rbacv1.Subject{Kind: "User", APIGroup: "no.such.group", Name: "oddgroup"}),
		clusterRole("mixed", rbacv1.PolicyRule{Verbs: list("get"), APIGroups: core, Resources: list("pods"),
			NonResourceURLs: list("/metrics")}),
		clusterBinding("mixed", "ClusterRole", "mixed", user("mixed")),
		clusterRole("aggregated"), // an aggregation rule alone grants nothing
		clusterBinding("aggregated", "ClusterRole", "aggregated", user("aggregated")),
		clusterBinding(`quo"te`, "ClusterRole", "podread", user("tab\tü")),
	}
}

// TestConformance is a table of requests and what a kube-apiserver's RBAC authorizer answers
// to them: decision, the reason it may print, the errors.
func TestConformance(t *testing.T) {
	s, err := rbacindex.New(fixtures()...)
	if err != nil {
		t.Fatal(err)
	}
	alice := list("devs", "ops")
	res := func(user string, groups []string, verb, ns, resource, sub, name string) rbacindex.Attributes {
		return rbacindex.Attributes{User: user, Groups: groups, Verb: verb, Namespace: ns, Resource: resource, Subresource: sub, Name: name,
			ResourceRequest: true}
	}
	path := func(user, verb, path string) rbacindex.Attributes {
		return rbacindex.Attributes{User: user, Verb: verb, Path: path}
	}
	const (
		nope  = `clusterrole.rbac.authorization.k8s.io "nope" not found`
		nope2 = `role.rbac.authorization.k8s.io "nope2" not found`
	)
	allowPods := `RBAC: allowed by RoleBinding "a-pods/default" of ClusterRole "podread" to `
	for _, c := range []struct {
		name   string
		a      rbacindex.Attributes
		reason string // of the decision; allowed if it says so
		errors []string
	}{
		{"first matching subject is named", res("alice", alice, "list", "default", "pods", "", "x"), allowPods + `Group "ops"`,
			list(nope, nope2)},
		{"user subject when the group is absent", res("alice", nil, "get", "default", "pods", "", "x"), allowPods + `User "alice"`,
			list(nope, nope2)},
		{"service account takes the binding's namespace", res("system:serviceaccount:default:default", nil, "get", "default", "pods", "",
			""), allowPods + `ServiceAccount "default/default"`, nil},
		{"subresource of another name", res("alice", alice, "get", "default", "pods", "b", "a"), "RBAC: [" + nope + ", " + nope2 + "]",
			list(nope, nope2)},
		{"exec by its own rule", res("alice", alice, "get", "default", "pods", "exec", "a"), allowPods + `Group "ops"`, list(nope, nope2)},
		{"dangling refs in a namespace", res("alice", alice, "get", "default", "secrets", "", "s"), "RBAC: [" + nope + ", " + nope2 + "]",
			list(nope, nope2)},
		{"dangling ref at cluster scope has no brackets", res("alice", alice, "get", "", "nodes", "", "n"), "RBAC: " + nope, list(nope)},
		{"other namespace", res("alice", list("ops"), "get", "other", "pods", "", "x"), "", nil},

		{"namespace read by a RoleBinding in it", res("nsuser", nil, "get", "default", "namespaces", "", "default"),
			`RBAC: allowed by RoleBinding "ns/default" of ClusterRole "nsread" to User "nsuser"`, nil},
		{"namespace read without namespace", res("nsuser", nil, "get", "", "namespaces", "", "default"), "", nil},

		{"exact path", path("prober", "get", "/healthz"), `RBAC: allowed by ClusterRoleBinding "health" of ClusterRole "health" to ` +
			`User "prober"`, nil},
		{"path is not a prefix", path("prober", "get", "/healthz/"), "", nil},
		{"HEAD needs head", path("prober", "head", "/healthz"), "", nil},
		{"prefix", path("prober", "get", "/api/v1/x"), `RBAC: allowed by ClusterRoleBinding "health" of ClusterRole "health" to ` +
			`User "prober"`, nil},
		{"prefix with nothing behind", path("prober", "get", "/api/"), `RBAC: allowed by ClusterRoleBinding "health" of ClusterRole ` +
			`"health" to User "prober"`, nil},
		{"shorter than the prefix", path("prober", "get", "/api"), "", nil},
		{"RoleBinding does not grant paths", path("nsprober", "get", "/healthz"), "", nil},

		{"service account without namespace in a ClusterRoleBinding", res("system:serviceaccount::robot", nil, "get", "", "pods", "", ""),
			"", nil},
		{"service account of the namespace elsewhere", res("system:serviceaccount:default:robot", nil, "get", "other", "pods", "", ""),
			"", nil},
		{"second subject of the ClusterRoleBinding", res("system:serviceaccount:ci:robot", nil, "get", "other", "pods", "", ""),
			`RBAC: allowed by ClusterRoleBinding "sa-without-namespace" of ClusterRole "podread" to ServiceAccount "robot/ci"`, nil},
		{"service account by name alone", res("system:serviceaccount:default:robot", list("system:authenticated"), "get", "default", "pods",
			"", ""), `RBAC: allowed by RoleBinding "sa-without-namespace/default" of ClusterRole "podread" to ServiceAccount ` +
			`"robot/default"`, nil},

		{"pods does not cover pods/log", res("oddgroup", nil, "get", "", "pods", "log", "p"), "", nil},
		{"*/log covers pods/log", res("logger", nil, "get", "", "pods", "log", "p"), `RBAC: allowed by ClusterRoleBinding "logs" of ` +
			`ClusterRole "logs" to User "logger"`, nil},
		{"*/log does not cover pods", res("logger", nil, "get", "", "pods", "", "p"), "", nil},
		{"* covers pods/log", res("viewer", nil, "get", "", "pods", "log", "p"), `RBAC: allowed by ClusterRoleBinding "allres" of ` +
			`ClusterRole "allres" to User "viewer"`, nil},
		{"* covers no path", path("viewer", "get", "/healthz"), "", nil},

		{"resourceNames and create", res("namer", nil, "create", "d", "configmaps", "", ""), "", nil},
		{"resourceNames and a list of that name", res("namer", nil, "list", "d", "configmaps", "", "a"),
			`RBAC: allowed by ClusterRoleBinding "named" of ClusterRole "named" to User "namer"`, nil},
		{"resourceNames and another name", res("namer", nil, "get", "d", "configmaps", "", "b"), "", nil},
		{"resourceNames with the empty name", res("emptynamer", nil, "create", "d", "configmaps", "", ""),
			`RBAC: allowed by ClusterRoleBinding "namedempty" of ClusterRole "namedempty" to User "emptynamer"`, nil},

		{"verb * covers the empty verb", res("anyverb", nil, "", "d", "pods", "", ""), `RBAC: allowed by ClusterRoleBinding "anyverb" of ` +
			`ClusterRole "anyverb" to User "anyverb"`, nil},
		{"an empty verb needs *", res("viewer", nil, "", "d", "pods", "", ""), "", nil},
		{"API group is compared", rbacindex.Attributes{User: "anyverb", Verb: "get", APIGroup: "metrics.k8s.io", Resource: "pods",
			ResourceRequest: true}, "", nil},

		{"unsupported roleRef kind, once", res("foo", nil, "get", "", "pods", "", ""), `RBAC: unsupported role reference kind: "Foo"`,
			list(`unsupported role reference kind: "Foo"`)},
		{"Role in its namespace", res("local", nil, "get", "default", "secrets", "", "x"), `RBAC: allowed by RoleBinding "local/default" ` +
			`of Role "local" to User "local"`, nil},
		{"Role of the same name is missing elsewhere", res("local", nil, "get", "other", "secrets", "", "x"),
			`RBAC: role.rbac.authorization.k8s.io "local" not found`, list(`role.rbac.authorization.k8s.io "local" not found`)},
		{"ClusterRoleBinding to a Role", res("clusterlocal", nil, "get", "default", "secrets", "", "x"),
			`RBAC: role.rbac.authorization.k8s.io "local" not found`, list(`role.rbac.authorization.k8s.io "local" not found`)},

		{"unknown subject kinds never match", res("r2", list("r2"), "get", "default", "pods", "", ""), "", nil},
		{"the subject's apiGroup is not looked at", res("oddgroup", nil, "get", "", "pods", "", ""),
			`RBAC: allowed by ClusterRoleBinding "odd-apigroup" of ClusterRole "podread" to User "oddgroup"`, nil},
		{"mixed rule read as resource", res("mixed", nil, "get", "", "pods", "", ""), `RBAC: allowed by ClusterRoleBinding "mixed" of ` +
			`ClusterRole "mixed" to User "mixed"`, nil},
		{"mixed rule read as path", path("mixed", "get", "/metrics"), `RBAC: allowed by ClusterRoleBinding "mixed" of ClusterRole ` +
			`"mixed" to User "mixed"`, nil},
		{"aggregated role grants its stored rules only", res("aggregated", nil, "get", "", "pods", "", ""), "", nil},
		{"system:masters is another authorizer's", res("root", list("system:masters"), "get", "", "pods", "", ""), "", nil},
		{"names are quoted", res("tab\tü", nil, "get", "", "pods", "", ""), `RBAC: allowed by ClusterRoleBinding "quo\"te" of ` +
			`ClusterRole "podread" to User "tab\tü"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the first time and from memory
				got := s.Authorize(&c.a, nil)
				if got.Reason() != c.reason {
					t.Errorf("reason %q\nwant   %q", got.Reason(), c.reason)
				}
				if !slices.Equal(got.Errors(), c.errors) {
					t.Errorf("errors %q, want %q", got.Errors(), c.errors)
				}
				if bySubject := s.Subject(c.a.User, c.a.Groups).Authorize(&c.a, nil); bySubject.Reason() != c.reason {
					t.Errorf("Subject.Authorize: reason %q", bySubject.Reason())
				}
			}
			compare(t, 0, s, newTwin(fixtures()...), &c.a)
		})
	}
}

func TestEveryGrantIsReported(t *testing.T) {
	s, err := rbacindex.New(
		clusterRole("r", rule(list("list"), list(""), list("pods")), rule(list("get"), list("*"), list("*")), rule(list("get"), list(""),
			list("pods"))),
		clusterBinding("b2", "ClusterRole", "r", group("g"), user("u")),
		clusterBinding("b1", "ClusterRole", "r", user("x"), user("u"), group("g"), user("u")),
		namespaceBinding("n", "b0", "ClusterRole", "r", account("n", "sa"), user("u")),
	)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]rbacindex.Grant, 0, 8)
	res := s.Authorize(&rbacindex.Attributes{User: "u", Groups: list("g"), Verb: "get", Namespace: "n", Resource: "pods",
		ResourceRequest: true}, buf)
	type grant struct {
		binding, role rbacindex.Key
		subject       int
		kind, name    string
		rule          int
	}
	role := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "r"}
	want := []grant{
		{rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "b1"}, role, 1, "User", "u", 1},
		{rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "b2"}, role, 0, "Group", "g", 1},
		{rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: "n", Name: "b0"}, role, 1, "User", "u", 1},
	}
	var got []grant
	for _, g := range res.Grants {
		if k := g.BindingKey(); k.Kind != g.BindingKind() || k.Namespace != g.BindingNamespace() || k.Name != g.Binding() {
			t.Errorf("binding accessors disagree: %+v", k)
		}
		if k := g.RoleKey(); k.Kind != g.RoleKind() || k.Name != g.Role() {
			t.Errorf("role accessors disagree: %+v", k)
		}
		got = append(got, grant{g.BindingKey(), g.RoleKey(), g.SubjectIndex(), g.SubjectKind(), g.Subject(), g.Rule()})
	}
	if !slices.Equal(got, want) {
		t.Errorf("grants\n%+v\nwant\n%+v", got, want)
	}
	if &res.Grants[0] != &buf[:1][0] {
		t.Error("the caller's buffer was not used")
	}
}
