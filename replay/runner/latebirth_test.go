package runner

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
)

// That a cluster was made in the log becomes known last: its kube-system's creation came late,
// after a listing. From then on the log of issued tokens is known to be complete, and a token
// that is not in it was not issued: verdicts of whoever came with one change, however long
// after the listing.
func TestLateBirthOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateBinding(1)
		received := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
		policy := func(e *event.Event) {
			e.Stage, e.Level, e.Verb, e.ResponseStatus = event.StageResponseComplete, event.LevelRequestResponse, "create",
				&event.Status{Code: 201}
			e.User, e.StageTimestamp = event.User{Username: "admin", Groups: []string{"system:masters"}}, e.RequestReceivedTimestamp
			w.log.append(stream.TopicPolicy, streamtest.PolicyEventRecord("east", "webhook", "", received, e))
		}
		issued := event.Pairs{{Key: "authentication.kubernetes.io/issued-credential-id", Value: "JTI=known"}}
		policy(&event.Event{AuditID: "issue", RequestURI: "/api/v1/namespaces/ns1/serviceaccounts/robot/token",
			RequestReceivedTimestamp: simBase, Annotations: issued})
		for i := range 20 {
			e := requestEvent(1000+i, 1, 1, event.StageResponseComplete, simBase.Add(time.Duration(i)*time.Minute), time.Millisecond, false)
			e.User = event.User{Username: "system:serviceaccount:ns1:robot", Groups: []string{"system:serviceaccounts",
				"system:serviceaccounts:ns1", "system:authenticated"},
				Extra: event.Extra{{Key: "authentication.kubernetes.io/credential-id",
					Values: []string{[]string{"JTI=known", "JTI=unheard-of"}[i%2]}}}}
			w.log.append(stream.TopicEvents, streamtest.EventRecord("east", "webhook", "", received, e))
		}
		w.drain(t, 1, 0)
		unissued := func() (n int) {
			for _, row := range w.rows.standing() {
				if v := row.Verdict; v != nil && strings.Contains(fmt.Sprint(v.Identity), "jti-unissued") {
					n++
				}
			}
			return n
		}
		if n := unissued(); n != 0 {
			t.Fatalf("%d tokens were not issued, of a cluster whose beginning is not known", n)
		}
		policy(&event.Event{AuditID: "birth", RequestURI: "/api/v1/namespaces", RequestReceivedTimestamp: simBase.Add(-24 * time.Hour),
			ResponseObject: []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"birth",` +
				`"resourceVersion":"2","creationTimestamp":"2026-03-01T00:00:00Z"},"status":{"phase":"Active"}}`)})
		w.drain(t, 2, 0)
		if n := unissued(); n != 10 {
			t.Errorf("%d tokens were not issued, want 10", n)
		}
		if v := w.check(); len(v) > 0 {
			t.Error(strings.Join(v, "\n"))
		}
	})
}
