package leastpriv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
)

func (c *cluster) advise(o Options) *Advisor {
	c.load()
	return c.collector.Advise(c.state, newest, o)
}

func (c *cluster) narrowed(user string, o Options) *Suggestion {
	c.t.Helper()
	s, err := c.advise(o).Suggest(user)
	if err != nil {
		c.t.Fatal(err)
	}
	if !s.Proof.Holds {
		c.t.Errorf("the proof does not hold: %+v", s.Proof)
	}
	return s
}

func in(namespace, name, role string, subjects ...rbacv1.Subject) any {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
}

func keysOf(objects Objects) (out []string) {
	for _, o := range objects {
		out = append(out, change(o).Key.String())
	}
	return out
}

// TestNarrowRoles: what is kept of one role.
func TestNarrowRoles(t *testing.T) {
	const pods = "/api/v1/namespaces/a/pods"
	named := rule("get list watch", "", "configmaps")
	named.ResourceNames = []string{"web", "db"}
	urls := rbacv1.PolicyRule{Verbs: []string{"get", "head"}, NonResourceURLs: []string{"/metrics", "/logs/*", "/healthz"}}
	for name, c := range map[string]struct {
		rules []rbacv1.PolicyRule
		asked []asked
		want  []string
		bare  []string // without added verbs, where that differs
	}{
		"verbs go together": {rules: []rbacv1.PolicyRule{rule("get list watch create delete", "", "pods services")},
			asked: []asked{{verb: "list", uri: pods}}, want: []string{"| get,list,watch | pods"}, bare: []string{"| list | pods"}},
		"only as far as they are held": {rules: []rbacv1.PolicyRule{rule("list delete", "", "pods services")},
			asked: []asked{{verb: "list", uri: pods}}, want: []string{"| list | pods"}},
		"a wildcard becomes what was used": {rules: []rbacv1.PolicyRule{rule("*", "*", "*")},
			asked: []asked{{verb: "create", uri: pods}}, want: []string{"| create,delete,get,list,watch | pods"},
			bare: []string{"| create | pods"}},
		"a subject that is still learning keeps ordinary writes": {rules: []rbacv1.PolicyRule{rule("*", "", "configmaps pods secrets")},
			asked: []asked{{verb: "patch", uri: "/api/v1/namespaces/a/configmaps/x"}, {verb: "get", uri: pods + "/x"}},
			want:  []string{"| create,delete,get,list,patch,update,watch | configmaps", "| delete,get,list,watch | pods"},
			bare:  []string{"| get | pods", "| patch | configmaps"}},
		"Secrets are not read for that": {rules: []rbacv1.PolicyRule{rule("*", "", "*")},
			asked: []asked{{verb: "update", uri: "/api/v1/namespaces/a/secrets/x"}}, want: []string{"| update | secrets"}},
		"Secrets that are listed are watched": {rules: []rbacv1.PolicyRule{rule("*", "", "*")},
			asked: []asked{{verb: "list", uri: "/api/v1/secrets"}}, want: []string{"| get,list,watch | secrets"},
			bare: []string{"| list | secrets"}},
		"leases are renewed": {rules: []rbacv1.PolicyRule{rule("get create update deletecollection", "coordination.k8s.io", "leases")},
			asked: []asked{{verb: "update", uri: "/apis/coordination.k8s.io/v1/namespaces/a/leases/x"}},
			want:  []string{"| create,get,update | leases.coordination.k8s.io"}, bare: []string{"| update | leases.coordination.k8s.io"}},
		"subresources are their own": {rules: []rbacv1.PolicyRule{rule("*", "", "*")},
			asked: []asked{{verb: "get", uri: pods + "/x/log"}}, want: []string{"| get | pods/log"}},
		"questions are not read": {rules: []rbacv1.PolicyRule{rule("*", "*", "*")},
			asked: []asked{{verb: "create", uri: "/apis/authorization.k8s.io/v1/subjectaccessreviews"}},
			want:  []string{"| create | subjectaccessreviews.authorization.k8s.io"}},
		"names stay": {rules: []rbacv1.PolicyRule{named, rule("get", "", "pods")},
			asked: []asked{{verb: "get", uri: "/api/v1/namespaces/a/configmaps/web"}},
			want:  []string{"| get,list,watch | configmaps | web,db"}, bare: []string{"| get | configmaps | web,db"}},
		"paths stay": {rules: []rbacv1.PolicyRule{urls}, asked: []asked{{verb: "get", uri: "/logs/a?x=1"}, {verb: "get", uri: "/metrics"}},
			want: []string{"| get | /logs/*,/metrics"}},
		"all paths become those used": {rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
			asked: []asked{{verb: "get", uri: "/logs/a"}}, want: []string{"| get | /logs/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, clusterRole("r", c.rules...), everywhere("r", "r", user("ann")))
			for _, q := range c.asked {
				cl.ask("ann", nil, q.verb, q.uri)
			}
			// A role of which all was used is left alone, and says nothing here.
			if s := cl.narrowed("ann", Options{}); !slices.Equal(ruleTexts(s), c.want) {
				t.Errorf("%q, want %q", ruleTexts(s), c.want)
			} else if got := keysOf(s.Apply); !slices.Equal(got, []string{"ClusterRole/r"}) || len(s.Remove) > 0 {
				t.Errorf("%q to apply and %d removals, want the role edited in place", got, len(s.Remove))
			}
			if c.bare == nil {
				c.bare = c.want
			}
			if s := cl.narrowed("ann", Options{NoAddedVerbs: true}); !slices.Equal(ruleTexts(s), c.bare) || len(s.Added) > 0 {
				t.Errorf("without added verbs %q, want %q", ruleTexts(s), c.bare)
			}
		})
	}
}

