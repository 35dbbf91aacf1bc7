package leastpriv

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster is a small cluster a test describes and then asks of.
type cluster struct {
	t         *testing.T
	state     *state.State
	collector *Collector
	objects   []any
	now       time.Time
	seen      []observed
}

func newCluster(t *testing.T, objects ...any) *cluster {
	return &cluster{t: t, collector: NewCollector(), objects: objects, now: began}
}

// ask records one request, a second after the last, with the answer the policy gives it.
// more changes the event before it is judged.
func (c *cluster) ask(user string, groups []string, verb, uri string, more ...func(*event.Event)) {
	c.t.Helper()
	c.load()
	c.now = c.now.Add(time.Second)
	e := &event.Event{Level: event.LevelRequestResponse, AuditID: fmt.Sprint(c.now.Unix()), Stage: event.StageResponseComplete,
		RequestURI: uri, Verb: verb, User: event.User{Username: user, Groups: append(groups, "system:authenticated")},
		ResponseStatus: &event.Status{Code: 200}, RequestReceivedTimestamp: c.now, StageTimestamp: c.now.Add(time.Millisecond)}
	for _, m := range more {
		m(e)
	}
	eng := replay.New(replay.Config{})
	// What the apiserver would have recorded is what the replica says first.
	v := eng.Replay(e, c.state)
	reason := ""
	if len(v.Grants) > 0 {
		reason = v.Grants[0].Reason
	}
	if v.Replayed == verdict.DecisionForbid {
		e.ResponseStatus = &event.Status{Code: 403}
	}
	e.Annotations = e.Annotations.Set(event.AnnotationDecision, v.Replayed.String()).Set(event.AnnotationReason, reason)
	v = eng.Replay(e, c.state)
	if v.Outcome != verdict.OutcomeMatch {
		c.t.Fatalf("%s %s: %s %s %s", verb, uri, v.Outcome, v.Class, v.Cause)
	}
	c.collector.Observe(e, v)
	c.seen = append(c.seen, observed{e, v})
}

func (c *cluster) load() {
	if c.state != nil {
		return
	}
	c.state = state.New("test")
	snap := observe.Snapshot{Began: began, Ended: began, Since: began.Add(-time.Hour), Kinds: kept.Resources()}
	for i, o := range c.objects {
		k := change(typed(o)).Key
		raw, err := json.Marshal(o)
		if err != nil {
			c.t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			c.t.Fatal(err)
		}
		meta := m["metadata"].(map[string]any)
		meta["uid"], meta["resourceVersion"], meta["creationTimestamp"] = fmt.Sprint("u", i), fmt.Sprint(i+1),
			began.Add(-time.Hour).Format(time.RFC3339)
		if raw, err = json.Marshal(m); err != nil {
			c.t.Fatal(err)
		}
		resource := strings.ToLower(k.Kind.String()) + "s.rbac.authorization.k8s.io"
		snap.Objects = append(snap.Objects, observe.Observation{Source: observe.SourceSnapshot, Resource: resource,
			Namespace: k.Namespace, Name: k.Name,
			UID: fmt.Sprint("u", i), ResourceVersion: fmt.Sprint(i + 1), Object: raw, NotBefore: began, NotAfter: began})
	}
	if _, err := c.state.LoadSnapshot(snap); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) suggest(user string) *Suggestion {
	c.t.Helper()
	c.load()
	s, err := c.collector.Advise(c.state, newest, Options{Strict: true}).Suggest(user)
	if err != nil {
		c.t.Fatal(err)
	}
	if !s.Proof.Holds {
		c.t.Errorf("the proof does not hold: %+v", s.Proof)
	}
	return s
}

func code(n int32) func(*event.Event) {
	return func(e *event.Event) { e.ResponseStatus = &event.Status{Code: n} }
}

func body(text string) func(*event.Event) {
	return func(e *event.Event) { e.RequestObject, e.ResponseObject = []byte(text), []byte(text) }
}

func as(user string, constraint string, groups ...string) func(*event.Event) {
	return func(e *event.Event) {
		e.ImpersonatedUser = &event.User{Username: user, Groups: append(groups, "system:authenticated")}
		if constraint != "" {
			e.AuthenticationMetadata = &event.AuthenticationMetadata{ImpersonationConstraint: constraint}
		}
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) any {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func rule(verbs, groups, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: strings.Split(groups, " "), Resources: strings.Fields(resources)}
}

func everywhere(name, role string, subjects ...rbacv1.Subject) any {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: name}
}

