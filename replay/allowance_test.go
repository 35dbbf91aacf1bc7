package replay

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// dear returns a state in which whatever mallory asks takes tens of thousands of steps, and what ann
// asks hardly any.
func dear(t testing.TB, given time.Time) *state.State {
	t.Helper()
	s := state.New("c")
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: given, Ended: given, Kinds: kept.Resources()}); err != nil {
		t.Fatal(err)
	}
	add := func(resource, name string, fields map[string]any) {
		fields["metadata"], fields["apiVersion"] = map[string]string{"name": name}, "rbac.authorization.k8s.io/v1"
		fields["kind"] = map[string]string{kept.ClusterRoles: "ClusterRole", kept.ClusterRoleBindings: "ClusterRoleBinding"}[resource]
		body, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(observe.Observation{Source: observe.SourceAudit, Resource: resource, Name: name, UID: name, ResourceVersion: "10",
			Object: body, NotBefore: given, NotAfter: given})
	}
	rules := make([]rbacv1.PolicyRule, 80_000)
	for i := range rules {
		rules[i] = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{fmt.Sprint("r", i)}}
	}
	for user, rules := range map[string][]rbacv1.PolicyRule{"mallory": rules, "ann": rules[:1]} {
		add(kept.ClusterRoles, user, map[string]any{"rules": rules})
		add(kept.ClusterRoleBindings, user,
			map[string]any{"subjects": []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
				"roleRef": rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}})
	}
	return s
}

// asked returns a request of a user, allowed by the binding of that name.
func asked(given time.Time, user, resource string) *event.Event {
	at := given.Add(time.Hour)
	return &event.Event{AuditID: "1", Stage: event.StageResponseComplete, Verb: "get", RequestURI: "/api/v1/" + resource + "/x",
		User: event.User{Username: user}, RequestReceivedTimestamp: at, StageTimestamp: at, ResponseStatus: &event.Status{Code: 200},
		Annotations: event.Pairs{{Key: event.AnnotationDecision, Value: "allow"},
			{Key: event.AnnotationReason, Value: fmt.Sprintf("RBAC: allowed by ClusterRoleBinding %[1]q of ClusterRole %[1]q to User %[1]q",
				user)}}}
}

// BenchmarkNeighbour judges 38,000 requests, as a large block has them: all of one user, or half of
// them of one whose requests are dear, with an allowance of 1<<24 steps and without.
func BenchmarkNeighbour(b *testing.B) {
	given := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	s, eng := dear(b, given), New(Config{})
	usual, mallory := asked(given, "ann", "r0"), asked(given, "mallory", "r79999")
	for _, c := range []struct {
		name  string
		dear  bool
		steps int64
	}{{"alone", false, 1 << 24}, {"beside/allowance", true, 1 << 24}, {"beside/unbounded", true, 1 << 60}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				a := NewAllowance(c.steps)
				for i := range 38_000 {
					e := usual
					if c.dear && i%2 == 0 {
						e = mallory
					}
					eng.ReplayWithin(a, e, s)
				}
			}
		})
	}
}

// TestAllowance: what is too dear for what is left is indeterminate, and what is not, whoever used
// up the rest, is judged as ever.
func TestAllowance(t *testing.T) {
	given := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	s, eng := dear(t, given), New(Config{})
	ask := func(a *Allowance, user, resource string) *verdict.Verdict {
		return eng.ReplayWithin(a, asked(given, user, resource), s)
	}
	if v := ask(nil, "mallory", "r79999"); v.Outcome != verdict.OutcomeMatch || len(v.Grants) != 1 || v.Grants[0].Rule != 79_999 {
		t.Fatalf("with all the work it takes: %s (%s, %s)", v.Outcome, v.Class, v.Cause)
	}
	const steps = 300_000
	a := NewAllowance(steps)
	judged, costly := 0, 0
	for range 50 {
		switch v := ask(a, "mallory", "r79999"); {
		case v.Outcome == verdict.OutcomeMatch:
			judged++
		case v.Outcome == verdict.OutcomeIndeterminate && v.Class == verdict.ClassCostly && v.Replayed == verdict.DecisionNone &&
			len(v.Grants) == 0 && len(v.Missing) == 1:
			costly++
		default:
			t.Fatalf("%s (%s, %s)", v.Outcome, v.Class, v.Cause)
		}
		if v := ask(a, "ann", "r0"); v.Outcome != verdict.OutcomeMatch {
			t.Fatalf("ann beside mallory: %s (%s, %s)", v.Outcome, v.Class, v.Cause)
		}
	}
	if judged < 2 || costly < 40 {
		t.Errorf("%d judged, %d too costly", judged, costly)
	}
	if left := a.left.Load(); left < -100*leastSteps {
		t.Errorf("%d steps were taken of %d", steps-left, steps)
	}
}