// TestNarrowInPlace: a role is edited in place where it is nobody else's; otherwise its holder gets a copy.
func TestNarrowInPlace(t *testing.T) {
	wide := rule("get list watch delete", "", "pods secrets")
	labelled := func(labels map[string]string) map[string]metav1.ObjectMeta {
		return map[string]metav1.ObjectMeta{"ClusterRole/r": {Name: "r", Labels: labels}}
	}
	for name, c := range map[string]struct {
		objects []any
		metas   map[string]metav1.ObjectMeta
		copied  bool
	}{
		"its own":         {},
		"held by another": {objects: []any{everywhere("other", "r", user("bob"))}, copied: true},
		"held by a group": {objects: []any{in("a", "other", "r", group("devs"))}, copied: true},
		"of Kubernetes":   {metas: labelled(map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}), copied: true},
		"aggregated": {metas: labelled(map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}),
			copied: true},
		"aggregated by its label": {metas: labelled(map[string]string{"team": "x"}), objects: []any{aggregating("team", "x")},
			copied: true},
		"of another label": {metas: labelled(map[string]string{"team": "y"}), objects: []any{aggregating("team", "x")}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, append(c.objects, clusterRole("r", wide), everywhere("r", "r", user("ann")))...)
			cl.ask("ann", nil, "list", "/api/v1/pods")
			s := cl.narrowed("ann", Options{Metadata: func(k rbacindex.Key) metav1.ObjectMeta { return c.metas[k.String()] }})
			got := strings.Join(keysOf(s.Apply), " ")
			if c.copied != strings.Contains(got, "ClusterRoleBinding/retrial-r-ann-") || c.copied == (got == "ClusterRole/r") ||
				c.copied != (len(s.Remove) == 1) {
				t.Errorf("%q to apply, %+v to remove", got, s.Remove)
			}
		})
	}
}

func aggregating(label, value string) any {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: value}}}}}
}

