package replay

import (
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

func TestReadRecord(t *testing.T) {
	noted := func(decision, reason string) event.Pairs {
		return event.Pairs{{Key: event.AnnotationDecision, Value: decision}, {Key: event.AnnotationReason, Value: reason}}
	}
	status := func(code int32, message string) *event.Status { return &event.Status{Code: code, Message: message} }
	alice := event.User{Username: "alice"}
	cases := []struct {
		name     string
		e        event.Event
		decision verdict.Decision
		class    string
	}{
		{"allowed", event.Event{Stage: event.StageResponseComplete, Annotations: noted("allow", "x")}, verdict.DecisionAllow, ""},
		{"forbidden", event.Event{Stage: event.StageResponseComplete, Annotations: noted("forbid", "")}, verdict.DecisionForbid, ""},
		{"allowed, then panicked", event.Event{Stage: event.StagePanic, Annotations: noted("allow", "")}, verdict.DecisionAllow, ""},
		{"arrival", event.Event{Stage: event.StageRequestReceived}, verdict.DecisionNone, verdict.ClassRequestReceived},
		{"failed login", event.Event{Stage: event.StageResponseStarted, ResponseStatus: status(401, "Unauthorized")}, verdict.DecisionNone,
			verdict.ClassUnauthenticated},
		{"bad timeout", event.Event{Stage: event.StageResponseStarted, ResponseStatus: status(400,
			"invalid timeout specified in the request URL - x")}, verdict.DecisionNone, verdict.ClassBadTimeout},
		{"a user's own 400 is not a bad timeout", event.Event{Stage: event.StageResponseStarted, User: alice, ResponseStatus: status(400,
			"invalid timeout specified in the request URL - x")}, verdict.DecisionNone, verdict.ClassNoDecision},
		{"impersonation refused, legacy", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(403, `users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at `+
				`the cluster scope`)}, verdict.DecisionNone, verdict.ClassImpersonationDenied},
		{"impersonation refused, constrained", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(403, `pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API `+
				`group "" in the namespace "d"`)}, verdict.DecisionNone, verdict.ClassImpersonationDenied},
		{"impersonation of masters", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(403, `groups "system:masters" is forbidden: impersonating the system:masters group is not allowed`)},
			verdict.DecisionNone, verdict.ClassImpersonationDenied},
		{"groups without a user", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"x"}} without impersonating a user `+
				`name`)}, verdict.DecisionNone, verdict.ClassImpersonationBad},
		{"groups without a user, redacted", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"x"}, `+
				`Extra:map[hmac:-9O27xNDD56lxqp64Noktg`)}, verdict.DecisionNone, verdict.ClassImpersonationBad},
		{"groups without a user, older", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(400, `requested [{Group    x  }] without impersonating a user`)}, verdict.DecisionNone,
			verdict.ClassImpersonationBad},
		{"flow control", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(429, "")},
			verdict.DecisionNone, verdict.ClassTooManyRequests},
		{"unavailable", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(503, "")}, verdict.DecisionNone,
			verdict.ClassUnavailable},
		{"authorizer error", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(500, "x"),
			Annotations: event.Pairs{{Key: event.AnnotationReason, Value: "internal error"}}}, verdict.DecisionError,
			verdict.ClassAuthorizerError},
		{"panic", event.Event{Stage: event.StagePanic, User: alice, ResponseStatus: status(500, "x")}, verdict.DecisionNone,
			verdict.ClassPanic},
		{"success without annotations", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(200, "")},
			verdict.DecisionNone, verdict.ClassNoDecision},
		{"nothing", event.Event{Stage: event.StageResponseComplete, User: alice}, verdict.DecisionNone, verdict.ClassNoDecision},
		{"another decision", event.Event{Stage: event.StageResponseComplete, User: alice, Annotations: noted("deny", "")},
			verdict.DecisionNone, verdict.ClassNoDecision},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := readRecord(&tc.e)
			if got.decision != tc.decision || got.class != tc.class {
				t.Fatalf("got %s %q (%s), want %s %q", got.decision, got.class, got.cause, tc.decision, tc.class)
			}
			if tc.class != "" && (got.cause == "" || verdict.Explain(tc.class) == "") {
				t.Fatalf("class %q: cause %q, explanation %q", tc.class, got.cause, verdict.Explain(tc.class))
			}
		})
	}
}
