package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// TestReadsSettleLostAnswers: a request that finds a binding there, or missing, settles what a lost
// answer left open, what finds it as it was only once nothing can come of the write any more.
//
//	create       |-| no answer
//	b            | there or not                    there
//	create again       |-| "already exists" ......|
//	get          too early: |-| not found          after 10 s: |-| not found, absent
func TestReadsSettleLostAnswers(t *testing.T) {
	const (
		uri     = rbacURI + "clusterrolebindings"
		binding = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"},"subjects":[{` +
			`"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}]}`
		asked  = `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b"},` + binding
		stored = `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b","uid":"u1",` +
			`"resourceVersion":"7","creationTimestamp":"2026-01-02T11:00:00Z"},` + binding
	)
	key := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "b"}
	there, missing := `clusterrolebindings.rbac.authorization.k8s.io "b" already exists`,
		`clusterrolebindings.rbac.authorization.k8s.io "b" not found`
	for _, c := range []struct {
		name   string
		before string // the binding, where there was one
		write  string // whose answer is lost
		read   string
		code   int32
		answer string
		after  time.Duration
		want   string
	}{
		{"created, and there already", "", "create", "create", 409, "", 0, "there"},
		{"created, and read at level Metadata", "", "create", "get", 200, "", 0, "there"},
		{"created, and not there yet", "", "create", "get", 404, "", 2 * time.Second, "doubted"},
		{"created, and not there", "", "create", "get", 404, "", 20 * time.Second, "absent"},
		{"deleted, and gone", stored, "delete", "get", 404, "", 20 * time.Second, "absent"},
		{"deleted, and there yet", stored, "delete", "get", 200, "", 2 * time.Second, "doubted"},
		{"deleted, and there", stored, "delete", "get", 200, "", 20 * time.Second, "there"},
		{"deleted, and there yet with its body", stored, "delete", "get", 200, stored, 2 * time.Second, "doubted"},
		{"deleted, and there with its body", stored, "delete", "get", 200, stored, 20 * time.Second, "there"},
		{"another was there", "", "create", "get", 200, stored, 20 * time.Second, "there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := state.New("c")
			at := clock(t, "12:00:00")
			snap := observe.Snapshot{Began: at, Ended: at, Since: at, Kinds: kept.Resources()}
			if c.before != "" {
				snap.Objects = []observe.Observation{{Resource: kept.ClusterRoleBindings, Name: "b", UID: "u1", ResourceVersion: "7",
					Object: []byte(c.before)}}
			}
			if _, err := s.LoadSnapshot(snap); err != nil {
				t.Fatal(err)
			}
			n := 0
			send := func(verb, body, answer string, code int32) {
				n++
				e := &event.Event{Level: event.LevelRequestResponse, Stage: event.StageResponseComplete, AuditID: fmt.Sprint(n),
					Verb: verb, RequestURI: uri, ObjectRef: &event.ObjectRef{Name: "b"},
					RequestReceivedTimestamp: at, StageTimestamp: at.Add(time.Millisecond), RequestObject: []byte(
						body), ResponseObject: []byte(answer), ResponseStatus: &event.Status{Code: code}}
				if verb != "create" {
					e.RequestURI += "/b"
				}
				switch code {
				case 404:
					e.ResponseStatus.Reason, e.ResponseStatus.Message = "NotFound", missing
				case 409:
					e.ResponseStatus.Reason, e.ResponseStatus.Message = "AlreadyExists", there
				}
				apply(t, s, e)
			}
			is := func() string {
				v := s.RBAC(at.Add(time.Second))
				_, found := v.RBAC.Get(key)
				switch {
				case v.IsUnknown(key):
					return "doubted"
				case found:
					return "there"
				}
				return "absent"
			}
			at = at.Add(time.Minute)
			body := ""
			if c.write == "create" {
				body = asked
			}
			send(c.write, body, "", 504)
			if got := is(); got != "doubted" {
				t.Fatalf("%s, though nobody knows the outcome", got)
			}
			at = at.Add(time.Second + c.after)
			body = ""
			if c.read == "create" {
				body = asked
			}
			send(c.read, body, c.answer, c.code)
			if got := is(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
