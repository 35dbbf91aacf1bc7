package rbacindex_test

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// escalationPolicy has alice (reads pods, in n also logs), binder and escalator (the verbs),
// root (everything by rules) and boss (a role that is missing).
func escalationPolicy(t *testing.T) *rbacindex.Snapshot {
	t.Helper()
	rbac := list(rbacv1.GroupName)
	aggregated := clusterRole("aggregated", parseRules("get - pods")...).(*rbacv1.ClusterRole)
	aggregated.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	s, err := rbacindex.New(
		clusterRole("cluster-admin", parseRules("* * *", "* url:*")...), clusterBinding("root", "ClusterRole", "cluster-admin",
			user("root")),
		clusterRole("pods", parseRules("get,list - pods")...), clusterBinding("alice", "ClusterRole", "pods", user("alice"), user("boss")),
		namespaceRole("n", "logs", parseRules("get - pods/log")...), namespaceBinding("n", "alice", "Role", "logs", user("alice")),
		clusterRole("binder", rule(list("bind"), rbac, list("clusterroles"), "cluster-admin", "gone")), clusterBinding("binder",
			"ClusterRole", "binder", user("binder")),
		namespaceBinding("n", "binder", "ClusterRole", "bindall", group("binders")), clusterRole("bindall", rule(list("bind"), rbac,
			list("roles", "clusterroles"))),
		clusterRole("escalator", rule(list("escalate"), rbac, list("clusterroles", "roles"), "mine")), clusterBinding("escalator",
			"ClusterRole", "escalator", user("escalator")),
		clusterBinding("boss", "ClusterRole", "gone", user("boss")), clusterBinding("boss2", "ClusterRole", "gone2", user("boss")),
		aggregated,
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const attempt = `user "alice" (groups=["ops" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:` + "\n"

func TestMayBind(t *testing.T) {
	s := escalationPolicy(t)
	for _, c := range []struct {
		name, user string
		groups     []string
		namespace  string
		kind, role string
		allowed    bool
		absent     bool
		by         string // the grant
		reason     string
	}{
		{name: "what it has", user: "alice", kind: "ClusterRole", role: "pods", allowed: true},
		{name: "what it has there", user: "alice", namespace: "n", kind: "Role", role: "logs", allowed: true},
		{name: "more than it has", user: "alice", groups: list("ops", "system:authenticated"), kind: "ClusterRole", role: "cluster-admin",
			reason: attempt + `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}` + "\n" + `{NonResourceURLs:["*"], Verbs:["*"]}`},
		{name: "everything by rules", user: "root", kind: "ClusterRole", role: "cluster-admin", allowed: true, by: "root"},
		{name: "a superuser", user: "x", groups: list("system:masters"), kind: "ClusterRole", role: "gone", allowed: true},
		{name: "a superuser, an unknown kind", user: "x", groups: list("system:masters"), kind: "Foo", role: "gone", allowed: true},
		{name: "the verb", user: "binder", kind: "ClusterRole", role: "cluster-admin", allowed: true, by: "binder"},
		{name: "the verb for a role that is missing", user: "binder", kind: "ClusterRole", role: "gone", allowed: true, by: "binder"},
		{name: "the verb for others", user: "binder", kind: "ClusterRole", role: "pods", reason: `{APIGroups:[""], Resources:["pods"], ` +
			`Verbs:["get" "list"]}`},
		{name: "the verb in a namespace", user: "x", groups: list("binders"), namespace: "n", kind: "ClusterRole", role: "cluster-admin",
			allowed: true, by: "binder"},
		{name: "the verb in another namespace", user: "x", groups: list("binders"), namespace: "m", kind: "ClusterRole", role: "pods",
			reason: "not currently held"},
		{name: "a missing role", user: "alice", kind: "ClusterRole", role: "absent", absent: true},
		{name: "a Role in no namespace", user: "alice", kind: "Role", role: "logs", absent: true},
		{name: "an unknown kind", user: "root", kind: "Foo", role: "logs", absent: true},
		{name: "errors on the way", user: "boss", kind: "ClusterRole", role: "binder",
			reason: `ResourceNames:["gone"], Verbs:["bind"]}; resolution errors: [[clusterrole.rbac.authorization.k8s.io "gone" not ` +
				`found, clusterrole.rbac.authorization.k8s.io "gone2" not found]]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := s.MayBind(c.user, c.groups, c.namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: c.kind, Name: c.role})
			check(t, e, c.allowed, c.by, c.reason)
			if e.RoleAbsent != c.absent || e.Superuser != (len(c.groups) > 0 && c.groups[0] == "system:masters") {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func check(t *testing.T, e rbacindex.Escalation, allowed bool, by, reason string) {
	t.Helper()
	if e.Allowed != allowed || !strings.HasSuffix(e.Reason, reason) && !strings.Contains(e.Reason, reason) ||
		(reason == "") != (e.Reason == "") {
		t.Errorf("allowed %t, want %t; reason\n%s\nwant\n%s", e.Allowed, allowed, e.Reason, reason)
	}
	if (len(e.Missing) > 0) != (reason != "") {
		t.Errorf("missing %v", e.Missing)
	}
	if got := len(e.Grants); by == "" && got != 0 || by != "" && (got != 1 || e.Grants[0].Binding() != by) {
		t.Errorf("%d grants, want one by %q", got, by)
	}
}

func TestMayWriteRole(t *testing.T) {
	s := escalationPolicy(t)
	aggregate := func(name string, rules ...string) *rbacv1.ClusterRole {
		r := clusterRole(name, parseRules(rules...)...).(*rbacv1.ClusterRole)
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
		return r
	}
	for _, c := range []struct {
		name, user, url string
		groups          []string
		object          any
		allowed         bool
		by              string
		reason          string
		aggregation     bool
	}{
		{name: "what it has", user: "alice", object: clusterRole("new", parseRules("list,get - pods")...), allowed: true},
		{name: "nothing at all", user: "alice", object: clusterRole("new"), allowed: true},
		{name: "what it has in the namespace", user: "alice", object: namespaceRole("n", "new", parseRules("get - pods,pods/log")...),
			allowed: true},
		{name: "what it has there, everywhere", user: "alice", groups: list("ops", "system:authenticated"), object: clusterRole("new",
			parseRules("get - pods,pods/log")...),
			reason: attempt + `{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}`},
		{name: "more, put together and sorted", user: "alice", groups: list("ops", "system:authenticated"),
			object: namespaceRole("m", "new", parseRules("watch,get,delete - pods", "get,list - configmaps b,a", "post,get /x",
				"delete - pods")...),
			reason: attempt + `{APIGroups:[""], Resources:["configmaps"], ResourceNames:["a"], Verbs:["get" "list"]}` + "\n" +
				`{APIGroups:[""], Resources:["configmaps"], ResourceNames:["b"], Verbs:["get" "list"]}` + "\n" +
				`{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete" "delete"]}` + "\n" +
				`{NonResourceURLs:["/x"], Verbs:["get"]}` + "\n" + `{NonResourceURLs:["/x"], Verbs:["post"]}`},
		{name: "the verb, on update", user: "escalator", url: "mine", object: clusterRole("mine", parseRules("* * *")...), allowed: true,
			by: "escalator"},
		{name: "the verb for one name, on create", user: "escalator", object: clusterRole("mine", parseRules("* * *")...),
			reason: `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`},
		{name: "the verb for another name", user: "escalator", url: "other", object: clusterRole("other", parseRules("* * *")...),
			reason: "not currently held"},
		{name: "the verb on a Role", user: "escalator", url: "mine", object: namespaceRole("n", "mine", parseRules("* * *")...),
			allowed: true, by: "escalator"},
		{name: "an aggregation of what it has", user: "alice", object: aggregate("new", "get - pods"),
			reason: "must have cluster-admin privileges to use the aggregationRule", aggregation: true},
		{name: "an aggregation of more", user: "alice", object: aggregate("new", "get - nodes"), reason: "not currently held"},
		{name: "one that is to be no aggregation any more", user: "alice", url: "aggregated", object: clusterRole("aggregated"),
			reason: "must have cluster-admin", aggregation: true},
		{name: "a new one of that name", user: "alice", object: clusterRole("aggregated"), allowed: true},
		{name: "an aggregation by who has everything", user: "root", object: aggregate("new", "* * *"), allowed: true, by: "root"},
		{name: "an aggregation without selectors", user: "alice", object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "new"},
			AggregationRule: &rbacv1.AggregationRule{}}, allowed: true},
		{name: "a superuser", user: "x", groups: list("system:masters"), object: aggregate("new", "* * *"), allowed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := s.MayWriteRole(c.user, c.groups, c.object, c.url)
			if err != nil {
				t.Fatal(err)
			}
			check(t, e, c.allowed, c.by, c.reason)
			if e.Aggregation != c.aggregation {
				t.Errorf("got %+v", e)
			}
		})
	}
	for _, object := range []any{clusterBinding("x", "ClusterRole", "y"), "x", namespaceRole("", "x")} {
		if _, err := s.MayWriteRole("x", nil, object, ""); err == nil || !strings.Contains(err.Error(), "check escalation") {
			t.Errorf("%T: error %v", object, err)
		}
	}
	if _, err := s.MayWriteRole("x", nil, clusterBinding("x", "ClusterRole", "y"), ""); !errors.Is(err, rbacindex.ErrUnsupportedObject) {
		t.Errorf("error %v", err)
	}
}
