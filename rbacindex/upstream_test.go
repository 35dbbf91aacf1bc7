package rbacindex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// The tables here hold the policies, questions and answers by which Kubernetes 1.36 tests its
// own authorizer, rule matcher, rule resolver, subject matcher, subject locator and check
// against escalation. Those of its comparison of rules are in TestCoversConformance.

// everything returns a rule about every resource and every path.
func everything(resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: list("*"), APIGroups: list("*"), Resources: resources, NonResourceURLs: list("*")}
}

// parseRequest reads "user groups verb resource[/subresource] namespace" or "user groups verb
// path", lists with commas, "-" for nothing.
func parseRequest(line string) rbacindex.Attributes {
	f := strings.Fields(line)
	for i := range f {
		if f[i] == "-" {
			f[i] = ""
		}
	}
	a := rbacindex.Attributes{User: f[0], Verb: f[2]}
	if f[1] != "" {
		a.Groups = strings.Split(f[1], ",")
	}
	if strings.HasPrefix(f[3], "/") {
		a.Path = f[3]
		return a
	}
	a.ResourceRequest, a.Namespace = true, f[4]
	a.Resource, a.Subresource, _ = strings.Cut(f[3], "/")
	return a
}

func TestUpstreamAuthorizer(t *testing.T) {
	admins := []rbacv1.Subject{user("admin"), group("admins")}
	path := func(verb, url string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: list(verb), APIGroups: list(""), Resources: list(""), NonResourceURLs: list(url)}
	}
	for _, c := range []struct {
		name           string
		objects        []any
		allowed, other []string
	}{
		{
			name:    "everything in one namespace",
			objects: []any{clusterRole("admin", everything("*")), namespaceBinding("ns1", "b", "ClusterRole", "admin", admins...)},
			allowed: list("admin - get Pods ns1", "admin - watch Pods ns1", "admin group1 watch Foobar ns1", "joe admins watch Foobar ns1",
				"joe group1,admins watch Foobar ns1"),
			other: list("admin - GET Pods ns2", "admin - GET Nodes -", "admin admins GET Pods ns2", "admin admins GET Nodes -"),
		},
		{
			name: "paths",
			objects: []any{
				clusterRole("getter", path("get", "/apis")), clusterRole("any", path("*", "/apis")),
				clusterRole("prefix", path("get", "/apis/*")),
				clusterBinding("getter", "ClusterRole", "getter", user("foo"), group("bar")),
				clusterBinding("any", "ClusterRole", "any", user("admin"), group("admin")),
				clusterBinding("prefix", "ClusterRole", "prefix", user("prefixed"), group("prefixed")),
			},
			allowed: list("foo - get /apis", "- bar get /apis", "admin - get /apis", "- admin get /apis", "admin - watch /apis",
				"- admin watch /apis",
				"prefixed - get /apis/v1", "- prefixed get /apis/v1", "prefixed - get /apis/v1/foobar", "- prefixed get /apis/v1/foorbar"),
			other: list("foo - watch /apis", "- bar watch /apis", "foo - get /api/v1", "- bar get /api/v1", "admin - get /api/v1",
				"- admin get /api/v1", "prefixed - get /api/v1", "- prefixed get /api/v1"),
		},
		{
			name:    "a resource is not its subresources",
			objects: []any{clusterRole("admin", everything("pods")), namespaceBinding("ns1", "b", "ClusterRole", "admin", admins...)},
			allowed: list("admin - get pods ns1"),
			other:   list("admin - get pods/status ns1"),
		},
		{
			name: "subresources",
			objects: []any{clusterRole("admin", everything("pods/status"), everything("*/scale")), namespaceBinding("ns1", "b",
				"ClusterRole", "admin", admins...)},
			allowed: list("admin - get pods/status ns1", "admin - get pods/scale ns1", "admin - get deployments/scale ns1",
				"admin - get anything/scale ns1"),
			other: list("admin - get pods ns1"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := rbacindex.New(c.objects...)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range append(slices.Clone(c.allowed), c.other...) {
				a := parseRequest(line)
				if got, want := s.Authorize(&a, nil).Allowed, i < len(c.allowed); got != want {
					t.Errorf("%s: allowed %t, want %t", line, got, want)
				}
			}
		})
	}
}

