package streamtest

import (
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

func TestConstructors(t *testing.T) {
	at := time.UnixMicro(1700000000123456).UTC()
	e := &event.Event{AuditID: "id", Verb: "create", RequestURI: "/api/v1/namespaces/a/pods", Stage: event.StageResponseComplete,
		RequestReceivedTimestamp: at}
	ev, pol := EventRecord("prod", "webhook", "a1", at, e), PolicyEventRecord("prod", "webhook", "a1", at, e)
	key := event.RequestKey("prod", e).Bytes()
	if ev.Topic != stream.TopicEvents || ev.Kind != stream.KindEvent || string(ev.Key) != string(key[:]) {
		t.Errorf("event record %+v", ev)
	}
	if pol.Topic != stream.TopicPolicy || pol.Kind != stream.KindPolicyEvent || string(pol.Key) != "prod" {
		t.Errorf("policy record %+v", pol)
	}
	if string(ev.Value) != string(event.AppendJSON(nil, e)) || ev.Content != event.Content(ev.Value) || ev.Content != pol.Content {
		t.Errorf("value or content of %+v", ev)
	}
}
