package authz

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// pods is a node graph that knows one answer.
type pods graph.Known

func (p pods) Related(time.Time, string, string, string, string, string) graph.Known {
	return graph.Known(p)
}

// policy lets alice list pods, and binds bob to a role that is not there.
func policy(t testing.TB) *state.View {
	t.Helper()
	binding := func(name, role, user string) rbacindex.Change {
		return rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: name}, Object: &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: user}}}}
	}
	s, err := rbacindex.Empty().Apply(
		rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "reader"},
			Object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
				Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}},
		binding("readers", "reader", "alice"), binding("gone", "gone", "bob"))
	if err != nil {
		t.Fatal(err)
	}
	return &state.View{RBAC: s}
}

func server(types ...config.AuthorizerType) *config.APIServer {
	cfg := &config.APIServer{}
	for _, typ := range types {
		cfg.Authorization.Authorizers = append(cfg.Authorization.Authorizers, config.Authorizer{Type: typ,
			Name: strings.ToLower(string(typ))})
	}
	return cfg
}

func webhooked(conditions []string, policy string, more ...config.AuthorizerType) *config.APIServer {
	cfg := server(more...)
	cfg.Authorization.Authorizers = slices.Insert(cfg.Authorization.Authorizers, 0, config.Authorizer{Type: config.Webhook, Name: "hook",
		Webhook: &config.WebhookOptions{FailurePolicy: policy, MatchConditions: conditions}})
	return cfg
}

var (
	alice    = event.User{Username: "alice"}
	bob      = event.User{Username: "bob"}
	kubelet  = event.User{Username: "system:node:n", Groups: []string{"system:nodes"}}
	root     = event.User{Username: "root", Groups: []string{"system:masters"}}
	listPods = verdict.Attributes{ResourceRequest: true, Verb: "list", APIVersion: "v1", Resource: "pods"}
	getOne   = verdict.Attributes{ResourceRequest: true, Verb: "get", APIVersion: "v1", Resource: "secrets", Namespace: "a", Name: "s"}
	healthz  = verdict.Attributes{Verb: "get", Path: "/healthz"}
)

