package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// generous is what TestSuggestion's service account holds: far more than it uses, by a role
// of its namespace, by a role of the cluster, and by a binding it shares with somebody.
const generous = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: stock}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: registry, namespace: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: payment, namespace: shop}}
---
{apiVersion: v1, kind: Pod, metadata: {name: till, namespace: shop}, spec: {nodeName: node-1, containers: [{name: c, image: i}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pod-reader, namespace: shop}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop-admin, labels: {team: shop}}
rules:
- {apiGroups: ["", apps, batch, rbac.authorization.k8s.io], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot-administers, namespace: shop, annotations: {why: nobody remembers}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: shop-admin}
subjects: [{kind: ServiceAccount, name: robot, namespace: shop}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: see-everything}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
- {nonResourceURLs: ["*"], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: see-everything}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: see-everything}
subjects: [{kind: ServiceAccount, name: robot, namespace: shop}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: olga}]
`

// work is everything the service account does, and can do again.
var work = []string{
	"GET /api/v1/namespaces/shop/pods",
	"GET /api/v1/namespaces/shop/pods/till",
	"GET /api/v1/namespaces/shop/pods?watch=1&timeoutSeconds=1",
	"GET /api/v1/namespaces/shop/pods/till/log",
	"POST /api/v1/namespaces/shop/pods/till/exec?command=true&stdout=true",
	"GET /api/v1/namespaces/shop/secrets/registry",
	`POST /api/v1/namespaces/shop/configmaps {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"prices"},"data":{"a":"1"}}`,
	`PATCH /api/v1/namespaces/shop/configmaps/prices application/merge-patch+json {"data":{"a":"2"}}`,
	"DELETE /api/v1/namespaces/shop/configmaps/prices",
	// Server-side apply of what is not there: patch, and create behind it.
	`PATCH /api/v1/namespaces/shop/configmaps/applied?fieldManager=robot application/apply-patch+yaml ` +
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"a":"1"}}`,
	"DELETE /api/v1/namespaces/shop/configmaps/applied",
	`POST /apis/apps/v1/namespaces/shop/deployments {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},` +
		`"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},` +
		`"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
	`PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale application/merge-patch+json {"spec":{"replicas":2}}`,
	"DELETE /apis/apps/v1/namespaces/shop/deployments/web",
	// A binding to a role whose rules its maker must hold.
	`POST /apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings {"apiVersion":"rbac.authorization.k8s.io/v1",` +
		`"kind":"RoleBinding","metadata":{"name":"guest"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role",` +
		`"name":"pod-reader"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"guest"}]}`,
	"DELETE /apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/guest",
	"GET /api/v1/namespaces/stock/configmaps",
	"GET /api/v1/nodes",
	"GET /api/v1/namespaces/shop",
	"GET /metrics",
	"GET /version",
}

// suggestion is the part of `retrial suggest -o json` that is acted upon.
type suggestion struct {
	Subject string
	Proof   struct {
		Holds                           bool
		Requests, Refused, NewlyAllowed int
		Failures                        []string
	}
	Apply, Rollback []json.RawMessage
	Remove          []struct {
		Kind, Namespace, Name, Action string
		Object                        json.RawMessage
	}
	Excess struct{ Before, After, Kept int }
}

// form is a form of suggestions: what is asked for, and what the subject may no longer do.
type form struct {
	name   string
	flags  []string
	probe  authorizationv1.ResourceAttributes // it may before, and never did
	probed string                             // the probe as a request
	others []string                           // refused after
	exact  bool                               // nothing is left that was not used
}

// forms are the exact form, and the one that keeps a used verb of a used resource as wide as the role had it.
var forms = []form{
	{
		name: "strict", flags: []string{"--strict"}, exact: true,
		probe:  authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "payment"},
		probed: "GET /api/v1/namespaces/shop/secrets/payment",
		others: []string{"GET /api/v1/namespaces/shop/secrets", "DELETE /api/v1/namespaces/shop/pods/till",
			"GET /api/v1/namespaces/stock/pods", "POST /apis/batch/v1/namespaces/shop/jobs {}", "GET /apis/apps/v1/deployments",
			"PATCH /api/v1/namespaces/shop/configmaps/other application/merge-patch+json {}"},
	},
	{
		name:   "narrow",
		probe:  authorizationv1.ResourceAttributes{Verb: "list", Group: "apps", Resource: "daemonsets", Namespace: "stock"},
		probed: "GET /apis/apps/v1/namespaces/stock/daemonsets",
		others: []string{"GET /api/v1/namespaces/stock/secrets", "DELETE /api/v1/namespaces/shop/pods/till",
			"POST /apis/batch/v1/namespaces/shop/jobs {}", "GET /apis/apps/v1/daemonsets",
			"DELETE /api/v1/namespaces/shop/secrets/payment", "POST /api/v1/namespaces/stock/configmaps {}"},
	},
}

