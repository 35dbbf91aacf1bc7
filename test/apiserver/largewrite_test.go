package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// TestLargeBindings: bindings are made with a subject of more than a megabyte, whose events are larger
// than a record may be. What they give is known all the same, found, and concerns nothing but what
// their roles could decide.
func TestLargeBindings(t *testing.T) {
	l := connect(t)
	l.tell(t)
	l.objects.mustPut(t, decode(t, []byte(policy)))
	alice := newPerson(t, l.ledger, "alice", l.User(t, "alice"))
	l.settled(t)
	if _, err := l.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "leases"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind := func(name, role string) {
		t.Helper()
		// Six bytes each in the event, in two bodies, and one in the request.
		body := fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"%s"},`+
			`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"sleeper"}]}`, name, role, strings.Repeat("<", 1_400_000))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.root.host+"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := l.root.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != http.StatusCreated {
			t.Fatalf("binding %s: %s", name, res.Status)
		}
	}
	bind("wide", "leases")
	for range 50 {
		alice.mayNot(t, "GET /api/v1/namespaces/team-b/secrets")
	}
	l.arrived(t)
	var drift struct {
		Requests, Judged int64
		Groups           []struct{ Verdict, Class, Text string }
	}
	l.Ask(t, "drift", url.Values{"cluster": {clusterName}}, &drift)
	for _, g := range drift.Groups {
		t.Errorf("%s %s: %s", g.Verdict, g.Class, g.Text)
	}
	if drift.Judged < 50 {
		t.Errorf("%d requests were judged", drift.Judged)
	}

	bind("door", "cluster-admin")
	l.arrived(t)
	controlplane.Poll(t, "the findings", func(context.Context) (bool, string) {
		found := l.findings(t)
		has := func(rule, severity, text string) bool {
			return slices.ContainsFunc(found, func(f finding) bool {
				return f.Rule == rule && f.Severity == severity && strings.Contains(f.Text, text)
			})
		}
		return has("cluster-admin-binding", "critical", "it gives cluster-admin to User sleeper by ClusterRoleBinding door; its event was too large") &&
			has("rbac-truncated", "high", "ClusterRoleBinding wide to leases"), fmt.Sprintf("%+v", found)
	})
	var answer struct {
		Subjects []struct{ Kind, Name string }
		Missing  []string
	}
	l.Ask(t, "who-can", url.Values{"cluster": {clusterName}, "verb": {"get"}, "resource": {"secrets"}}, &answer)
	if !slices.ContainsFunc(answer.Subjects, func(s struct{ Kind, Name string }) bool { return s.Name == "sleeper" }) || !slices.Contains(answer.Missing, "ClusterRoleBinding/door") {
		t.Errorf("who-can says %v, missing %v", answer.Subjects, answer.Missing)
	}
}