func TestAuthorize(t *testing.T) {
	view := policy(t)
	unsure := *view
	unsure.Unknown = []rbacindex.Key{{Kind: rbacindex.KindClusterRoleBinding, Name: "new"}}
	tooMany := server()
	for range maxAuthorizers + 1 {
		tooMany.Authorization.Authorizers = append(tooMany.Authorization.Authorizers, config.Authorizer{Type: config.AlwaysDeny})
	}
	old := server(config.RBAC)
	old.Authorization.Authorizers[0].SuperUser = "bob"
	strange := server("Oracle", config.RBAC)
	noFile := server(config.ABAC, config.RBAC)
	paths := server()
	paths.Authorization.Delegated, paths.Authorization.AlwaysAllowPaths = true, []string{"/healthz", "/livez/*"}
	for _, tc := range []struct {
		name    string
		cfg     *config.APIServer
		user    *event.User
		a       *verdict.Attributes
		m       Moment
		want    verdict.Decision
		by      string
		answers string
		lack    Lack
		certain verdict.Decision
	}{
		{"nothing configured", nil, &alice, &listPods, Moment{View: view}, verdict.DecisionAllow, "rbac", "no opinion, no opinion, allow",
			0, verdict.DecisionAllow},
		{"masters first", server(config.AlwaysDeny), &root, &getOne, Moment{}, verdict.DecisionAllow, "masters", "allow, not asked", 0,
			verdict.DecisionAllow},
		{"always allow", server(config.AlwaysAllow), &bob, &getOne, Moment{}, verdict.DecisionAllow, "alwaysallow", "no opinion, allow", 0,
			verdict.DecisionAllow},
		{"nobody", server(), &bob, &getOne, Moment{}, verdict.DecisionForbid, "", "no opinion", 0, verdict.DecisionForbid},
		{"a pod of the node", nil, &kubelet, &getOne, Moment{View: view, Graph: pods(graph.Present)}, verdict.DecisionAllow, "node",
			"no opinion, allow, not asked", 0, verdict.DecisionAllow},
		{"no pod of the node", nil, &kubelet, &getOne, Moment{View: view, Graph: pods(graph.Absent)}, verdict.DecisionForbid, "",
			"no opinion, no opinion, no opinion", 0, verdict.DecisionForbid},
		{"pods not known", nil, &kubelet, &getOne, Moment{View: view}, verdict.DecisionNone, "", "no opinion, unknown, no opinion",
			LackNodeGraph, verdict.DecisionNone},
		{"pods not known, allowed anyway", server(config.Node, config.AlwaysAllow), &kubelet, &getOne, Moment{View: view},
			verdict.DecisionAllow, "alwaysallow", "no opinion, unknown, allow", 0, verdict.DecisionAllow},
		{"no state", nil, &alice, &listPods, Moment{}, verdict.DecisionNone, "", "no opinion, no opinion, unknown", LackState,
			verdict.DecisionNone},
		{"no state, allowed behind it", server(config.RBAC, config.AlwaysAllow), &alice, &listPods, Moment{}, verdict.DecisionAllow,
			"alwaysallow", "no opinion, unknown, allow", 0, verdict.DecisionAllow},
		{"an unknown binding", nil, &bob, &listPods, Moment{View: &unsure}, verdict.DecisionNone, "", "no opinion, no opinion, unknown",
			LackObject, verdict.DecisionNone},
		{"the super user of old", old, &bob, &getOne, Moment{View: view}, verdict.DecisionAllow, "rbac", "no opinion, allow", 0,
			verdict.DecisionAllow},
		{"an authorizer nobody knows", strange, &alice, &listPods, Moment{View: view}, verdict.DecisionNone, "",
			"no opinion, unknown, not asked", LackConfig, verdict.DecisionNone},
		{"masters before what nobody knows", config.Unknown("no flags"), &root, &listPods, Moment{View: view}, verdict.DecisionAllow,
			"masters", "allow, not asked", 0, verdict.DecisionAllow},
		{"nothing known", config.Unknown("no flags"), &alice, &listPods, Moment{View: view}, verdict.DecisionNone, "",
			"no opinion, unknown", LackConfig, verdict.DecisionNone},
		{"too many to follow", tooMany, &alice, &listPods, Moment{View: view}, verdict.DecisionNone, "", "no opinion, unknown", LackConfig,
			verdict.DecisionNone},
		{"a policy file not given", noFile, &bob, &listPods, Moment{View: view}, verdict.DecisionNone, "",
			"no opinion, unknown, no opinion", LackConfig, verdict.DecisionNone},
		{"a policy file not given, RBAC allows", noFile, &alice, &listPods, Moment{View: view}, verdict.DecisionAllow, "rbac",
			"no opinion, unknown, allow", 0, verdict.DecisionAllow},
		{"a webhook in front", webhooked(nil, "NoOpinion", config.RBAC), &alice, &listPods, Moment{View: view}, verdict.DecisionAllow,
			"rbac", "no opinion, unknown, allow", 0, verdict.DecisionNone},
		{"a webhook left out", webhooked([]string{`request.user == "zoe"`}, "Deny", config.RBAC), &alice, &listPods, Moment{View: view},
			verdict.DecisionAllow, "rbac", "no opinion, skipped, allow", 0, verdict.DecisionAllow},
		{"a condition that fails and refuses", webhooked([]string{`request.resourceAttributes.name == ""`}, "Deny", config.RBAC), &alice,
			&healthz, Moment{View: view}, verdict.DecisionError, "", "no opinion, deny, not asked", 0, verdict.DecisionError},
		{"a condition that fails and lets go on", webhooked([]string{`request.resourceAttributes.name == ""`}, "NoOpinion", config.RBAC),
			&alice, &healthz, Moment{View: view}, verdict.DecisionError, "", "no opinion, failed, no opinion", 0, verdict.DecisionError},
		{"one that fails, one that is false", webhooked([]string{`request.resourceAttributes.name == ""`, `false`}, "Deny", config.RBAC),
			&alice, &healthz, Moment{View: view}, verdict.DecisionForbid, "", "no opinion, skipped, no opinion", 0, verdict.DecisionForbid},
		{"a condition that does not compile", webhooked([]string{`no such thing`}, "Deny", config.RBAC), &alice, &listPods,
			Moment{View: view}, verdict.DecisionAllow, "rbac", "no opinion, unknown, allow", 0, verdict.DecisionNone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := New(tc.cfg)
			for range 2 { // the second time from memory
				ans := c.Authorize(tc.user, tc.a, &tc.m, nil)
				var answers []string
				for _, s := range ans.Steps() {
					answers = append(answers, s.Answer)
				}
				if ans.Decision != tc.want || ans.Authorizer != tc.by || ans.Lack != tc.lack || ans.Certain() != tc.certain ||
					strings.Join(answers, ", ") != tc.answers {
					t.Errorf("%s by %q, lack %d, certainly %s: %s", ans.Decision, ans.Authorizer, ans.Lack, ans.Certain(),
						strings.Join(answers, ", "))
				}
				if missing := len(ans.Missing()) > 0; missing != (tc.certain == verdict.DecisionNone) {
					t.Errorf("missing %q", ans.Missing())
				}
			}
		})
	}
}