// TestUpstreamRuleMatches asks one rule all combinations of what it names and of what it does
// not.
func TestUpstreamRuleMatches(t *testing.T) {
	for _, c := range []struct {
		rule    string
		allowed []string // those of the combinations below, all others are not
	}{
		{"* group1 resource1", list("verb1 group1 resource1", "verb2 group1 resource1")},
		{"verb1 * resource1", list("verb1 group1 resource1", "verb1 group2 resource1")},
		{"verb1 group1 *", list("verb1 group1 resource1", "verb1 group1 resource2",
			"verb1 group1 resource1/subresource1", "verb1 group1 resource1/subresource2", "verb1 group1 resource2/subresource1",
			"verb1 group1 resource2/subresource2")},
		{"verb1,verb2 group1,group2 resource1,resource2", list("verb1 group1 resource1", "verb1 group2 resource1", "verb1 group1 resource2",
			"verb1 group2 resource2",
			"verb2 group1 resource1", "verb2 group2 resource1", "verb2 group1 resource2", "verb2 group2 resource2")},
		{"* * resource1/subresource1", list("verb1 group1 resource1/subresource1", "verb1 group2 resource1/subresource1",
			"verb2 group1 resource1/subresource1", "verb2 group2 resource1/subresource1")},
		{"verb1 url:*", list("verb1 /foo", "verb1 /foo/bar", "verb1 /foo/baz", "verb1 /foo/bar/one", "verb1 /foo/baz/one", "verb1 /notfoo",
			"verb1 /notfoo/bar")},
		{"verb1 /foo/*", list("verb1 /foo/bar", "verb1 /foo/baz", "verb1 /foo/bar/one", "verb1 /foo/baz/one")},
		{"* /foo,/foo/bar/one", list("verb1 /foo", "verb1 /foo/bar/one", "verb2 /foo", "verb2 /foo/bar/one")},
	} {
		r := parseRules(c.rule)[0]
		s, err := rbacindex.New(clusterRole("r", r), clusterBinding("b", "ClusterRole", "r", user("u")))
		if err != nil {
			t.Fatal(err)
		}
		ask := func(line string, a rbacindex.Attributes) {
			t.Helper()
			want := slices.Contains(c.allowed, line)
			a.User = "u"
			if got := rbacindex.RuleAllows(&a, &r); got != want {
				t.Errorf("%s by %s: %t", line, c.rule, got)
			}
			if got := s.Authorize(&a, nil).Allowed; got != want {
				t.Errorf("%s by the role of %s: %t", line, c.rule, got)
			}
		}
		for _, verb := range list("verb1", "verb2") {
			for _, g := range list("group1", "group2") {
				for _, res := range list("resource1", "resource2") {
					for _, sub := range list("", "subresource1", "subresource2") {
						ask(strings.TrimSuffix(fmt.Sprintf("%s %s %s/%s", verb, g, res, sub), "/"),
							rbacindex.Attributes{Verb: verb, APIGroup: g, Resource: res, Subresource: sub, ResourceRequest: true})
					}
				}
			}
			for _, path := range list("/foo", "/foo/bar", "/foo/baz", "/foo/bar/one", "/foo/baz/one", "/notfoo", "/notfoo/bar") {
				ask(verb+" "+path, rbacindex.Attributes{Verb: verb, Path: path})
			}
		}
	}
}

func TestUpstreamRuleResolver(t *testing.T) {
	pods, services := rule(list("GET", "WATCH"), list("v1"), list("pods")), rule(list("GET", "WATCH"), list("v1"), list("services"))
	nodes, all := rule(list("PUT", "CREATE", "UPDATE"), list("v1"), list("nodes")), rule(list("*"), list("*"), list("*"))
	s, err := rbacindex.New(
		namespaceRole("namespace1", "readthings", pods, services), clusterRole("cluster-admin", all), clusterRole("write-nodes", nodes),
		namespaceBinding("namespace1", "b", "Role", "readthings", user("foobar"), group("group1")),
		clusterBinding("b", "ClusterRole", "cluster-admin", user("admin"), group("admin")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, user string
		groups     []string
		namespace  string
		want       []rbacv1.PolicyRule
	}{
		{"in the namespace", "foobar", nil, "namespace1", []rbacv1.PolicyRule{pods, services}},
		{"in another", "foobar", nil, "namespace2", nil},
		{"in none, by group", "foobar", list("admin"), "", []rbacv1.PolicyRule{all}},
		{"nobody", "", nil, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []rbacv1.PolicyRule
			res := s.RulesFor(c.user, c.groups, c.namespace, func(_ rbacindex.Grant, r *rbacv1.PolicyRule) bool {
				got = append(got, *r)
				return true
			})
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) || len(res.Errors()) > 0 {
				t.Errorf("rules %v, errors %q, want %v", got, res.Errors(), c.want)
			}
		})
	}
}

