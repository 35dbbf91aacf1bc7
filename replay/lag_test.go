package replay

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// TestBehind: a binding is deleted; requests that were allowed after that show by how much the
// apiserver was late.
func TestBehind(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	gone := begin.Add(time.Minute) // answered
	s := state.New("c")
	object := func(resource, kind, name, body string) observe.Observation {
		return observe.Observation{Source: observe.SourceSnapshot, Resource: resource, Name: name, UID: name, ResourceVersion: "10",
			Object: []byte(`{"kind":"` + kind + `","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + name +
				`"},` + body + `}`)}
	}
	snap := observe.Snapshot{Began: begin.Add(-time.Hour), Ended: begin.Add(-time.Hour), Kinds: kept.Resources(),
		Objects: []observe.Observation{
			object(kept.ClusterRoles, "ClusterRole", "r", `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`),
			object(kept.ClusterRoleBindings, "ClusterRoleBinding", "b",
				`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}],`+
					`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}`),
		}}
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	s.Apply(observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoleBindings, Name: "b", UID: "b", Deleted: true,
		NotBefore: gone.Add(-3 * time.Millisecond), NotAfter: gone})
	eng := New(Config{})
	const reason = `RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "ann"`
	for _, tc := range []struct {
		name             string
		after            time.Duration
		decision, reason string
		want             time.Duration
		ok               bool
	}{
		{"allowed 40 ms after", 40 * time.Millisecond, "allow", reason, 40 * time.Millisecond, true},
		{"allowed long after what is assumed", 3 * time.Second, "allow", reason, 3 * time.Second, true},
		{"allowed too long after", MaxLag + time.Second, "allow", reason, 0, false},
		{"refused", 40 * time.Millisecond, "forbid", "", 0, false},
		{"allowed for a reason no policy gives", 40 * time.Millisecond, "allow", `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole ` +
			`"r" to User "ann"`, 0, false},
		{"allowed before", -time.Second, "allow", reason, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &event.Event{AuditID: "1", Stage: event.StageResponseComplete, Verb: "get", RequestURI: "/api/v1/namespaces/n/pods/p",
				User: event.User{Username: "ann"}, RequestReceivedTimestamp: gone.Add(tc.after),
				StageTimestamp: gone.Add(tc.after + time.Millisecond),
				ResponseStatus: &event.Status{Code: 200},
				Annotations: event.Pairs{{Key: event.AnnotationDecision, Value: tc.decision}, {Key: event.AnnotationReason,
					Value: tc.reason}}}
			v := eng.Replay(e, s)
			got, ok := eng.Behind(e, s, v)
			if got != tc.want || ok != tc.ok {
				t.Errorf("%s (%s): behind %s, %v; want %s, %v", v.Outcome, v.Class, got, ok, tc.want, tc.ok)
			}
		})
	}
}

// TestLags: what is learnt takes three witnesses, is bounded, and does not depend on the order.
func TestLags(t *testing.T) {
	ms := time.Millisecond
	for _, tc := range []struct {
		seen []time.Duration
		want Lag
	}{
		{[]time.Duration{40 * ms}, Lag{Cluster: "c", Server: "a", Requests: 1, Longest: 40 * ms}},
		{[]time.Duration{40 * ms, 4 * time.Second}, Lag{Cluster: "c", Server: "a", Requests: 2, Longest: 4 * time.Second}},
		{[]time.Duration{40 * ms, 4 * time.Second, 300 * ms, 20 * ms}, Lag{Cluster: "c", Server: "a", Requests: 4, Longest: 4 * time.Second,
			Learnt: 40 * ms}},
		{[]time.Duration{ms, 2 * ms, 3 * ms}, Lag{Cluster: "c", Server: "a", Requests: 3, Longest: 3 * ms, Learnt: MinLag}},
		{[]time.Duration{time.Hour, time.Hour, time.Hour}, Lag{Cluster: "c", Server: "a", Requests: 3, Longest: time.Hour, Learnt: MaxLag}},
		{[]time.Duration{70 * ms, 70 * ms, 70 * ms, 60 * ms}, Lag{Cluster: "c", Server: "a", Requests: 4, Longest: 70 * ms,
			Learnt: 70 * ms}},
	} {
		t.Run(fmt.Sprint(tc.seen), func(t *testing.T) {
			for range 20 {
				var l Lags
				l.Observe("b", "", time.Second)
				for _, i := range rand.Perm(len(tc.seen)) {
					l.Observe("c", "a", tc.seen[i])
				}
				if got := l.All(); len(got) != 2 || !reflect.DeepEqual(got[1], tc.want) {
					t.Fatalf("learnt %+v, want %+v", got, tc.want)
				}
			}
		})
	}
}
