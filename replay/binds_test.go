package replay

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// TestBinds: what a patch of a binding does not say is what the replica knows of the binding: its role, those
// that it may name where answers were lost, any where nobody knows.
func TestBinds(t *testing.T) {
	const uri = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	at := noon.Add(-time.Hour)
	binding := func(name, role string) []byte {
		return []byte(`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + name +
			`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"` + role + `"}}`)
	}
	write := func(verb, uri string, code int32, body []byte) *event.Event {
		var o struct{ Metadata struct{ Name string } }
		_ = json.Unmarshal(body, &o) // as an apiserver completes objectRef
		at = at.Add(time.Second)
		return &event.Event{Level: event.LevelRequest, Stage: event.StageResponseComplete, AuditID: "a", Verb: verb, RequestURI: uri,
			RequestObject: body,
			User:          event.User{Username: "jane"}, ObjectRef: &event.ObjectRef{Name: o.Metadata.Name},
			ResponseStatus:           &event.Status{Code: code},
			RequestReceivedTimestamp: at, StageTimestamp: at.Add(time.Millisecond)}
	}
	s := state.New("c")
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: at, Ended: at, Kinds: kept.Resources()}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*event.Event{
		write("create", uri, 201, binding("known", "cluster-admin")),
		write("create", uri, 504, binding("perhaps", "view")),
		write("create", uri, 504, binding("perhaps", "cluster-admin")),
	} {
		obs, err := observe.FromEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(obs...)
	}
	eng := New(Config{})
	patch := []byte(`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}]}`)
	for _, c := range []struct {
		e    *event.Event
		s    *state.State
		want []string
	}{
		{write("patch", uri+"/known", 504, patch), s, []string{"ClusterRole/cluster-admin"}},
		{write("update", uri+"/known", 200, nil), s, []string{"ClusterRole/cluster-admin"}},
		{write("patch", uri+"/perhaps", 504, patch), s, []string{"ClusterRole/cluster-admin", "ClusterRole/view"}},
		{write("patch", uri+"/absent", 504, patch), s, nil},
		{write("patch", uri+"/known", 504, patch), nil, []string{verdict.BindsAny}},
		{write("patch", uri+"/known", 504, patch), state.New("d"), []string{verdict.BindsAny}},
		{write("create", uri, 504, nil), s, []string{verdict.BindsAny}},
		{write("create", uri, 504, binding("new", "view")), s, nil},
		{write("get", uri+"/known", 200, nil), s, nil},
		{write("patch", "/apis/rbac.authorization.k8s.io/v1/clusterroles/known", 504, patch), s, nil},
		{write("patch", "/api/v1/namespaces/a/pods/known", 504, patch), s, nil},
	} {
		got := eng.Replay(c.e, c.s).Binds
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.e.Verb, c.e.RequestURI, got, c.want)
		}
	}
}
