// Package streamtest makes records as the receiver does, for tests of what reads them.
package streamtest

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// EventRecord returns the record of an event for TopicEvents. received is when the event
// reached Retrial.
func EventRecord(cluster, source, apiserver string, received time.Time, e *event.Event) stream.Record {
	key := event.RequestKey(cluster, e).Bytes()
	r := eventRecord(cluster, source, apiserver, received, e)
	r.Topic, r.Kind, r.Key = stream.TopicEvents, stream.KindEvent, key[:]
	return r
}

// PolicyEventRecord returns the copy of a policy write for TopicPolicy.
func PolicyEventRecord(cluster, source, apiserver string, received time.Time, e *event.Event) stream.Record {
	r := eventRecord(cluster, source, apiserver, received, e)
	r.Topic, r.Kind, r.Key = stream.TopicPolicy, stream.KindPolicyEvent, []byte(cluster)
	return r
}

func eventRecord(cluster, source, apiserver string, received time.Time, e *event.Event) stream.Record {
	value := event.AppendJSON(nil, e)
	return stream.Record{Value: value, Cluster: cluster, Source: source, APIServer: apiserver, Received: received,
		Content: event.Content(value), Bodies: event.BodiesOf(e)}
}