const robotName = "system:serviceaccount:shop:robot"

var robotGroups = []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}

// TestSuggestion: the change set of one subject is applied to the cluster it was made for, in each form.
// All the subject did still works, what it never did is refused, and the way back leads back.
// The state comes from a listing here, and every change after it from the audit log alone.
func TestSuggestion(t *testing.T) {
	t.Parallel()
	l := connect(t)
	l.objects.mustPut(t, decode(t, []byte(generous)))
	l.tell(t)
	cfg := l.ServiceAccount(t, l.admin, "shop", "robot")
	robot := newPerson(t, l.ledger, "robot", cfg)
	for _, f := range forms {
		l.decided(t, true, robotName, robotGroups, f.probe)
	}
	first := l.works(t, robot, cfg)
	l.arrived(t)
	// All are made of the work alone.
	all := make([]suggestion, len(forms))
	for i, f := range forms {
		all[i] = l.suggest(t, robotName, f.flags...)
	}
	for i, f := range forms {
		t.Run(f.name, func(t *testing.T) { l.applies(t, &all[i], &f, robot, cfg, first) })
	}
	ours := l.ledger.all()
	l.arrived(t)
	l.noDrift(t, ours)
	l.flushed(t)
}

// applies applies a suggestion, holds it to its form, and takes it back.
func (l *live) applies(t *testing.T, s *suggestion, f *form, robot *person, cfg *rest.Config, first []string) {
	if !s.Proof.Holds || s.Proof.Refused != 0 || s.Proof.NewlyAllowed != 0 || s.Proof.Requests < len(work) {
		t.Fatalf("the proof: %+v", s.Proof)
	}
	if s.Excess.Before <= s.Excess.After || f.exact && s.Excess.After != 0 {
		t.Errorf("excess %+v: nothing but what is used should be left", s.Excess)
	}
	t.Logf("%d requests proven; %d objects to apply, %d to remove; excess %d before, %d after", s.Proof.Requests, len(s.Apply),
		len(s.Remove), s.Excess.Before, s.Excess.After)

	// The change set, as it is printed.
	l.objects.mustPut(t, raw(t, s.Apply))
	actions := map[string]bool{}
	for _, r := range s.Remove {
		actions[r.Action] = true
		switch r.Action {
		case "delete":
			l.objects.delete(t, named(r.Kind, r.Namespace, r.Name))
		case "replace":
			l.objects.mustPut(t, decode(t, r.Object))
		default:
			t.Errorf("remove: unknown action %q", r.Action)
		}
	}
	if f.exact && !actions["delete"] || !actions["replace"] {
		t.Errorf("removals: %v; one binding was the subject's alone, and one was shared", actions)
	}
	l.decided(t, false, robotName, robotGroups, f.probe)
	l.decided(t, true, "olga", nil, f.probe) // she shared a binding, and keeps it
	// What was made has reached the authorizer: a Role, and a ClusterRole.
	l.decided(t, true, robotName, robotGroups, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "shop"})
	l.decided(t, true, robotName, robotGroups, authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"})

	if again := l.works(t, robot, cfg); !slices.Equal(first, again) {
		t.Errorf("the same requests were answered\n%v, and after the change\n%v", first, again)
	}
	robot.mayNot(t, append([]string{f.probed}, f.others...)...)

	// And back: the objects as they were, and nothing of what was made.
	before := map[string]bool{}
	for _, o := range raw(t, s.Rollback) {
		before[key(o)] = true
		l.objects.mustPut(t, []*unstructured.Unstructured{o})
	}
	for _, o := range raw(t, s.Apply) {
		if !before[key(o)] {
			l.objects.delete(t, o)
		}
	}
	l.decided(t, true, robotName, robotGroups, f.probe)
	l.decided(t, true, robotName, robotGroups, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "stock"})
	l.works(t, robot, cfg)
	robot.may(t, f.probed)
	l.sameAs(t, decode(t, []byte(generous)))
}