// ruleTexts lists what a suggestion applies: "scope| verbs | resources or URLs | names".
func ruleTexts(s *Suggestion) []string {
	var out []string
	for _, o := range s.Apply {
		for _, r := range roleRules(o) {
			text := change(o).Key.Namespace + "| " + strings.Join(r.Verbs, ",") + " | "
			var on []string
			for _, res := range r.Resources {
				on = append(on, resourceText(r.APIGroups[0], res))
			}
			text += strings.Join(append(on, r.NonResourceURLs...), ",")
			if len(r.ResourceNames) > 0 {
				text += " | " + strings.Join(r.ResourceNames, ",")
			}
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

type asked struct {
	verb, uri string
	more      []func(*event.Event)
}

func TestRules(t *testing.T) {
	const pods = "/api/v1/namespaces/a/pods"
	root := []any{
		clusterRole("root", rule("*", "*", "*"), rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}),
		everywhere("root", "root", user("ann")),
	}
	narrow := func(rules ...rbacv1.PolicyRule) []any {
		return []any{clusterRole("narrow", rules...), everywhere("narrow", "narrow", user("ann"))}
	}
	many := func(verb, prefix, resource string, n int) (out []asked) {
		for i := range n {
			out = append(out, asked{verb: verb, uri: fmt.Sprintf("/api/v1/namespaces/a/%s/%s%c", resource, prefix, 'a'+i)})
		}
		return out
	}
	on := func(verb, uri string, more ...func(*event.Event)) asked { return asked{verb, uri, more} }
	for name, c := range map[string]struct {
		policy []any
		asked  []asked
		want   []string
	}{
		"verbs as used": {root, []asked{on("list", pods)}, []string{"a| list | pods"}},
		"one role a namespace": {root, []asked{on("list", pods), on("list", "/api/v1/namespaces/b/pods")}, []string{"a| list | pods",
			"b| list | pods"}},
		"all namespaces":      {root, []asked{on("list", "/api/v1/pods"), on("list", pods)}, []string{"| list | pods"}},
		"cluster-scoped":      {root, []asked{on("get", "/api/v1/nodes/n1")}, []string{"| get | nodes | n1"}},
		"a namespace by name": {root, []asked{on("get", "/api/v1/namespaces/a")}, []string{"| get | namespaces | a"}},
		"subresource":         {root, []asked{on("get", pods+"/web/log")}, []string{"a| get | pods/log | web"}},
		"group and subresource": {root, []asked{on("update", "/apis/apps/v1/namespaces/a/deployments/web/scale")},
			[]string{"a| update | deployments.apps/scale | web"}},
		"verbs share a rule": {root, []asked{on("list", pods), on("create", pods)}, []string{"a| create,list | pods"}},
		"resources share a rule": {root, []asked{on("list", pods), on("list", "/api/v1/namespaces/a/services")},
			[]string{"a| list | pods,services"}},
		"create has no name": {root, []asked{on("create", pods)}, []string{"a| create | pods"}},
		"named list": {root, []asked{on("list", pods+"?fieldSelector=metadata.name%3Dweb")},
			[]string{"a| list | pods | web"}},
		"deletecollection": {root, []asked{on("deletecollection", pods), on("delete", pods+"/web")},
			[]string{"a| delete | pods | web", "a| deletecollection | pods"}},
		"few names":      {root, many("get", "x", "configmaps", 8), []string{"a| get | configmaps | xa,xb,xc,xd,xe,xf,xg,xh"}},
		"many names":     {root, many("get", "x", "configmaps", 9), []string{"a| get | configmaps"}},
		"many secrets":   {root, many("get", "x", "secrets", 9), []string{"a| get | secrets | xa,xb,xc,xd,xe,xf,xg,xh,xi"}},
		"generated name": {root, []asked{on("get", pods+"/web-6d4cf56db6-x7k2p")}, []string{"a| get | pods"}},
		"URL without query": {root, []asked{on("get", "/metrics?timeout=3s"), on("get", "/healthz")},
			[]string{"| get | /healthz,/metrics"}},
		"websocket": {root, []asked{on("get", pods+"/web/exec?command=ls", code(101))},
			[]string{"a| create,get | pods/exec | web"}},
		"websocket before the check": {narrow(rule("get", "", "pods/exec pods")), []asked{on("get", pods+"/web/exec?command=ls",
			code(101))}, []string{"a| get | pods/exec | web"}},
		"apply that creates": {root, []asked{on("patch", "/api/v1/namespaces/a/configmaps/web", code(201))},
			[]string{"a| create,patch | configmaps | web"}},
		"apply that changes": {root, []asked{on("patch", "/api/v1/namespaces/a/configmaps/web")},
			[]string{"a| patch | configmaps | web"}},
		"role write by holding": {narrow(rule("get list", "", "pods configmaps"), rule("create", groupRBAC, "roles")),
			[]asked{on("create", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", code(201),
				body(`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`))},
			[]string{"a| create | roles.rbac.authorization.k8s.io", "a| get | pods"}},
		"role write by escalate": {narrow(rule("get list", "", "services"), rule("create escalate", groupRBAC, "roles")),
			[]asked{on("create", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", code(201),
				body(`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`))},
			[]string{"a| create,escalate | roles.rbac.authorization.k8s.io"}},
		"role write with a wildcard": {root, []asked{on("create", "/apis/rbac.authorization.k8s.io/v1/clusterroles", code(201),
			body(`{"rules":[{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}]}`))},
			[]string{"| create,escalate | clusterroles.rbac.authorization.k8s.io"}},
		"role write with an aggregationRule": {root, []asked{on("create", "/apis/rbac.authorization.k8s.io/v1/clusterroles", code(201),
			body(`{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]},"rules":[]}`))},
			[]string{"| create,escalate | clusterroles.rbac.authorization.k8s.io"}},
		"role write that asks naught": {narrow(rule("update", groupRBAC, "roles"), rule("get", "", "services")),
			[]asked{on("update", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/r",
				body(`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`))},
			[]string{"a| update | roles.rbac.authorization.k8s.io | r"}},
		"binding write": {slices.Concat(root, []any{clusterRole("reader", rule("get list", "", "pods"))}),
			[]asked{on("create", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings", code(201),
				body(`{"roleRef":{"kind":"ClusterRole","name":"reader"}}`))},
			[]string{"a| bind | clusterroles.rbac.authorization.k8s.io | reader", "a| create | rolebindings.rbac.authorization.k8s.io"}},
		"approve": {root, []asked{on("update", "/apis/certificates.k8s.io/v1/certificatesigningrequests/one/approval",
			body(`{"spec":{"signerName":"example.com/serving"}}`))},
			[]string{"| approve | signers.certificates.k8s.io | example.com/serving",
				"| update | certificatesigningrequests.certificates.k8s.io/approval | one"}},
		"approve by domain": {narrow(rule("update", groupCertificates, "certificatesigningrequests/approval"),
			rbacv1.PolicyRule{Verbs: []string{"approve"}, APIGroups: []string{groupCertificates}, Resources: []string{"signers"},
				ResourceNames: []string{"example.com/*", "other.com/*"}}),
			[]asked{on("update", "/apis/certificates.k8s.io/v1/certificatesigningrequests/one/approval",
				body(`{"spec":{"signerName":"example.com/serving"}}`))},
			[]string{"| approve | signers.certificates.k8s.io | example.com/serving",
				"| update | certificatesigningrequests.certificates.k8s.io/approval | one"}},
		"a path that reads as many": {root, []asked{on("get", "/metrics*"), on("get", "/version")}, []string{"| get | /version"}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, c.policy...)
			for _, a := range c.asked {
				cl.ask("ann", nil, a.verb, a.uri, a.more...)
			}
			s := cl.suggest("ann")
			if got := ruleTexts(s); !slices.Equal(got, c.want) {
				t.Errorf("applies\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if len(s.Remove) != 1 || s.Remove[0].Action != ActionDelete {
				t.Errorf("removes %+v, want the one binding deleted", s.Remove)
			}
		})
	}
}

func TestImpersonation(t *testing.T) {
	for name, c := range map[string]struct {
		constraint string
		groups     []string
		want       []string
	}{
		"legacy": {"", []string{"devs"}, []string{"| impersonate | groups | devs", "| impersonate | users | bob"}},
		"constrained": {"impersonate:user-info", []string{"devs"}, []string{"a| impersonate-on:user-info:list | pods",
			"| impersonate:user-info | groups.authentication.k8s.io | devs",
			"| impersonate:user-info | users.authentication.k8s.io | bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, clusterRole("root", rule("*", "*", "*")), everywhere("root", "root", user("ann"), user("bob")))
			cl.ask("ann", nil, "list", "/api/v1/namespaces/a/pods", as("bob", c.constraint, c.groups...))
			slices.Sort(c.want)
			if got := ruleTexts(cl.suggest("ann")); !slices.Equal(got, c.want) {
				t.Errorf("the requestor needs %q, want %q", got, c.want)
			}
			if got := ruleTexts(cl.suggest("bob")); !slices.Equal(got, []string{"a| list | pods"}) {
				t.Errorf("who is impersonated needs %q", got)
			}
		})
	}
}

func TestSharedBinding(t *testing.T) {
	cl := newCluster(t, clusterRole("wide", rule("get list", "", "pods secrets")), everywhere("both", "wide", user("ann"),
		user("bob"), user("eve")))
	cl.ask("ann", nil, "list", "/api/v1/namespaces/a/pods")
	cl.ask("bob", nil, "list", "/api/v1/namespaces/b/pods")
	advisor := cl.collector.Advise(cl.state, newest, Options{Strict: true})
	var all []*Suggestion
	for _, name := range []string{"ann", "bob"} {
		s, err := advisor.Suggest(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Remove) != 1 || s.Remove[0].Action != ActionReplace {
			t.Fatalf("%s: removes %+v, want one replaced binding", name, s.Remove)
		}
		if left, _, _ := rbacindex.BindingOf(s.Remove[0].Object); len(left) != 2 {
			t.Errorf("%s: %d subjects are left, want the other two", name, len(left))
		}
		all = append(all, s)
	}
	plan, err := advisor.Together(all)
	if err != nil {
		t.Fatal(err)
	}
	left, _, _ := rbacindex.BindingOf(plan.Remove[0].Object)
	if !plan.Holds || len(plan.Remove) != 1 || len(left) != 1 || left[0].Name != "eve" {
		t.Errorf("together: holds %t, removes %+v; want eve left alone in one binding", plan.Holds, plan.Remove)
	}
}

func TestGroupsAreNamed(t *testing.T) {
	cl := newCluster(t, clusterRole("wide", rule("get list", "", "pods secrets")), everywhere("own", "wide", user("ann")),
		everywhere("team", "wide", group("devs")))
	cl.ask("ann", []string{"devs"}, "list", "/api/v1/pods")
	s := cl.suggest("ann")
	if len(s.Apply) != 0 || len(s.Remove) != 1 {
		t.Errorf("applies %d and removes %d, want only the own binding removed: the group gives what is needed",
			len(s.Apply), len(s.Remove))
	}
	if len(s.Keeps) != 1 || s.Keeps[0].Binding != "ClusterRoleBinding/team" || s.Keeps[0].Relied != 1 ||
		!slices.Contains(s.Keeps[0].Undoes, "get secrets") {
		t.Errorf("keeps %+v, want the team's binding, and that it undoes the change", s.Keeps)
	}
}

func TestNothingToGainIsLeftAlone(t *testing.T) {
	cl := newCluster(t, clusterRole("exact", rule("list", "", "nodes")), everywhere("own", "exact", user("ann")))
	cl.ask("ann", nil, "list", "/api/v1/nodes")
	if s := cl.suggest("ann"); s.Changes() || s.Excess != (Excess{Held: s.Excess.Held}) {
		t.Errorf("%+v, want no change: all that is granted is used", s)
	}
}

// TestSuggestionIsAFixedPoint: a subject that holds what was suggested gets no other
// suggestion.
func TestSuggestionIsAFixedPoint(t *testing.T) {
	policy := []any{clusterRole("root", rule("*", "*", "*")), everywhere("root", "root", user("ann"))}
	cl := newCluster(t, policy...)
	again := newCluster(t)
	cl.ask("ann", nil, "list", "/api/v1/namespaces/a/pods")
	cl.ask("ann", nil, "get", "/api/v1/nodes/n1")
	for _, o := range cl.suggest("ann").Apply {
		again.objects = append(again.objects, o)
	}
	again.ask("ann", nil, "list", "/api/v1/namespaces/a/pods")
	again.ask("ann", nil, "get", "/api/v1/nodes/n1")
	if s := again.suggest("ann"); s.Changes() {
		t.Errorf("applies %q, removes %+v; want nothing", ruleTexts(s), s.Remove)
	}
}

func TestRefusalsKeepNamesClosed(t *testing.T) {
	narrow := rule("get", "", "configmaps")
	narrow.ResourceNames = strings.Fields("xa xb xc xd xe xf xg xh xi spare")
	cl := newCluster(t, clusterRole("narrow", narrow), everywhere("own", "narrow", user("ann")))
	for _, n := range narrow.ResourceNames[:9] {
		cl.ask("ann", nil, "get", "/api/v1/namespaces/a/configmaps/"+n)
	}
	cl.ask("ann", nil, "get", "/api/v1/namespaces/a/configmaps/other")
	s := cl.suggest("ann")
	want := []string{"a| get | configmaps | xa,xb,xc,xd,xe,xf,xg,xh,xi"}
	if got := ruleTexts(s); !slices.Equal(got, want) || s.Proof.NewlyAllowed != 0 || s.Proof.Refusals != 1 {
		t.Errorf("applies %q with proof %+v, want every name listed: open names would allow what was refused", got, s.Proof)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"web": false, "db-0": false, "kube-root-ca.crt": false, "app-config": false, "leader-election": false, "v1.apps": false,
		"web-6d4cf56db6-x7k2p": true, "job-29384756": true, "sh.helm.release.v1.app.v1": false, "a-0f3c9a1be2d4": true, "test-bz9kd": true,
	} {
		if got := generated(name); got != want {
			t.Errorf("generated(%q) = %t, want %t", name, got, want)
		}
	}
	a, b := objectName("Team: Ännä\n", 0), objectName("team: ännä\n", 0)
	if a == b || a[:len("retrial-team-nn-")] != "retrial-team-nn-"[:len("retrial-team-nn-")] {
		t.Errorf("%q and %q, want readable names told apart by a hash", a, b)
	}
	if long := objectName(strings.Repeat("x", 300), 0); len(long) > 63 {
		t.Errorf("%q is longer than a label", long)
	}
}

func TestUnknownSubject(t *testing.T) {
	cl := newCluster(t, clusterRole("root", rule("*", "*", "*")), everywhere("root", "root", user("ann")))
	cl.ask("root", []string{"system:masters"}, "list", "/api/v1/nodes")
	for _, name := range []string{"root", "nobody"} {
		if _, err := cl.collector.Advise(cl.state, newest, Options{Strict: true}).Suggest(name); !errors.Is(err, ErrUnknownSubject) {
			t.Errorf("%s: %v, want ErrUnknownSubject", name, err)
		}
	}
}

func TestSystem(t *testing.T) {
	cl := newCluster(t)
	cl.ask("admin", []string{"system:masters"}, "list", "/api/v1/nodes")
	for name, want := range map[string]bool{
		"admin": true, "alice": false, "system:node:n": true, "system:anonymous": true, "system:serviceaccount:ci:runner": false,
		"system:serviceaccount:kube-system:job-controller": true,
	} {
		if got := cl.collector.System(name); got != want {
			t.Errorf("System(%q) = %t, want %t", name, got, want)
		}
	}
}

// TestDoubtedGrants: what a write may give whose answer was lost is neither taken for given nor
// taken away in silence.
func TestDoubtedGrants(t *testing.T) {
	cl := newCluster(t, clusterRole("root", rule("*", "*", "*")), clusterRole("wide", rule("get list", "", "pods secrets")),
		everywhere("wide", "wide", user("ann")), everywhere("his", "wide", user("bob")))
	cl.ask("ann", nil, "list", "/api/v1/namespaces/a/pods")
	cl.ask("bob", nil, "list", "/api/v1/namespaces/a/pods")
	lost := cl.now.Add(time.Second)
	obs, err := observe.FromEvent(&event.Event{Level: event.LevelRequestResponse, Stage: event.StageResponseComplete, Verb: "create",
		RequestURI: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		ObjectRef:  &event.ObjectRef{Name: "dormant"}, ResponseStatus: &event.Status{Code: 504}, RequestReceivedTimestamp: lost,
		StageTimestamp: lost,
		RequestObject: []byte(`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"dormant"},` +
			`"subjects":[{"kind":"User","name":"ann"}],"roleRef":{"kind":"ClusterRole","name":"root"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	before := cl.suggest("ann")
	cl.state.Apply(obs...)
	s := cl.suggest("ann")
	if got, want := strings.Join(ruleTexts(s), "\n"), strings.Join(ruleTexts(before), "\n"); got != want ||
		len(s.Remove) != len(before.Remove) {
		t.Errorf("applies\n%s\nand removes %v, want as before:\n%s", got, s.Remove, want)
	}
	const want = "ClusterRoleBinding/dormant may give the subject more, by a write whose answer was lost"
	if got := strings.Join(s.Gaps, "\n"); !strings.Contains(got, want) || strings.Contains(strings.Join(before.Gaps, "\n"), want) {
		t.Errorf("gaps %q, want %q", got, want)
	}
	if s := cl.suggest("bob"); strings.Contains(strings.Join(s.Gaps, "\n"), "dormant") {
		t.Errorf("bob is told of what is not his: %q", s.Gaps)
	}
}

func roleRules(o any) []rbacv1.PolicyRule {
	rules, _ := rbacindex.RulesOf(o)
	return rules
}
