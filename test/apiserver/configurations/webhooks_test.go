package configurations

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

// kubeconfig returns how the apiserver reaches a webhook.
func kubeconfig(ca *controlplane.Authority, url string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: webhook
  cluster: {server: %q, certificate-authority-data: %s}
contexts:
- name: webhook
  context: {cluster: webhook, user: apiserver}
current-context: webhook
users:
- name: apiserver
  user: {}
`, url, base64.StdEncoding.EncodeToString(ca.PEM()))
}

// authorizes serves SubjectAccessReviews by a rule. A rule that returns false makes the call
// fail, in a way that is not tried again. The count is of calls.
func authorizes(t *testing.T, ca *controlplane.Authority, calls *atomic.Int64,
	rule func(authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, bool)) string {
	t.Helper()
	return serveTLS(t, ca, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		calls.Add(1)
		var r authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(q.Body).Decode(&r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		status, ok := rule(r.Spec)
		if !ok {
			http.Error(w, "out of order", http.StatusBadRequest)
			return
		}
		r.Status = status
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r)
	}))
}

// authenticates serves TokenReviews: who has which token.
func authenticates(t *testing.T, ca *controlplane.Authority, users map[string]authenticationv1.UserInfo) string {
	t.Helper()
	return serveTLS(t, ca, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var r authenticationv1.TokenReview
		if err := json.NewDecoder(q.Body).Decode(&r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if u, ok := users[r.Spec.Token]; ok {
			r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: u, Audiences: r.Spec.Audiences}
		} else {
			r.Status.Error = "no such token"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r)
	}))
}

type (
	spec   = authorizationv1.SubjectAccessReviewSpec
	status = authorizationv1.SubjectAccessReviewStatus
)

// house returns the rule of TestWebhooks.
func house(s spec) (status, bool) {
	a := s.ResourceAttributes
	switch {
	case s.User == "broken":
		return status{}, false
	case s.User == "both":
		return status{Allowed: true, Denied: true, Reason: "cannot decide"}, true
	case s.User == "silent":
		return status{Allowed: true}, true
	case strings.HasPrefix(s.User, "system:"):
		return status{}, true
	case a == nil:
		return status{Reason: "house: paths are not mine"}, true
	case a.Verb == "delete" && a.Namespace == "team-b":
		return status{Denied: true, Reason: "house: nothing is deleted in team-b"}, true
	case a.Resource == "configmaps" && has(s.Groups, "house:ops"):
		return status{Allowed: true, Reason: "house: operators may"}, true
	case a.Resource == "secrets":
		return status{Reason: "house: ask the owner\nof the secret"}, true
	case a.Verb == "impersonate" && a.Resource == "users" && s.User == "olga" && a.Name == "alice":
		return status{Allowed: true, Reason: "house: olga acts as alice"}, true
	}
	return status{}, true
}

func has(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// TestWebhooks: a webhook says who has a token, and another one what they may, before RBAC.
func TestWebhooks(t *testing.T) {
	ca := controlplane.NewAuthority(t)
	var calls atomic.Int64
	users := map[string]authenticationv1.UserInfo{}
	authorizer := authorizes(t, ca, &calls, house)
	authenticator := authenticates(t, ca, users)
	user := func(name, uid string, groups ...string) string {
		token := "opaque-" + name + "-" + uid + "-4f6b0c"
		users[token] = authenticationv1.UserInfo{Username: name, UID: uid, Groups: groups, Extra: map[string]authenticationv1.ExtraValue{
			"example.org/directory": {"main"}}}
		return token
	}
	tokens := map[string]string{}
	for _, u := range [][]string{{"alice", "1", "house:dev"}, {"olga", "2", "house:ops", "system:authenticated"}, {"both", "3"},
		{"broken", "4"}, {"silent", "5"},
		{"root", "6", "system:masters"}, {"readers", "7", "house:readers"}} {
		tokens[u[0]] = user(u[0], u[1], u[2:]...)
	}
	forged := user("system:serviceaccount:team-b:robot", "not-its-uid", "system:serviceaccounts", "system:serviceaccounts:team-b")
	r := recorder.Start(t, recorder.Config{
		Name: "webhooks",
		Flags: []string{"--authorization-mode=Node,Webhook,RBAC", "--authorization-webhook-config-file=DIR/authorizer.kubeconfig",
			"--authorization-webhook-version=v1",
			"--authentication-token-webhook-config-file=DIR/authenticator.kubeconfig", "--authentication-token-webhook-version=v1"},
		Files: map[string][]byte{"authorizer.kubeconfig": kubeconfig(ca, authorizer), "authenticator.kubeconfig": kubeconfig(ca,
			authenticator)},
	})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, roles+`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: Group, name: "house:dev"}, {kind: User, name: broken}, {kind: User, name: both}, {kind: Group, name: "house:readers"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writers, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects: [{kind: Group, name: "house:dev"}, {kind: ServiceAccount, name: robot, namespace: team-b}]
`)
	r.Decided(t, true, "x", []string{"house:dev"}, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"})
	r.Decided(t, true, "x", []string{"house:dev"}, authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps",
		Namespace: "team-b"})
	actor := func(name string) *recorder.Actor { return r.Actor(t, name, "webhook-token", r.Bearer(tokens[name])) }

	r.Scenario("webhook")
	alice := actor("alice")
	alice.By("rbac").May(t, "GET /api/v1/pods", "GET /version", "GET /api/v1/namespaces/team-b/configmaps",
		"POST /api/v1/namespaces/team-b/configmaps {}", "GET /metrics")
	alice.By("webhook").MayNot(t, "DELETE /api/v1/namespaces/team-b/configmaps/c0", "DELETE /apis/apps/v1/namespaces/team-b/deployments/x")
	alice.MayNot(t, "GET /api/v1/secrets", "GET /api/v1/namespaces/team-a/secrets/s0", "POST /nowhere {}", "GET /api/v1/nodes")
	alice.Sweep(t, "team-a", "team-b")
	alice.Try(t, hostile...)
	olga := actor("olga")
	olga.By("webhook").May(t, "GET /api/v1/namespaces/team-a/configmaps", "PUT /api/v1/namespaces/team-a/configmaps/x {}",
		"DELETE /api/v1/namespaces/team-a/configmaps/absent")
	olga.By("webhook").MayNot(t, "DELETE /api/v1/namespaces/team-b/configmaps/absent")
	olga.MayNot(t, "GET /api/v1/pods", "GET /metrics")
	olga.Sweep(t, "team-b")
	actor("silent").By("webhook").May(t, "GET /api/v1/secrets", "GET /metrics", "DELETE /api/v1/namespaces/team-b/configmaps/absent")
	actor("readers").Sweep(t, "team-a")
	r.Scenario("webhook out of order")
	actor("both").Nobody(t, 500, "GET /api/v1/pods", "GET /api/v1/secrets")
	actor("broken").By("rbac").May(t, "GET /api/v1/pods", "GET /version")
	actor("broken").Nobody(t, 500, "GET /api/v1/secrets", "POST /nowhere {}")
	actor("root").By("masters").May(t, "GET /api/v1/secrets", "DELETE /api/v1/namespaces/team-b/configmaps/absent")

	r.Scenario("forged names")
	robot := r.Actor(t, "robot, says the webhook", "webhook-token", r.Bearer(forged)).Found(t, "sa-no-credential-id", "sa-uid-mismatch")
	robot.By("rbac").May(t, "POST /api/v1/namespaces/team-b/configmaps {}")
	r.Actor(t, "no such token", "", r.Bearer("opaque-unknown")).Nobody(t, 401, "GET /version", "GET /api/v1/pods")

	r.Scenario("impersonation")
	olga.As("Impersonate-User", "alice").May(t, "GET /version")
	olga.As("Impersonate-User", "both").Nobody(t, 403, "GET /api/v1/pods")
	r.Admin.As("Impersonate-User", "olga", "Impersonate-Group", "house:ops").By("webhook").May(t,
		"GET /api/v1/namespaces/team-a/configmaps")

	r.Scenario("certificates beside")
	dev := r.Actor(t, "dora", "x509", r.User(t, "dora", "house:dev"))
	dev.By("rbac").May(t, "GET /api/v1/pods")
	dev.By("webhook").MayNot(t, "DELETE /api/v1/namespaces/team-b/pods/p0")
	credentials(t, r, "node-unknown")
	r.Scenario("anonymous")
	anybody := r.Actor(t, "anonymous", "anonymous", r.Anonymous())
	anybody.By("rbac").May(t, "GET /version", "GET /healthz")
	anybody.MayNot(t, "GET /api/v1/pods")
	t.Logf("the webhook was asked %d times", calls.Load())
	judge(t, r.Finish(t))
}
