package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// TestBlindness: what is not known of roles and bindings is counted by what could rest on it, and no
// more once a listing shows it.
func TestBlindness(t *testing.T) {
	s := newStates()
	prod := heldState(s, "prod")
	observed := func(o ...observe.Observation) { prod.Apply(o...) }
	count := func(anybody, role string) {
		t.Helper()
		want := `# HELP retrial_runner_unknown_objects Roles and bindings whose content is not known at present, by what could rest on it: any access of anybody, or what one role gives.
# TYPE retrial_runner_unknown_objects gauge
retrial_runner_unknown_objects{cluster="prod",reach="anybody"} ` + anybody + `
retrial_runner_unknown_objects{cluster="prod",reach="role"} ` + role + "\n"
		if err := testutil.CollectAndCompare(newBlindness(s), strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	instant := func(seconds int) time.Time { return time.Date(2026, 3, 2, 0, 0, seconds, 0, time.UTC) }
	at := func(seconds int) observe.Observation {
		return observe.Observation{Source: observe.SourceAudit, NotBefore: instant(seconds), NotAfter: instant(seconds)}
	}
	observed(observe.Born()...)
	count("0", "0")
	binding, role, cut := at(1), at(2), at(3)
	binding.Resource, binding.Name, binding.Unknown, binding.Created = kept.ClusterRoleBindings, "b", true, true
	role.Resource, role.Name, role.Unknown = kept.ClusterRoles, "r", true
	cut.Resource, cut.Namespace, cut.Name, cut.Created = kept.RoleBindings, "n", "c", true
	cut.Object = []byte(`{"cut":true,"metadata":{"name":"c","namespace":"n"},"subjects":[],"roleRef":{"kind":"ClusterRole","name":"r"}}`)
	observed(binding, role, cut)
	count("1", "2")
	snapshot := observe.Snapshot{Began: instant(9), Ended: instant(9), Kinds: kept.Resources()}
	if _, err := prod.LoadSnapshot(snapshot); err != nil {
		t.Fatal(err)
	}
	count("0", "0")
}