func TestDelegated(t *testing.T) {
	cfg := server()
	cfg.Authorization.Delegated, cfg.Authorization.AlwaysAllowPaths = true, []string{"/healthz", "livez/*"}
	failing := webhooked([]string{`request.resourceAttributes.name == ""`}, "Deny", config.RBAC)
	m := &Moment{View: policy(t)}
	for _, tc := range []struct {
		name string
		kube *config.APIServer
		user *event.User
		a    verdict.Attributes
		want verdict.Decision
		by   string
		fail bool
	}{
		{"masters", nil, &root, getOne, verdict.DecisionAllow, verdict.AuthorizerMasters, false},
		{"a path", nil, &bob, healthz, verdict.DecisionAllow, verdict.AuthorizerPaths, false},
		{"below a path", nil, &bob, verdict.Attributes{Verb: "get", Path: "/livez/ping"}, verdict.DecisionAllow, verdict.AuthorizerPaths,
			false},
		{"beside a path", nil, &bob, verdict.Attributes{Verb: "get", Path: "/healthz/ping"}, verdict.DecisionForbid, "", true},
		{"not the path of a resource", nil, &bob, verdict.Attributes{ResourceRequest: true, Verb: "get", Path: "/healthz", Resource: "x"},
			verdict.DecisionForbid, "", true},
		{"as the kube-apiserver says", nil, &alice, listPods, verdict.DecisionAllow, verdict.AuthorizerRBAC, true},
		{"which fails", failing, &bob, verdict.Attributes{Verb: "get", Path: "/metrics"}, verdict.DecisionForbid, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Delegated(cfg, tc.kube)
			ans := c.Authorize(tc.user, &tc.a, m, nil)
			if !c.Delegated() || ans.Decision != tc.want || ans.Authorizer != tc.by || ans.CanFail() != tc.fail {
				t.Errorf("%s by %q, can fail %v", ans.Decision, ans.Authorizer, ans.CanFail())
			}
		})
	}
	if names := Delegated(cfg, failing).Names(); !slices.Equal(names, []string{"masters", "paths", "hook", "rbac"}) {
		t.Errorf("chain %v", names)
	}
}

// TestNodesOfOldVersions: before 1.32 a node read every pod.
func TestNodesOfOldVersions(t *testing.T) {
	old := server(config.Node)
	old.Minor = 31
	for name, c := range map[string]*Chain{"configured": New(old), "assumed": Assume(31)} {
		if ans := c.Authorize(&kubelet, &listPods, &Moment{View: policy(t)}, nil); ans.Authorizer != verdict.AuthorizerNode {
			t.Errorf("%s: %s by %q", name, ans.Decision, ans.Authorizer)
		}
	}
	if ans := New(nil).Authorize(&kubelet, &listPods, &Moment{View: policy(t)}, nil); ans.Decision != verdict.DecisionForbid {
		t.Errorf("a current version: %s by %q", ans.Decision, ans.Authorizer)
	}
}

