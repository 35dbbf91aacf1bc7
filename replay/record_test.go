package replay

import (
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
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
		decision Decision
		class    string
	}{
		{"allowed", event.Event{Stage: event.StageResponseComplete, Annotations: noted("allow", "x")}, DecisionAllow, ""},
		{"forbidden", event.Event{Stage: event.StageResponseComplete, Annotations: noted("forbid", "")}, DecisionForbid, ""},
		{"allowed, then panicked", event.Event{Stage: event.StagePanic, Annotations: noted("allow", "")}, DecisionAllow, ""},
		{"arrival", event.Event{Stage: event.StageRequestReceived}, DecisionNone, ClassRequestReceived},
		{"failed login", event.Event{Stage: event.StageResponseStarted, ResponseStatus: status(401, "Unauthorized")}, DecisionNone, ClassUnauthenticated},
		{"bad timeout", event.Event{Stage: event.StageResponseStarted, ResponseStatus: status(400, "invalid timeout specified in the request URL - x")}, DecisionNone, ClassBadTimeout},
		{"a user's own 400 is no bad timeout", event.Event{Stage: event.StageResponseStarted, User: alice, ResponseStatus: status(400, "invalid timeout specified in the request URL - x")}, DecisionNone, ClassNoDecision},
		{"impersonation refused, legacy", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(403, `users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope`)}, DecisionNone, ClassImpersonationDenied},
		{"impersonation refused, constrained", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(403, `pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "d"`)}, DecisionNone, ClassImpersonationDenied},
		{"impersonation of masters", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(403, `groups "system:masters" is forbidden: impersonating the system:masters group is not allowed`)}, DecisionNone, ClassImpersonationDenied},
		{"groups without a user", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"x"}} without impersonating a user name`)}, DecisionNone, ClassImpersonationBad},
		{"groups without a user, redacted", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"x"}, Extra:map[hmac:-9O27xNDD56lxqp64Noktg`)}, DecisionNone, ClassImpersonationBad},
		{"groups without a user, older", event.Event{Stage: event.StageResponseComplete, User: alice,
			ResponseStatus: status(400, `requested [{Group    x  }] without impersonating a user`)}, DecisionNone, ClassImpersonationBad},
		{"flow control", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(429, "")}, DecisionNone, ClassTooManyRequests},
		{"unavailable", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(503, "")}, DecisionNone, ClassUnavailable},
		{"authorizer error", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(500, "x"),
			Annotations: event.Pairs{{Key: event.AnnotationReason, Value: "internal error"}}}, DecisionError, ClassAuthorizerError},
		{"panic", event.Event{Stage: event.StagePanic, User: alice, ResponseStatus: status(500, "x")}, DecisionNone, ClassPanic},
		{"success without annotations", event.Event{Stage: event.StageResponseComplete, User: alice, ResponseStatus: status(200, "")}, DecisionNone, ClassNoDecision},
		{"nothing", event.Event{Stage: event.StageResponseComplete, User: alice}, DecisionNone, ClassNoDecision},
		{"another decision", event.Event{Stage: event.StageResponseComplete, User: alice, Annotations: noted("deny", "")}, DecisionNone, ClassNoDecision},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := readRecord(&tc.e)
			if got.decision != tc.decision || got.class != tc.class {
				t.Fatalf("got %s %q (%s), want %s %q", got.decision, got.class, got.cause, tc.decision, tc.class)
			}
			if tc.class != "" && (got.cause == "" || Explain(tc.class) == "") {
				t.Fatalf("class %q: cause %q, explanation %q", tc.class, got.cause, Explain(tc.class))
			}
		})
	}
}

func TestParseReason(t *testing.T) {
	cases := []struct {
		reason string
		want   namedGrant
		ok     bool
	}{
		{`RBAC: allowed by RoleBinding "a/ns" of ClusterRole "r" to User "u"`, namedGrant{"RoleBinding", "ns", "a", "ClusterRole", "r"}, true},
		{`RBAC: allowed by ClusterRoleBinding "system:x" of ClusterRole "quo\"te of \\" to ServiceAccount "s/ns"`, namedGrant{"ClusterRoleBinding", "", "system:x", "ClusterRole", `quo"te of \`}, true},
		{`RBAC: allowed by RoleBinding "a" of Role "r" to User "u"`, namedGrant{}, false},
		{`RBAC: allowed by RoleBinding "a/ns" of Role r to User "u"`, namedGrant{}, false},
		{`RBAC: allowed by `, namedGrant{}, false},
		{``, namedGrant{}, false},
	}
	for _, tc := range cases {
		got, ok := parseReason(tc.reason)
		if ok != tc.ok || (ok && got != tc.want) {
			t.Errorf("%q: got %+v %v, want %+v %v", tc.reason, got, ok, tc.want, tc.ok)
		}
	}
}

func TestClassesAreClosed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Classes() {
		if seen[c.Class] || c.Class == "" || c.Text == "" || c.Outcome == OutcomeMatch {
			t.Errorf("class %+v", c)
		}
		seen[c.Class] = true
	}
	if Explain("no-such-class") != "" {
		t.Error("an unknown class is explained")
	}
}
