package replay

import (
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// TestForgotten: a request from before what a state remembers is never judged by the policy at
// the horizon, which may be another one than that of its time.
func TestForgotten(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	given, horizon := begin.Add(2*time.Hour), begin.Add(10*time.Hour)
	s := state.New("c")
	object := func(resource, kind, body string) observe.Observation {
		return observe.Observation{Source: observe.SourceAudit, Resource: resource, Name: "x", UID: "x", ResourceVersion: "10",
			Object:    []byte(`{"kind":"` + kind + `","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"x"},` + body + `}`),
			NotBefore: given, NotAfter: given}
	}
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: begin, Ended: begin, Kinds: kept.Resources()}); err != nil {
		t.Fatal(err)
	}
	s.Apply(
		object(kept.ClusterRoles, "ClusterRole", `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`),
		object(kept.ClusterRoleBindings, "ClusterRoleBinding", `"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io",`+
			`"name":"ann"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"}`),
	)
	eng := New(Config{})
	const reason = `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "x" to User "ann"`
	request := func(at time.Time, user, group, decision, reason string) *event.Event {
		return &event.Event{AuditID: "1", Stage: event.StageResponseComplete, Verb: "get", RequestURI: "/api/v1/namespaces/n/pods/p",
			User: event.User{Username: user, Groups: []string{group}}, RequestReceivedTimestamp: at,
			StageTimestamp: at.Add(time.Millisecond),
			ResponseStatus: &event.Status{Code: 200},
			Annotations:    event.Pairs{{Key: event.AnnotationDecision, Value: decision}, {Key: event.AnnotationReason, Value: reason}}}
	}
	cases := []struct {
		name          string
		e             *event.Event
		before, after verdict.Outcome
		kept          bool
	}{
		{"refused before the binding was there", request(given.Add(-time.Hour), "ann", "g", "forbid", ""), verdict.OutcomeMatch,
			verdict.OutcomeIndeterminate, false},
		{"allowed before the binding was there", request(given.Add(-time.Hour), "ann", "g", "allow", reason), verdict.OutcomeDrift,
			verdict.OutcomeIndeterminate, false},
		{"allowed before the horizon", request(given.Add(time.Hour), "ann", "g", "allow", reason), verdict.OutcomeMatch,
			verdict.OutcomeIndeterminate, false},
		{"right after the horizon, what is asked reaches behind it", request(horizon.Add(time.Minute), "ann", "g", "allow", reason),
			verdict.OutcomeMatch, verdict.OutcomeIndeterminate, false},
		{"needs no policy", request(given, "root", "system:masters", "allow", ""), verdict.OutcomeMatch, verdict.OutcomeMatch, false},
		{"after the horizon", request(horizon.Add(reach), "ann", "g", "allow", reason), verdict.OutcomeMatch, verdict.OutcomeMatch, true},
		{"refused after the horizon", request(horizon.Add(reach), "bob", "g", "forbid", ""), verdict.OutcomeMatch,
			verdict.OutcomeMatch, true},
	}
	for _, tc := range cases {
		if v := eng.Replay(tc.e, s); v.Outcome != tc.before || v.Cause == Forgotten {
			t.Errorf("%s: %s (%s, %s) while all is kept, want %s", tc.name, v.Outcome, v.Class, v.Cause, tc.before)
		}
	}
	if n := s.Prune(horizon); n != 0 {
		t.Errorf("%d versions dropped, want none: all are still in force", n)
	}
	for _, tc := range cases {
		if kept := Kept(s, tc.e.RequestReceivedTimestamp); kept != tc.kept {
			t.Errorf("%s: kept %v", tc.name, kept)
		}
		v := eng.Replay(tc.e, s)
		if v.Outcome != tc.after {
			t.Errorf("%s: %s (%s, %s) after that was forgotten, want %s", tc.name, v.Outcome, v.Class, v.Cause, tc.after)
		}
		if v.Outcome == verdict.OutcomeIndeterminate && (v.Class != verdict.ClassNoState || v.Cause != Forgotten) {
			t.Errorf("%s: class %s, cause %q", tc.name, v.Class, v.Cause)
		}
		if d := eng.DecideAt(tc.e, s, tc.e.RequestReceivedTimestamp); !tc.kept && tc.after == verdict.OutcomeIndeterminate &&
			d.Replayed != verdict.DecisionNone {
			t.Errorf("%s: decided anew as %s", tc.name, d.Replayed)
		}
	}
}