// TestStepsAreShared: verdicts that say the same of the chain share one slice, others do not.
func TestStepsAreShared(t *testing.T) {
	c, m := New(nil), &Moment{View: policy(t)}
	steps := func(u *event.User, a *verdict.Attributes) []verdict.ChainStep {
		ans := c.Authorize(u, a, m, nil)
		return ans.Steps()
	}
	first := steps(&alice, &listPods)
	if second := steps(&alice, &listPods); &first[0] != &second[0] {
		t.Error("worded twice")
	}
	if refused := steps(&bob, &listPods); refused[2].Reason != `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found` {
		t.Errorf("reason %q", refused[2].Reason)
	}
	if refused := steps(&alice, &getOne); refused[2].Reason != "" {
		t.Errorf("reason %q of another answer", refused[2].Reason)
	}
	ans := c.Authorize(&alice, &listPods, m, nil)
	buf := ans.RBAC.Grants
	if n := testing.AllocsPerRun(100, func() {
		ans := c.Authorize(&alice, &listPods, m, buf)
		ans.Steps()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestStepsTellWhatIsLacking: no policy at all, and too much of it, are told apart by one chain.
func TestStepsTellWhatIsLacking(t *testing.T) {
	c := New(nil)
	const code = uint64(noOpinion) | uint64(noOpinion)<<3 | uint64(unknown)<<6
	for range 2 {
		for want, res := range map[string]rbacindex.Result{noObjects: {}, tooCostly: {TooCostly: true}} {
			ans := Answer{chain: c, by: -1, free: -1, code: code, RBAC: res}
			if got := ans.Steps()[2]; got.Answer != verdict.AnswerUnknown || got.Reason != want {
				t.Errorf("%+v, want %q", got, want)
			}
		}
	}
}

func TestWebhookSpec(t *testing.T) {
	a := listPods
	a.FieldSelector, a.LabelSelector = "spec.nodeName=n,status.phase!=x", "app in (a,b),!gone"
	for name, tc := range map[string]struct {
		condition string
		minor     int
		want      hookState
	}{
		"field selectors":                  {`request.resourceAttributes.fieldSelector.requirements[0].values == ["n"]`, 36, hookAsked},
		"the operator of a field selector": {`request.resourceAttributes.fieldSelector.requirements[1].operator == "NotIn"`, 0, hookAsked},
		"label selectors": {`request.resourceAttributes.labelSelector.requirements.exists(r, r.key == "gone" && ` +
			`r.operator == "DoesNotExist")`, 36, hookAsked},
		"none before 1.32": {`has(request.resourceAttributes.fieldSelector)`, 31, hookSkipped},
	} {
		t.Run(name, func(t *testing.T) {
			w, unknown := newWebhook(&config.WebhookOptions{MatchConditions: []string{tc.condition}}, &config.APIServer{Minor: tc.minor})
			if got := w.asked(&alice, &a); got != tc.want || unknown != "" {
				t.Errorf("state %d (%s)", got, unknown)
			}
		})
	}
}

// BenchmarkAuthorize asks chains for what RBAC allows, with the steps a verdict carries.
func BenchmarkAuthorize(b *testing.B) {
	m := &Moment{View: policy(b)}
	for name, cfg := range map[string]*config.APIServer{
		"node,rbac":            nil,
		"alwaysdeny,node,rbac": server(config.AlwaysDeny, config.Node, config.RBAC),
		"webhook,rbac":         webhooked(nil, "Deny", config.RBAC),
		"webhook(2 conditions),rbac": webhooked([]string{`!("system:nodes" in request.groups)`,
			`has(request.resourceAttributes) && request.resourceAttributes.namespace == "pay"`},
			"Deny", config.RBAC),
	} {
		b.Run("chain="+name, func(b *testing.B) {
			c := New(cfg)
			buf := make([]rbacindex.Grant, 0, 4)
			b.ReportAllocs()
			for b.Loop() {
				ans := c.Authorize(&alice, &listPods, m, buf)
				if ans.Decision != verdict.DecisionAllow || len(ans.Steps()) == 0 {
					b.Fatal(ans.Decision)
				}
			}
		})
	}
}
