package replay

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// scenarioState returns the conformance state after a binding written at 11:00:00.010, answered at
// 11:00:00.020.
func scenarioState(t *testing.T) *state.State {
	t.Helper()
	s := state.New("explain")
	snap, _, err := observe.ReadSnapshot(strings.NewReader(jsonList(t, []byte(conformanceState))))
	if err != nil {
		t.Fatal(err)
	}
	snap.Kinds = listedKinds(snap.Objects)
	snap.Began, snap.Ended = clock(t, "10:00:00"), clock(t, "10:00:00")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	s.Apply(observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoleBindings, Name: "late", UID: "late",
		ResourceVersion: "900", Created: true,
		Object: []byte(`{"metadata":{"name":"late","uid":"late","resourceVersion":"900","creationTimestamp":"2026-05-04T11:00:00Z"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"podread"},` +
			`"subjects":[{"kind":"User","name":"zoe"}]}`),
		NotBefore: clock(t, "11:00:00.01"), NotAfter: clock(t, "11:00:00.02")})
	return s
}

func TestExplainDeny(t *testing.T) {
	s := scenarioState(t)
	st := step{At: "11:00:00", User: "erin", Verb: "delete", URI: "/api/v1/namespaces/default/endpoints/x", Decision: "allow"}
	d := New(Config{}).ExplainDeny(st.event(t), s, clock(t, "11:30:00"), 3)
	if d.Verdict.Replayed != verdict.DecisionForbid || d.Verdict.Recorded != verdict.DecisionNone || len(d.Chain) != 3 ||
		d.Chain[2].RBAC == nil {
		t.Fatalf("%s, chain %+v", d.Verdict.Replayed, d.Chain)
	}
	if almost := d.Chain[2].RBAC.Almost; len(almost) == 0 || almost[0].Lack.String() != "verb" || almost[0].Binding() != "edges" {
		t.Errorf("nearest misses %+v", almost)
	}
	st.URI = "/api/v1/watch"
	if d := New(Config{}).ExplainDeny(st.event(t), s, clock(t, "11:30:00"), 3); d.Chain != nil || d.Verdict == nil {
		t.Errorf("a request that is none: %+v", d)
	}
}