func TestUpstreamSubjects(t *testing.T) {
	everybody := []rbacv1.Subject{group("system:authenticated"), group("system:unauthenticated")}
	for _, c := range []struct {
		name      string
		subjects  []rbacv1.Subject
		user      string
		groups    []string
		namespace string
		index     int // -1 for none
	}{
		{"one, the user", []rbacv1.Subject{user("foobar")}, "foobar", nil, "", 0},
		{"several, the user", []rbacv1.Subject{user("barfoo"), user("foobar")}, "foobar", nil, "", 1},
		{"several, nobody", []rbacv1.Subject{user("barfoo"), user("foobar")}, "zimzam", nil, "", -1},
		{"several, the group", []rbacv1.Subject{user("barfoo"), group("foobar")}, "zimzam", list("foobar"), "", 1},
		{"several, the group, in a namespace", []rbacv1.Subject{user("barfoo"), group("foobar")}, "zimzam", list("foobar"),
			"namespace1", 1},
		{"a service account of another namespace", []rbacv1.Subject{user("barfoo"), group("foobar"), account("kube-system", "default")},
			"system:serviceaccount:kube-system:default", nil, "default", 2},
		{"a star is a name", []rbacv1.Subject{user("*")}, "foobar", nil, "default", -1},
		{"everybody, logged in", everybody, "foobar", list("system:authenticated"), "default", 0},
		{"everybody, not logged in", everybody, "system:anonymous", list("system:unauthenticated"), "default", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := clusterBinding("b", "ClusterRole", "r", c.subjects...)
			if c.namespace != "" {
				b = namespaceBinding(c.namespace, "b", "ClusterRole", "r", c.subjects...)
			}
			s, err := rbacindex.New(clusterRole("r", everything("*")), b)
			if err != nil {
				t.Fatal(err)
			}
			index := -1
			for _, g := range s.Authorize(&rbacindex.Attributes{User: c.user, Groups: c.groups, Namespace: c.namespace, Verb: "get",
				Resource: "pods", ResourceRequest: true}, nil).Grants {
				index = g.SubjectIndex()
			}
			if index != c.index {
				t.Errorf("subject %d, want %d", index, c.index)
			}
		})
	}
}

