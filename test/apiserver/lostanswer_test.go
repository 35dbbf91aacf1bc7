package apiserver

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// TestLostAnswers: bindings to cluster-admin are made with so short a timeout that nobody is told of
// them; some are made all the same, sixteen of them without any answer in the log. Each is a critical
// finding before its first use, and who-can says that it may be there; nothing that others were refused
// becomes uncertain, and nothing drifts.
func TestLostAnswers(t *testing.T) {
	l := connect(t)
	l.tell(t)
	l.objects.mustPut(t, decode(t, []byte(policy)))
	alice := newPerson(t, l.ledger, "alice", l.User(t, "alice"))
	l.settled(t)
	// Half of those that nobody was told of are answered in the log, so more than sixteen are made.
	lost := map[string]bool{}
	for tried := 0; len(lost) < 3*dormant; tried += 200 {
		if tried == 4000 {
			t.Fatalf("of %d bindings the apiserver told of all but %d: too few to go on with", tried, len(lost))
		}
		maps.Copy(lost, l.untold(t, tried, tried+200))
	}
	t.Logf("%d bindings nobody was told of are there", len(lost))
	for range 50 {
		alice.mayNot(t, "GET /api/v1/namespaces/team-b/secrets")
	}
	l.arrived(t)

	said := 0
	controlplane.Poll(t, "a critical finding of each", func(context.Context) (bool, string) {
		found := l.findings(t)
		said = 0
		for name := range lost {
			if !slices.ContainsFunc(found, func(f finding) bool {
				return f.Rule == "cluster-admin-binding" && f.Severity == "critical" &&
					strings.HasPrefix(after(f.Text, " by ClusterRoleBinding ")+";", name+";")
			}) {
				return false, fmt.Sprintf("none of %s among %d", name, len(found))
			}
			if slices.ContainsFunc(found, func(f finding) bool {
				return strings.HasSuffix(f.Text, " by ClusterRoleBinding "+name+"; its answer was lost, and it may have been done")
			}) {
				said++ // the log has an answer to some that their client did not hear
			}
		}
		return true, ""
	})
	if t.Logf("of %d the log has no answer", said); said < dormant {
		t.Errorf("%d findings say that the answer was lost, want %d", said, dormant)
	}
	var answer struct {
		Subjects []struct{ Kind, Name string }
		Missing  []string
	}
	l.Ask(t, "who-can", url.Values{"cluster": {clusterName}, "verb": {"get"}, "resource": {"secrets"}}, &answer)
	for name := range lost {
		sleeper := "sleeper-" + strings.TrimPrefix(name, "dormant-")
		if !slices.Contains(answer.Missing, "ClusterRoleBinding/"+name) && !slices.ContainsFunc(answer.Subjects,
			func(s struct{ Kind, Name string }) bool { return s.Name == sleeper }) {
			t.Errorf("who-can names neither %s nor %s: %v", sleeper, name, answer.Missing)
		}
	}
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
}

// dormant is how many bindings without an answer in the log must be found.
const dormant = 16

// untold makes bindings to cluster-admin, numbered from one number to another, and returns the names of
// those that are there though their client was not told.
func (l *live) untold(t *testing.T, from, to int) map[string]bool {
	t.Helper()
	lost := map[string]bool{}
	for i := from; i < to; i++ {
		name := fmt.Sprintf("dormant-%d", i)
		body := fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",`+
			`"name":"cluster-admin"},`+
			`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"sleeper-%d"}]}`, name, i)
		uri := fmt.Sprintf("%s/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?timeout=%dus", l.root.host, 500+i%16*150)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, uri, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := l.root.client.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		lost[name] = err != nil || res.StatusCode >= 500
	}
	there, err := l.admin.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(lost, func(name string, lost bool) bool {
		return !lost || !slices.ContainsFunc(there.Items, func(b rbacv1.ClusterRoleBinding) bool { return b.Name == name })
	})
	return lost
}

// after returns what stands behind a text, "" without it.
func after(s, text string) string {
	_, rest, _ := strings.Cut(s, text)
	return rest
}