// TestNarrowTogether: holders of a role that used nearly the same get the same of it, a role that nobody used goes, and what a subject gets
// in one place is one role.
func TestNarrowTogether(t *testing.T) {
	held := func(name string, r rbacv1.PolicyRule, subjects ...rbacv1.Subject) []any {
		return []any{clusterRole(name, r, rule("delete", "", "secrets")), everywhere(name, name, subjects...)}
	}
	cl := newCluster(t, slices.Concat(held("one", rule("get list watch", "", "pods configmaps"), user("ann"), user("bob")),
		held("idle", rule("list", "", "nodes"), user("ann")), held("view", rule("list", "", "pods"), user("cat")),
		held("edit", rule("create", "", "pods"), user("cat")))...)
	cl.ask("ann", nil, "list", "/api/v1/pods")
	cl.ask("bob", nil, "list", "/api/v1/configmaps")
	cl.ask("cat", nil, "list", "/api/v1/pods")
	cl.ask("cat", nil, "create", "/api/v1/namespaces/a/pods")
	a := cl.advise(Options{})
	var all []*Suggestion
	for _, name := range []string{"ann", "bob", "cat"} {
		s, err := a.Suggest(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	plan, err := a.Together(all)
	if err != nil || !plan.Holds {
		t.Fatalf("%+v, %v", plan, err)
	}
	got := keysOf(plan.Apply)
	if len(got) != 3 || got[0] != "ClusterRole/one" || !strings.HasPrefix(got[1], "ClusterRole/retrial-edit-view-cat-") {
		t.Errorf("%q to apply, want the role of two edited in place, and one copy of edit and view", got)
	}
	if rules := roleRules(plan.Apply[0]); len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"configmaps", "pods"}) {
		t.Errorf("%+v, want what either used", rules)
	}
	var removed []string
	for _, r := range plan.Remove {
		removed = append(removed, r.key.String())
	}
	if want := []string{"ClusterRoleBinding/edit", "ClusterRoleBinding/idle", "ClusterRoleBinding/view", "ClusterRole/idle"}; !slices.Equal(
		slices.Sorted(slices.Values(removed)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%q to remove, want %q", removed, want)
	}
}

// TestNarrowWriters: who writes roles holds their rules; narrowed roles keep those, and where they cannot the subject keeps what it has.
func TestNarrowWriters(t *testing.T) {
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles"
	write := func(cl *cluster, rules string) {
		cl.ask("ann", nil, "create", roles, code(201), body(`{"metadata":{"name":"x"},"rules":`+rules+`}`))
	}
	cl := newCluster(t, clusterRole("r", rule("get list delete", "", "pods secrets"), rule("create", "rbac.authorization.k8s.io", "roles")),
		everywhere("r", "r", user("ann")))
	write(cl, `[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`)
	if s := cl.narrowed("ann", Options{NoAddedVerbs: true}); s.Form != FormNarrow ||
		!slices.Equal(ruleTexts(s), []string{"| create | roles.rbac.authorization.k8s.io", "| get | pods"}) {
		t.Errorf("%s %q, want what the role it wrote holds", s.Form, ruleTexts(s))
	}
	cl = newCluster(t, clusterRole("r", rule("*", "", "pods"), rule("get", "", "secrets"),
		rule("create", "rbac.authorization.k8s.io", "roles")),
		everywhere("r", "r", user("ann")))
	write(cl, `[{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}]`)
	a := cl.advise(Options{})
	s, err := a.Suggest("ann")
	if err != nil || s.Form != FormUnchanged || s.Changes() || !s.Proof.Holds || s.Excess.After != s.Excess.Before {
		t.Errorf("%+v, %v; want nothing changed: a wildcard cannot be narrowed", s, err)
	}
	if plan, err := a.Together([]*Suggestion{s}); err != nil || len(plan.Apply)+len(plan.Remove) > 0 || !plan.Holds {
		t.Errorf("together: %+v, %v", plan, err)
	}
}

// TestTakenAway: what was used and is not granted any more is not given back.
func TestTakenAway(t *testing.T) {
	cl := newCluster(t, clusterRole("r", rule("list delete", "", "pods secrets")), everywhere("r", "r", user("ann")))
	cl.ask("ann", nil, "list", "/api/v1/pods")
	cl.ask("ann", nil, "list", "/api/v1/secrets")
	narrower := newCluster(t, clusterRole("r", rule("list delete", "", "pods")), everywhere("r", "r", user("ann")))
	narrower.load()
	cl.state = narrower.state
	s := cl.narrowed("ann", Options{})
	if s.Proof.TakenAway != 1 || !slices.Equal(ruleTexts(s), []string{"| list | pods"}) {
		t.Errorf("%+v, %q", s.Proof, ruleTexts(s))
	}
}

// TestNarrowIsAFixedPoint: applied, a suggestion suggests nothing more.
func TestNarrowIsAFixedPoint(t *testing.T) {
	objects := []any{clusterRole("view", rule("*", "*", "*")), everywhere("v", "view", user("ann"), user("bob")),
		in("b", "w", "view", user("ann"))}
	cl := newCluster(t, objects...)
	cl.ask("ann", nil, "list", "/api/v1/pods")
	s := cl.narrowed("ann", Options{})
	policy := finalOf(t, cl.advise(Options{}), s)
	var after []any
	policy.All(func(_ rbacindex.Key, o any) bool {
		after = append(after, o)
		return true
	})
	again := newCluster(t, after...)
	again.ask("ann", nil, "list", "/api/v1/pods")
	if s := again.narrowed("ann", Options{}); s.Changes() {
		t.Errorf("%q to apply again, %+v to remove", keysOf(s.Apply), s.Remove)
	}
}

// TestOwners: what writes an object again is named.
func TestOwners(t *testing.T) {
	for want, m := range map[string]metav1.ObjectMeta{
		"": {Labels: map[string]string{"app.kubernetes.io/managed-by": "retrial"}},
		"Helm release shop/web": {Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}},
		"a Helm release":          {Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
		"Argo CD application web": {Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "web:apps/Role:a/b"}},
		"Argo CD application old": {Labels: map[string]string{"argocd.argoproj.io/instance": "old"}},
		"Flux Kustomization flux/app": {Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "app",
			"kustomize.toolkit.fluxcd.io/namespace": "flux"}},
		"Flux HelmRelease web": {Labels: map[string]string{"helm.toolkit.fluxcd.io/name": "web"}},
		"OLM ClusterServiceVersion ops/x": {Labels: map[string]string{"olm.owner": "x", "olm.owner.kind": "ClusterServiceVersion",
			"olm.owner.namespace": "ops"}},
		"Operator x": {OwnerReferences: []metav1.OwnerReference{{Kind: "Operator", Name: "x"}}},
	} {
		if got := OwnerOf(&m); got != want {
			t.Errorf("%q, want %q of %+v", got, want, m)
		}
	}
	cl := newCluster(t, clusterRole("r", rule("list delete", "", "pods")), everywhere("r", "r", user("ann")))
	cl.ask("ann", nil, "list", "/api/v1/pods")
	s := cl.narrowed("ann", Options{Metadata: func(rbacindex.Key) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Operator", Name: "x"}}}
	}})
	if len(s.Owned) != 1 || s.Owned[0] != (Owned{Object: "ClusterRole/r", Owner: "Operator x"}) ||
		!strings.Contains(strings.Join(s.Gaps, "\n"), "ClusterRole/r belongs to Operator x") {
		t.Errorf("%+v, %q", s.Owned, s.Gaps)
	}
}