func TestUpstreamSubjectLocator(t *testing.T) {
	supers, admins := []rbacv1.Subject{user("super-admin"), group("super-admins")}, []rbacv1.Subject{user("admin"), group("admins")}
	star := []any{clusterRole("admin", everything("*")), clusterBinding("admin", "ClusterRole", "admin", supers...)}
	const super = "group super-admins, group system:masters, user super-admin"
	const both = "group admins, group super-admins, group system:masters, user admin, user super-admin"
	for _, c := range []struct {
		name      string
		objects   []any
		verb      string
		namespace string
		want      string
	}{
		{"in the namespace", append(slices.Clone(star), namespaceBinding("ns1", "b", "ClusterRole", "admin", admins...)), "get",
			"ns1", both},
		{"a star is not a namespace", append(slices.Clone(star), namespaceBinding("ns1", "b", "ClusterRole", "admin", admins...)), "*", "*",
			super},
		{"in no namespace", append(slices.Clone(star), namespaceBinding("ns1", "b", "ClusterRole", "admin", admins...)), "*", "", super},
		{"by a Role", append(slices.Clone(star), namespaceRole("ns1", "admin", rule(list("get"), list("*"), list("Pods"))),
			namespaceBinding("ns1", "b", "Role", "admin", admins...)), "get", "ns1", both},
		{"by a Role, another verb", append(slices.Clone(star), namespaceRole("ns1", "admin", rule(list("get"), list("*"), list("Pods"))),
			namespaceBinding("ns1", "b", "Role", "admin", admins...)), "create", "ns1", super},
		{"by a Role, another namespace", append(slices.Clone(star), namespaceRole("ns1", "admin", rule(list("get"), list("*"),
			list("Pods"))), namespaceBinding("ns1", "b", "Role", "admin", admins...)), "get", "ns2", super},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := rbacindex.New(c.objects...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range s.WhoCan(&rbacindex.Attributes{Verb: c.verb, Resource: "Pods", Namespace: c.namespace, ResourceRequest: true},
				false) {
				got = append(got, strings.ToLower(x.Subject().Kind)+" "+x.Name)
			}
			if slices.Sort(got); strings.Join(got, ", ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

// TestUpstreamCompaction: rules about one resource of one group, with one name or none, are
// put together before a refusal lists them; all others are listed piece by piece.
func TestUpstreamCompaction(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []string
		lines []string
	}{
		{"nothing", nil, nil},
		{
			"verbs of one resource and name",
			list("get - builds", "list - builds", "update,patch - builds", "create extensions daemonsets", "delete extensions daemonsets",
				"get extensions daemonsets foo", "list extensions daemonsets foo",
				"educate - dolphins", "create - pods"),
			list(`{APIGroups:[""], Resources:["builds"], Verbs:["get" "list" "update" "patch"]}`,
				`{APIGroups:[""], Resources:["dolphins"], Verbs:["educate"]}`, `{APIGroups:[""], Resources:["pods"], Verbs:["create"]}`,
				`{APIGroups:["extensions"], Resources:["daemonsets"], ResourceNames:["foo"], Verbs:["get" "list"]}`,
				`{APIGroups:["extensions"], Resources:["daemonsets"], Verbs:["create" "delete"]}`),
		},
		{"groups", list("get,list -,builds.openshift.io builds"), list(`{APIGroups:[""], Resources:["builds"], Verbs:["get" "list"]}`,
			`{APIGroups:["builds.openshift.io"], Resources:["builds"], Verbs:["get" "list"]}`)},
		{"resources", list("get - builds,images", "list - builds,images"),
			list(`{APIGroups:[""], Resources:["builds"], Verbs:["get" "list"]}`,
				`{APIGroups:[""], Resources:["images"], Verbs:["get" "list"]}`)},
		{"names", list("get - builds mybuild", "list - builds mybuild2"),
			list(`{APIGroups:[""], Resources:["builds"], ResourceNames:["mybuild"], Verbs:["get"]}`,
				`{APIGroups:[""], Resources:["builds"], ResourceNames:["mybuild2"], Verbs:["list"]}`)},
		{"paths", list("get - builds /", "get - builds /foo"), list(`{APIGroups:[""], Resources:["builds"], Verbs:["get" "get"]}`,
			`{NonResourceURLs:["/"], Verbs:["get"]}`, `{NonResourceURLs:["/foo"], Verbs:["get"]}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := rbacindex.Empty().MayWriteRole("u", nil, clusterRole("new", parseRules(c.rules...)...), "")
			if err != nil {
				t.Fatal(err)
			}
			_, lines, _ := strings.Cut(e.Reason, "\n")
			if want := strings.Join(c.lines, "\n"); lines != want || e.Allowed != (len(c.lines) == 0) {
				t.Errorf("got\n%s\nwant\n%s", lines, want)
			}
		})
	}
}

// TestUpstreamEscalation has one who is a superuser, one who has nothing, one who has the
// verb, and one who has every rule; each creates a role and replaces it.
func TestUpstreamEscalation(t *testing.T) {
	s, err := rbacindex.New(
		clusterRole("alice-role", rule(list("*"), list("*"), list("*"))), clusterBinding("alice", "ClusterRole", "alice-role",
			user("alice")),
		clusterRole("steve-role", rule(list("escalate", "bind"), list(rbacv1.GroupName), list("roles", "clusterroles"))),
		clusterBinding("steve", "ClusterRole", "steve-role", user("steve")),
		clusterRole("myrole", parseRules("get - pods")...), namespaceRole("mynamespace", "myrole", parseRules("get - pods")...),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		groups    []string
		allowed   bool
		superuser bool
	}{{"superuser", list("system:masters"), true, true}, {"bob", nil, false, false}, {"steve", nil, true, false},
		{"alice", nil, true, false}} {
		for _, object := range []any{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "myrole"}, Rules: parseRules("get - pods")},
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "mynamespace", Name: "myrole"}, Rules: parseRules("get - pods")},
		} {
			for _, url := range list("", "myrole") {
				e, err := s.MayWriteRole(c.name, c.groups, object, url)
				if err != nil || e.Allowed != c.allowed || e.Superuser != c.superuser {
					t.Errorf("%s writes %T as %q: %+v, %v", c.name, object, url, e, err)
				}
			}
		}
		for _, namespace := range list("", "mynamespace") {
			if e := s.MayBind(c.name, c.groups, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
				Name: "myrole"}); e.Allowed != c.allowed || e.Superuser != c.superuser {
				t.Errorf("%s binds in %q: %+v", c.name, namespace, e)
			}
		}
	}
}
