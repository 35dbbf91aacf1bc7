package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/workload"
)

// delivery is a record and when it is acknowledged.
type delivery struct {
	after  time.Duration
	topic  string
	record stream.Record
	missed int // changes of the layout that the producer has not noticed
}

// simExpected is what a schedule sends.
type simExpected struct {
	deliveries   []delivery
	policyPoison int
}

// produce sends the deliveries at their times.
func (x *simExpected) produce(log *simLog) {
	began := time.Now()
	for _, d := range x.deliveries {
		time.Sleep(d.after - time.Since(began))
		log.appendLate(d.topic, d.record, d.missed)
	}
}

var simBase = time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC) // so that blocks hold two days

// generate draws requests of a few users in two clusters, the policy that grew and shrank
// around them, and an order to deliver all that in which has nothing to do with when it
// happened.
//
// With old, a part of it happened in the three weeks before.
func generate(rng *rand.Rand, events int, settled, old bool) *simExpected {
	x := &simExpected{}
	spread := func(limit time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(limit))) }
	send := func(after time.Duration, topic string, rec stream.Record) {
		if settled && topic == stream.TopicPolicy {
			after = 0
		} else if settled {
			after += 3 * time.Second
		}
		x.deliveries = append(x.deliveries, delivery{after: after, topic: topic, record: rec})
	}
	moment := func() time.Time {
		if old && rng.IntN(4) == 0 {
			return simBase.Add(-spread(21 * 24 * time.Hour))
		}
		return simBase.Add(spread(2 * time.Minute))
	}
	listed := simBase.Add(-time.Hour)
	if old {
		listed = simBase.AddDate(0, 0, -22)
	}
	received := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	clusters := []string{"east", "west"}
	rv := 1000
	for _, cluster := range clusters {
		if rng.IntN(5) == 0 {
			continue // nothing is ever known of it
		}
		at := spread(8 * time.Second)
		if rng.IntN(2) == 0 {
			at = 0
		}
		snap := observe.Snapshot{Began: listed, Ended: listed.Add(time.Second), Kinds: kept.Resources()}
		for i := range 3 {
			rv++
			var only []string
			if i == 2 {
				only = []string{"p1", "p2", "p3"}
			}
			snap.Objects = append(snap.Objects, workload.PodRole(fmt.Sprint("role", i), rv, only...))
		}
		for _, o := range snap.Observations() {
			send(at, stream.TopicPolicy, stream.PolicyRecord(stream.KindObservation, cluster, "import", received, o.Append(nil)))
		}
		for i := range 1 + rng.IntN(6) {
			happened := moment()
			rv++
			create := workload.BindRole(fmt.Sprintf("b%d", i), rv, rng.IntN(3), rng.IntN(4), happened, false)
			after := spread(10 * time.Second)
			send(after, stream.TopicPolicy, streamtest.PolicyEventRecord(cluster, "webhook", "", received, create))
			send(after, stream.TopicEvents, streamtest.EventRecord(cluster, "webhook", "", received, create))
			if rng.IntN(2) == 0 {
				gone := workload.BindRole(fmt.Sprintf("b%d", i), rv, 0, 0, happened.Add(spread(time.Minute)), true)
				send(spread(10*time.Second), stream.TopicPolicy, streamtest.PolicyEventRecord(cluster, "webhook", "", received, gone))
			}
		}
	}
	if rng.IntN(3) == 0 {
		x.policyPoison++
		send(spread(5*time.Second), stream.TopicPolicy, stream.PolicyRecord(stream.KindObservation, "east", "import", received,
			[]byte(`{"v":99}`)))
	}
	for i := range events {
		cluster := clusters[rng.IntN(2)]
		happened := moment()
		stages := workload.Stages(rng.IntN(5))
		user, ns, allow := rng.IntN(4), rng.IntN(3), rng.IntN(2) == 0
		for k, stage := range stages {
			e := requestEvent(i, user, ns, stage, happened, time.Duration(k+1)*time.Millisecond, allow)
			rec := streamtest.EventRecord(cluster, "webhook", "", received, e)
			if rng.IntN(12) == 0 {
				small := *e
				small.RequestObject = nil
				send(spread(10*time.Second), stream.TopicEvents, streamtest.EventRecord(cluster, "import", "", received, &small))
			}
			send(spread(8*time.Second), stream.TopicEvents, rec)
			for rng.IntN(6) == 0 {
				send(spread(12*time.Second), stream.TopicEvents, rec)
			}
		}
		if rng.IntN(25) == 0 {
			bad := stream.Record{Kind: stream.KindEvent, Key: []byte{byte(i)}, Cluster: cluster, Value: []byte("{nope"), Received: received}
			if rng.IntN(2) == 0 {
				bad.Err = stream.ErrCodecVersion
			}
			send(spread(8*time.Second), stream.TopicEvents, bad)
		}
		if rng.IntN(25) == 0 {
			send(spread(8*time.Second), stream.TopicDeadLetter, stream.DeadLetterRecord(event.DeadLetter{Cluster: cluster,
				Reason: "malformed-item", Digest: strconv.Itoa(i)}, received))
		}
	}
	slices.SortStableFunc(x.deliveries, func(a, b delivery) int { return int(a.after - b.after) })
	return x
}

// requestEvent returns a request for a pod.
func requestEvent(i, user, ns int, stage event.Stage, at time.Time, took time.Duration, allow bool) *event.Event {
	return workload.GetPod(fmt.Sprint("id-", i), fmt.Sprint("p", i), user, ns, stage, at, took, allow)
}
