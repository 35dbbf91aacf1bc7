package apiserver

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// finding is what the API says of one.
type finding struct {
	ID, Rule, Severity, Subject, Text string
	Evidence                          []struct{ AuditID string }
}

// TestFindings: what attackers do to a real cluster is found by the running server, and each
// finding names the requests that were it and no others.
func TestFindings(t *testing.T) {
	t.Parallel()
	l := connect(t)
	l.tell(t)
	l.objects.mustPut(t, decode(t, []byte(policy)))
	l.Kubelet(t, l.admin, "node-1")
	alice := newPerson(t, l.ledger, "alice", l.User(t, "alice"))
	l.settled(t)
	alice.may(t, "POST /api/v1/namespaces/team-a/pods "+pod("p0"), "GET /api/v1/namespaces/team-a/pods/p0")
	boss := newPerson(t, l.ledger, "boss", l.User(t, "boss", "system:masters"))
	ivan := newPerson(t, l.ledger, "ivan", l.User(t, "ivan"))
	anybody := newPerson(t, l.ledger, "anonymous", l.Anonymous())
	anybody.may(t, "GET /version")
	anybody.mayNot(t, "GET /api/v1/pods")
	const bindings = "POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings "

	// Each step is one rule's, or those of several; what the ledger gained is its evidence.
	want := map[string]map[string]bool{}
	step := func(do func(), rules ...string) {
		t.Helper()
		before := l.ledger.all()
		do()
		for id := range l.ledger.all() {
			if _, old := before[id]; old {
				continue
			}
			for _, r := range rules {
				if want[r] == nil {
					want[r] = map[string]bool{}
				}
				want[r][id] = true
			}
		}
	}
	step(func() { l.exec(t) }, "pod-exec")
	step(func() {
		l.root.may(t, bindings+`{"metadata":{"name":"open"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",`+
			`"name":"reader"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"system:anonymous"}]}`)
	}, "anonymous-granted")
	l.decided(t, true, "system:anonymous", []string{"system:unauthenticated"}, authorizationv1.ResourceAttributes{Verb: "list",
		Resource: "pods"})
	step(func() { anybody.may(t, "GET /api/v1/pods") }, "anonymous-request")
	step(func() {
		l.root.may(t, bindings+`{"metadata":{"name":"owned"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",`+
			`"name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}]}`)
	}, "cluster-admin-binding")
	step(func() { boss.may(t, "GET /api/v1/secrets") }, "masters-used", "secrets-list")
	step(func() {
		ivan.as("Impersonate-User", "system:admin").mayNot(t, "GET /api/v1/pods")
	}, "impersonation-denied")
	step(func() {
		l.root.may(t, "POST /api/v1/namespaces/team-b/serviceaccounts/robot/token {}")
	}, "token-requested")

	l.arrived(t)
	var found []finding
	controlplane.Poll(t, "the findings", func(context.Context) (bool, string) {
		found = l.findings(t)
		have := map[string]bool{}
		for _, f := range found {
			have[f.Rule] = true
		}
		for r := range want {
			if !have[r] {
				return false, fmt.Sprintf("no %s among %v", r, slices.Sorted(maps.Keys(have)))
			}
		}
		return true, ""
	})
	rules, calls := map[string]int{}, l.ledger.all()
	for _, f := range found {
		rules[f.Rule]++
		if want[f.Rule] == nil {
			continue // of a rule nobody set out to fire
		}
		if len(f.Evidence) == 0 {
			t.Errorf("%s of %s names no request", f.Rule, f.Subject)
		}
		for _, e := range f.Evidence {
			if !want[f.Rule][e.AuditID] {
				t.Errorf("%s names %s %s, which was something else: %s", f.Rule, calls[e.AuditID].who, calls[e.AuditID].line, f.Text)
			}
		}
	}
	t.Logf("findings by rule: %v", rules)

	// The command says the same.
	said := product.Items[finding](t, l.Do(t, "findings", "--cluster", clusterName, "-o", "json").Out)
	ids := map[string]bool{}
	for _, f := range said {
		ids[f.ID] = true
	}
	for _, f := range found {
		if !ids[f.ID] {
			t.Errorf("the command does not list %s of %s", f.Rule, f.Subject)
		}
	}
}

// exec opens a stream into a pod, as kubectl exec does.
func (l *live) exec(t *testing.T) {
	t.Helper()
	cfg := l.ledger.watch("alice", l.User(t, "alice"))
	u, err := url.Parse(cfg.Host + "/api/v1/namespaces/team-a/pods/p0/exec?command=sh&stdout=true")
	if err != nil {
		t.Fatal(err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(cfg, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), controlplane.Patience)
	defer cancel()
	if err := spdy.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard}); err == nil {
		t.Error("a command ran where nothing can")
	}
}

// findings returns all there are of the cluster.
func (l *live) findings(t *testing.T) []finding {
	t.Helper()
	var answer struct{ Findings []finding }
	l.Ask(t, "findings", url.Values{"cluster": {clusterName}, "limit": {"500"}}, &answer)
	return answer.Findings
}
