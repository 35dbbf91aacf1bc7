package state_test

import (
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// A log may hold any year from 0 to 9999; nanoseconds since 1970 hold three centuries on
// either side. Times beyond them keep their place in the order.
func TestTimesBeyondNanoseconds(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	written := func(name string, at time.Time) observe.Observation {
		return observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: name, UID: name, ResourceVersion: "7",
			NotBefore: at, NotAfter: at.Add(time.Millisecond),
			Object: []byte(`{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + name +
				`","creationTimestamp":"` + at.Format(time.RFC3339) + `"}}`)}
	}
	s := state.New("c")
	s.Apply(written("now", at), written("later", far))
	for _, tc := range []struct {
		name   string
		object string
		at     time.Time
		there  bool
	}{
		{name: "in the year 2, before every write", object: "now", at: time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC)},
		{name: "between", object: "now", at: at.Add(time.Hour), there: true},
		{name: "between, what comes later", object: "later", at: at.Add(time.Hour)},
		{name: "in the year 9999", object: "now", at: far, there: true},
		{name: "after everything", object: "later", at: far.Add(time.Hour), there: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, known := s.Version(kept.ClusterRoles, "", tc.object, tc.at)
			if (known == state.Present) != tc.there {
				t.Errorf("%s is %s", tc.object, known)
			}
		})
	}
}