// TestNarrowingIsBounded: many roles of many holders, each of which used something else, and rules that go on for long.
func TestNarrowingIsBounded(t *testing.T) {
	var objects []any
	var many []rbacv1.PolicyRule
	for i := range 2000 {
		many = append(many, rule("get list", fmt.Sprint("g", i), "things"))
	}
	var subjects []rbacv1.Subject
	for i := range 300 {
		subjects = append(subjects, user(fmt.Sprint("u", i)))
	}
	objects = append(objects, clusterRole("many", many...), everywhere("many", "many", append(subjects, user("ann"))...))
	cl := newCluster(t, objects...)
	for i := range 300 {
		cl.ask(fmt.Sprint("u", i), nil, "get", fmt.Sprintf("/apis/g%d/v1/things/x", i))
	}
	base := cl.seen[0]
	for i := range 4000 { // more than is gone through of 2,000 rules
		e := *base.e
		v := *base.v
		v.Attributes.Name = fmt.Sprint("x", i)
		e.User = event.User{Username: "ann"}
		cl.collector.ObserveMany(&e, &v, Count{Requests: 1, First: base.e.RequestReceivedTimestamp, Last: cl.now})
	}
	a := cl.advise(Options{})
	s, err := a.Suggest("ann")
	if err != nil || s.Form == FormNarrow || !s.Proof.Holds || !strings.Contains(strings.Join(s.Gaps, "\n"), "too much work") {
		t.Errorf("%v; %s, %q; want another form", err, s.Form, s.Gaps)
	}
	var all []*Suggestion
	for i := range 300 {
		one, err := a.Suggest(fmt.Sprint("u", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	var plan *Plan
	if n := allocated(func() {
		if plan, err = a.Together(append(all, s)); err != nil {
			t.Fatal(err)
		}
	}); n > 2<<30 {
		t.Errorf("%d MiB", n>>20)
	}
	if !plan.Holds || len(plan.Apply) > 3*mostShares+2 {
		t.Errorf("holds %t, %d objects", plan.Holds, len(plan.Apply))
	}
}
