package apiserver

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sayConnected: connect, which has waited all the time, across a restart of the server, told
// each step and ended. Run again, it keeps what there is and finds every step done; so does
// doctor.
func (l *live) sayConnected(t *testing.T) {
	l.waiting.Done(t)
	_, told, _ := strings.Cut(l.waiting.Output(), "\nWaiting for")
	if !strings.Contains(told, clusterName+" is connected.") {
		t.Errorf("connect ended without a word:\n%s", told)
	}
	t.Logf("connect, while it waited:%s", told)
	receiver, err := url.Parse(l.server.Webhook)
	if err != nil {
		t.Fatal(err)
	}
	before := readLines(t, l.folder+"/webhook.kubeconfig")
	text := l.Do(t, append([]string{"connect", clusterName, "--advertise-address", receiver.Host, "--output", l.folder, "--timeout", "3m"},
		webhookAlone...)...).Out
	if !slices.Equal(printedFlags(t, text), l.printed) {
		t.Errorf("connect prints other flags the second time:\n%s", text)
	}
	if !slices.Equal(readLines(t, l.folder+"/webhook.kubeconfig"), before) {
		t.Error("connect issued another credential to a cluster that has one")
	}
	var connection struct {
		Steps []struct{ ID, State, Text string }
	}
	l.Ask(t, "connection", url.Values{"cluster": {clusterName}}, &connection)
	if len(connection.Steps) == 0 {
		t.Error("no steps")
	}
	for _, s := range connection.Steps {
		if s.State != "done" && s.ID != "followed" && s.ID != "counted" { // they were declined
			t.Errorf("step %s is %s: %s", s.ID, s.State, s.Text)
		}
	}
	t.Logf("doctor:\n%s", l.Do(t, "doctor", clusterName).Out)
}

// whoCan: the product and the apiserver's own access review agree on who may do what.
func (l *live) whoCan(t *testing.T) {
	type someone struct {
		kind, name, namespace string
		user                  string
		groups                []string
	}
	people := []someone{
		{kind: "User", name: "alice", user: "alice"}, {kind: "User", name: "carol", user: "carol"}, {kind: "User", name: "dave",
			user: "dave"},
		{kind: "User", name: "ivan", user: "ivan"}, {kind: "User", name: "erin", user: "erin"}, {kind: "User", name: "mallory",
			user: "mallory"},
		{kind: "Group", name: "org:readers", user: "nobody", groups: []string{"org:readers"}}, {kind: "Group", name: "team:a",
			user: "nobody", groups: []string{"team:a"}},
		{kind: "ServiceAccount", name: "robot", namespace: "team-b", user: "system:serviceaccount:team-b:robot"},
		{kind: "ServiceAccount", name: "retrial-watch", namespace: "retrial", user: "system:serviceaccount:retrial:retrial-watch"},
		{kind: "Group", name: "system:masters", user: "nobody", groups: []string{"system:masters"}},
	}
	yes, no := 0, 0
	for _, q := range []struct {
		resource string // as the product takes it
		a        authorizationv1.ResourceAttributes
	}{
		{"pods", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "team-a"}},
		{"pods", authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "team-b"}},
		{"pods", authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}},
		{"pods/exec", authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "team-a"}},
		{"deployments.apps", authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "team-b"}},
		{"deployments.apps/scale", authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "deployments",
			Subresource: "scale", Namespace: "team-b"}},
		{"secrets", authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "team-b", Name: "registry"}},
		{"secrets", authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "team-b", Name: "other"}},
		{"secrets", authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: "team-b"}},
		{"clusterroles.rbac.authorization.k8s.io", authorizationv1.ResourceAttributes{Verb: "watch", Group: "rbac.authorization.k8s.io",
			Resource: "clusterroles"}},
		{"users", authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: "carol"}},
	} {
		var answer struct {
			Subjects []struct{ Kind, Name, Namespace string }
		}
		l.Ask(t, "who-can", url.Values{"cluster": {clusterName}, "verb": {q.a.Verb}, "resource": {q.resource}, "namespace": {q.a.Namespace},
			"name": {q.a.Name}}, &answer)
		can := map[string]bool{}
		for _, s := range answer.Subjects {
			can[s.Kind+"/"+s.Namespace+"/"+s.Name] = true
		}
		for _, p := range people {
			review, err := l.admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: p.user, Groups: p.groups, ResourceAttributes: &q.a}},
				metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := can[p.kind+"/"+p.namespace+"/"+p.name]; got != review.Status.Allowed {
				t.Errorf("%s %s in %q, name %q: %s %s: the product says %v, the apiserver %v (%s)", q.a.Verb, q.resource, q.a.Namespace,
					q.a.Name,
					p.kind, p.name, got, review.Status.Allowed, review.Status.Reason)
			}
			if review.Status.Allowed {
				yes++
			} else {
				no++
			}
		}
	}
	t.Logf("%d questions answered yes, %d no", yes, no)
}

// flushed: an orderly end of the apiserver delivers what it still holds.
func (l *live) flushed(t *testing.T) {
	t.Helper()
	l.root.may(t, "GET /api/v1/namespaces/team-a")
	ours := l.ledger.all()
	l.Apiserver().Stop(t)
	l.Drained(t)
	for _, v := range l.verdicts(t) {
		delete(ours, v.AuditID)
	}
	for id, c := range ours {
		if !unlogged(c) {
			t.Errorf("lost when the apiserver stopped: %s %s %s", id, c.who, c.line)
		}
	}
}