// works makes all the requests of the work and returns how they were answered.
func (l *live) works(t *testing.T, p *person, cfg *rest.Config) []string {
	t.Helper()
	var answers []string
	for _, w := range work {
		line, body := cutBody(w)
		status, _ := p.do(t, ask{line: line, body: body})
		answers = append(answers, fmt.Sprint(status, " ", line))
	}
	// kubectl exec as it is today: a GET, and the right to create behind it. It gets as far as
	// the kubelet that is not there.
	u, err := url.Parse(cfg.Host + "/api/v1/namespaces/shop/pods/till/exec?command=true&stdout=true")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(l.ledger.watch(p.name, cfg), http.MethodGet, u.String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), controlplane.Patience)
	defer cancel()
	err = socket.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
	if err == nil || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "orbidden") {
		t.Errorf("exec by websocket: %v", err)
	}
	return append(answers, fmt.Sprint(err))
}

// suggest returns the suggestion for one subject, of the running server.
func (l *live) suggest(t *testing.T, subject string, flags ...string) suggestion {
	t.Helper()
	out := l.Do(t, append([]string{"suggest", "--cluster", clusterName, "--subject", subject, "-o", "json"}, flags...)...).Out
	all := product.Items[suggestion](t, out)
	if len(all) != 1 || all[0].Subject != subject {
		t.Fatalf("suggestions for one subject: %.2000s", out)
	}
	return all[0]
}

// sameAs: objects are in the cluster as they were once made.
func (l *live) sameAs(t *testing.T, want []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range want {
		if !strings.HasSuffix(o.GetKind(), "Binding") && !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		got, err := l.objects.of(t, o).Get(t.Context(), o.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s: %v", key(o), err)
			continue
		}
		for _, field := range []string{"rules", "roleRef", "subjects"} {
			if have, should := string(mustJSON(t, got.Object[field])), string(mustJSON(t, o.Object[field])); have != should {
				t.Errorf("%s: %s are %s, were %s", key(o), field, have, should)
			}
		}
		if fmt.Sprint(got.GetLabels(), got.GetAnnotations()) != fmt.Sprint(o.GetLabels(), o.GetAnnotations()) {
			t.Errorf("%s: labels %v and annotations %v, were %v and %v", key(o), got.GetLabels(), got.GetAnnotations(), o.GetLabels(),
				o.GetAnnotations())
		}
	}
}

// noDrift: everything of the ledger arrived, and nothing in the cluster drifts.
func (l *live) noDrift(t *testing.T, ours map[string]call) {
	t.Helper()
	outcomes := map[string]int{}
	for _, v := range l.verdicts(t) {
		outcomes[v.Outcome]++
		if v.Outcome == "drift" || v.Outcome == "ambiguous" {
			t.Errorf("%s: %s %s by %s: %s: %s", v.Outcome, v.Verb, v.RequestURI, v.User, v.Class, v.Cause)
		}
		delete(ours, v.AuditID)
	}
	for _, c := range ours {
		if !unlogged(c) {
			t.Errorf("never arrived: %s %s", c.who, c.line)
		}
	}
	t.Logf("outcomes: %v", outcomes)
}

// key names an object.
func key(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// named returns an RBAC object of which only the name matters.
func named(kind, namespace, name string) *unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetAPIVersion("rbac.authorization.k8s.io/v1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return &o
}
