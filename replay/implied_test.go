package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// TestBodyOfRefusedCreate: of a create without a body it is said why there is none: no policy
// can record what the apiserver did not read.
func TestBodyOfRefusedCreate(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	st := state.New("c")
	snap := observe.Snapshot{Began: at, Ended: at, Since: at, Kinds: kept.Resources()}
	for i, o := range []struct{ resource, rest string }{
		{kept.ClusterRoles, `"rules":[{"verbs":["create"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterrolebindings"]}]`},
		{kept.ClusterRoleBindings, `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"},` +
			`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]`},
	} {
		snap.Objects = append(snap.Objects, observe.Observation{Source: observe.SourceSnapshot, Resource: o.resource, Name: "x",
			UID: fmt.Sprint(i), ResourceVersion: fmt.Sprint(i + 1),
			Object:    fmt.Appendf(nil, `{"metadata":{"name":"x","uid":"%d","resourceVersion":"%d"},%s}`, i, i+1, o.rest),
			NotBefore: at, NotAfter: at})
	}
	if _, err := st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		level    event.Level
		decision string
		code     int32
		body     string
		want     string
	}{
		"refused by an authorizer":        {event.LevelRequestResponse, "forbid", 403, "", "the apiserver did not read"},
		"refused, and at Metadata anyhow": {event.LevelMetadata, "forbid", 403, "", "the apiserver did not read"},
		"allowed, without bodies":         {event.LevelMetadata, "allow", 201, "", "the audit policy does not record"},
		"allowed, its body taken off":     {event.LevelRequestResponse, "allow", 201, "", "the event does not hold"},
		"allowed, with a body of its kind": {event.LevelRequestResponse, "allow", 201,
			`{"kind":"ClusterRoleBinding","roleRef":{"kind":"ClusterRole","name":"x"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := New(Config{}).Replay(&event.Event{
				Level: tc.level, Stage: event.StageResponseComplete, AuditID: "a",
				RequestURI: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", Verb: "create",
				User:                     event.User{Username: "ann", Groups: []string{"system:authenticated"}},
				RequestReceivedTimestamp: at.Add(time.Minute), StageTimestamp: at.Add(time.Minute),
				ResponseStatus: &event.Status{Code: tc.code}, RequestObject: []byte(tc.body),
				Annotations: event.Pairs{{Key: event.AnnotationDecision, Value: tc.decision}},
			}, st)
			var missing []string
			for _, c := range v.Implied {
				missing = append(missing, c.Missing...)
			}
			said := slices.ContainsFunc(missing, func(m string) bool { return strings.Contains(m, "body") })
			if said != (tc.want != "") || !strings.Contains(strings.Join(missing, "\n"), tc.want) || len(v.Implied) == 0 {
				t.Errorf("of %d checks %q is lacking, want %q", len(v.Implied), missing, tc.want)
			}
		})
	}
}
