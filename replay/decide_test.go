package replay

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// TestDecideAt asks about one request at several times of a policy that changes: a binding
// is there from the beginning and deleted at 10:10.
func TestDecideAt(t *testing.T) {
	clock := func(minute int) time.Time { return time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC) }
	st := state.New("c")
	snap := observe.Snapshot{Began: clock(0), Ended: clock(0), Since: clock(0), Kinds: kept.Resources()}
	add := func(resource, name, rest string) {
		n := len(snap.Objects) + 1
		snap.Objects = append(snap.Objects, observe.Observation{Source: observe.SourceSnapshot, Resource: resource, Name: name,
			UID: fmt.Sprint("u", n), ResourceVersion: fmt.Sprint(n),
			Object: []byte(fmt.Sprintf(`{"metadata":{"name":%q,"uid":"u%d","resourceVersion":"%d",`+
				`"creationTimestamp":"2026-03-01T09:00:00Z"},%s}`, name, n, n, rest)),
			NotBefore: clock(0), NotAfter: clock(0)})
	}
	add(kept.ClusterRoles, "reader", `"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]},{"verbs":["impersonate"],`+
		`"apiGroups":[""],"resources":["users"]}]`)
	add(kept.ClusterRoleBindings, "ann", `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},`+
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]`)
	if _, err := st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	st.Apply(observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoleBindings, Name: "ann", UID: "u2", Deleted: true,
		NotBefore: clock(10), NotAfter: clock(10)})

	list := &event.Event{Level: event.LevelMetadata, Stage: event.StageResponseComplete, AuditID: "a",
		RequestURI: "/api/v1/pods", Verb: "list",
		User: event.User{Username: "ann", Groups: []string{"system:authenticated"}}, RequestReceivedTimestamp: clock(5),
		StageTimestamp: clock(5),
		Annotations:    event.Pairs{{Key: event.AnnotationDecision, Value: "forbid"}}} // what it records is not looked at
	acting := *list
	acting.ImpersonatedUser = &event.User{Username: "bob", Groups: []string{"system:authenticated"}}
	eng := New(Config{})
	for name, c := range map[string]struct {
		e      *event.Event
		state  *state.State
		minute int
		want   verdict.Decision
		grants int
		acting verdict.Decision // of the impersonation check
		lacks  bool
	}{
		"while it was bound":       {list, st, 7, verdict.DecisionAllow, 1, verdict.DecisionNone, false},
		"at its own time":          {list, st, 5, verdict.DecisionAllow, 1, verdict.DecisionNone, false},
		"after the binding ended":  {list, st, 20, verdict.DecisionForbid, 0, verdict.DecisionNone, false},
		"before anything is known": {list, st, -120, verdict.DecisionNone, 0, verdict.DecisionNone, true},
		"without a state":          {list, nil, 7, verdict.DecisionNone, 0, verdict.DecisionNone, true},
		"as somebody else":         {&acting, st, 7, verdict.DecisionForbid, 0, verdict.DecisionAllow, false},
		"as somebody else, later":  {&acting, st, 20, verdict.DecisionForbid, 0, verdict.DecisionForbid, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := eng.DecideAt(c.e, c.state, clock(c.minute))
			if v.Replayed != c.want || len(v.Grants) != c.grants || (len(v.Missing) > 0) != c.lacks || v.Recorded != verdict.DecisionNone ||
				v.Attributes.Resource != "pods" {
				t.Errorf("%s by %s, grants %v, missing %v, recorded %s", v.Replayed, v.Authorizer, v.Grants, v.Missing, v.Recorded)
			}
			if c.e.ImpersonatedUser != nil && v.Impersonation.Replayed != c.acting || c.e.ImpersonatedUser == nil &&
				v.Impersonation != nil {
				t.Errorf("impersonation %+v, want %s", v.Impersonation, c.acting)
			}
		})
	}
	if own := eng.Replay(list, st); own.Replayed != eng.DecideAt(list, st, clock(5)).Replayed {
		t.Error("at its own time the decision is another one than the verdict's")
	}
}
