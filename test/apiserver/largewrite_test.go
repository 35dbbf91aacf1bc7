package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/product"
)

// TestLargeBindings: bindings are made with a subject of more than a megabyte, whose events are larger
// than a record may be. What they give is known all the same, found, and concerns nothing but what
// their roles could decide.
func TestLargeBindings(t *testing.T) {
	t.Parallel()
	l := connect(t)
	l.tell(t)
	l.objects.mustPut(t, decode(t, []byte(policy)))
	alice := newPerson(t, l.ledger, "alice", l.User(t, "alice"))
	l.settled(t)
	if _, err := l.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "leases"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind := func(name, role string) {
		t.Helper()
		// Six bytes each in the event, in two bodies, and one in the request.
		body := fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},`+
			`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"%s"},`+
			`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"sleeper"}]}`, name, role, strings.Repeat("<", 1_400_000))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			l.root.host+"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", strings.NewReader(body))
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
		return has("cluster-admin-binding", "critical", "it gives cluster-admin to User sleeper by ClusterRoleBinding door; its "+
			"event was too large") &&
			has("rbac-truncated", "high", "ClusterRoleBinding wide to leases"), fmt.Sprintf("%+v", found)
	})
	var answer struct {
		Subjects []struct{ Kind, Name string }
		Missing  []string
	}
	l.Ask(t, "who-can", url.Values{"cluster": {clusterName}, "verb": {"get"}, "resource": {"secrets"}}, &answer)
	if !slices.ContainsFunc(answer.Subjects, func(s struct{ Kind, Name string }) bool { return s.Name == "sleeper" }) ||
		!slices.Contains(answer.Missing, "ClusterRoleBinding/door") {
		t.Errorf("who-can says %v, missing %v", answer.Subjects, answer.Missing)
	}
}

// TestTruncatedBindings: the apiserver itself cuts the bodies off large events. A binding that was there
// still gives its role alone; a new one leaves every refusal open, which doctor says, and the command that
// it prints ends it.
func TestTruncatedBindings(t *testing.T) {
	t.Parallel()
	in := product.New(t)
	l := &live{Install: in, folder: filepath.Join(in.Dir, "apiserver"), ledger: newLedger("testtruncatedbindings")}
	l.server = in.Serve(t, "127.0.0.1:0")
	l.start(t, webhookAlone, "--audit-webhook-truncate-enabled")
	l.tell(t)
	l.objects.mustPut(t, decode(t, []byte(policy)))
	alice := newPerson(t, l.ledger, "alice", l.User(t, "alice"))
	l.settled(t)
	if _, err := l.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "leases"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	large := func(name string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: "leases"},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: strings.Repeat("x", 200_000)}}}
	}
	bindings := l.admin.RbacV1().ClusterRoleBindings()
	before := large("known")
	before.Subjects[0].Name = "bob"
	if _, err := bindings.Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bindings.Update(t.Context(), large("known"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// open are the verdicts on what alice is refused that are not a match.
	open := func() (about []string) {
		t.Helper()
		for range 20 {
			alice.mayNot(t, "GET /api/v1/namespaces/team-b/secrets")
		}
		l.arrived(t)
		var drift struct {
			Groups []struct{ Verdict, About string }
		}
		l.Ask(t, "drift", url.Values{"cluster": {clusterName}}, &drift)
		for _, g := range drift.Groups {
			about = append(about, g.Verdict+" "+g.About)
		}
		return about
	}
	doctor := func() (said string) {
		t.Helper()
		var answer struct {
			Checks []struct{ ID, State, Text, Todo string }
		}
		l.Ask(t, "doctor", url.Values{"cluster": {clusterName}}, &answer)
		for _, c := range answer.Checks {
			if c.ID == "policy-known" {
				said += c.State + ": " + c.Text + " " + c.Todo + "\n"
			}
		}
		return said
	}
	if about := open(); len(about) > 0 {
		t.Errorf("after a binding that was there: %q", about)
	}
	if said := doctor(); !strings.HasPrefix(said, "warn: ") || !strings.Contains(said, "ClusterRoleBinding known (") {
		t.Errorf("doctor says %q", said)
	}
	if _, err := bindings.Create(t.Context(), large("blind"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if about := open(); len(about) != 1 || !strings.Contains(about[0], "indeterminate") || !strings.Contains(about[0],
		"ClusterRoleBinding blind") {
		t.Errorf("after a new binding: %q", about)
	}
	if said := doctor(); !strings.HasPrefix(said, "fail: ") || !strings.Contains(said, "ClusterRoleBinding blind (") ||
		!strings.Contains(said, "retrial import --cluster "+clusterName+" --state state.json") {
		t.Errorf("doctor says %q", said)
	}
	l.tell(t)
	l.settled(t)
	if said := doctor(); said != "ok: Every role and binding is known. \n" {
		t.Errorf("after a listing doctor says %q", said)
	}
}
