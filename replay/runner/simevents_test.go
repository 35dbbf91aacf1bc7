package runner

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay/state"
)

// delivery is a record and when it is acknowledged.
type delivery struct {
	after  time.Duration
	topic  string
	record stream.Record
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
		log.append(d.topic, d.record)
	}
}

var simBase = time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC) // so that blocks hold two days

// generate draws requests of a few users in two clusters, the policy that grew and shrank
// around them, and an order to deliver all that in which has nothing to do with when it
// happened.
func generate(rng *rand.Rand, events int, settled bool) *simExpected {
	x := &simExpected{}
	spread := func(limit time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(limit))) }
	send := func(after time.Duration, topic string, rec stream.Record) {
		if settled && topic == stream.TopicPolicy {
			after = 0
		} else if settled {
			after += 3 * time.Second
		}
		x.deliveries = append(x.deliveries, delivery{after, topic, rec})
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
		snap := state.Snapshot{Began: simBase.Add(-time.Hour), Ended: simBase.Add(-time.Hour + time.Second), Kinds: state.Resources()}
		for i := range 3 {
			rv++
			snap.Objects = append(snap.Objects, roleObject(fmt.Sprintf("role%d", i), rv, i))
		}
		for _, o := range snap.Observations() {
			send(at, stream.TopicPolicy, stream.PolicyRecord(stream.KindObservation, cluster, "import", received, o.Append(nil)))
		}
		for i := range 1 + rng.IntN(6) {
			happened := simBase.Add(spread(2 * time.Minute))
			rv++
			create := bindingEvent(fmt.Sprintf("b%d", i), rv, rng.IntN(3), rng.IntN(4), happened, false)
			after := spread(10 * time.Second)
			send(after, stream.TopicPolicy, stream.PolicyEventRecord(cluster, "webhook", "", received, create))
			send(after, stream.TopicEvents, stream.EventRecord(cluster, "webhook", "", received, create))
			if rng.IntN(2) == 0 {
				gone := bindingEvent(fmt.Sprintf("b%d", i), rv, 0, 0, happened.Add(spread(time.Minute)), true)
				send(spread(10*time.Second), stream.TopicPolicy, stream.PolicyEventRecord(cluster, "webhook", "", received, gone))
			}
		}
	}
	if rng.IntN(3) == 0 {
		x.policyPoison++
		send(spread(5*time.Second), stream.TopicPolicy, stream.PolicyRecord(stream.KindObservation, "east", "import", received, []byte(`{"v":99}`)))
	}
	for i := range events {
		cluster := clusters[rng.IntN(2)]
		happened := simBase.Add(spread(2 * time.Minute))
		stages := []event.Stage{event.StageResponseComplete}
		switch rng.IntN(5) {
		case 0:
			stages = []event.Stage{event.StageRequestReceived, event.StageResponseComplete}
		case 1:
			stages = []event.Stage{event.StageResponseStarted, event.StageResponseComplete}
		}
		user, ns, allow := rng.IntN(4), rng.IntN(3), rng.IntN(2) == 0
		for k, stage := range stages {
			e := requestEvent(i, user, ns, stage, happened, time.Duration(k+1)*time.Millisecond, allow)
			rec := stream.EventRecord(cluster, "webhook", "", received, e)
			if rng.IntN(12) == 0 {
				small := *e
				small.RequestObject = nil
				send(spread(10*time.Second), stream.TopicEvents, stream.EventRecord(cluster, "import", "", received, &small))
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
			send(spread(8*time.Second), stream.TopicDeadLetter, stream.DeadLetterRecord(event.DeadLetter{Cluster: cluster, Reason: "malformed-item", Digest: strconv.Itoa(i)}, received))
		}
	}
	slices.SortStableFunc(x.deliveries, func(a, b delivery) int { return int(a.after - b.after) })
	return x
}

// requestEvent is a request for pods.
func requestEvent(i, user, ns int, stage event.Stage, at time.Time, took time.Duration, allow bool) *event.Event {
	e := &event.Event{
		Level: event.LevelRequest, AuditID: fmt.Sprintf("id-%d", i), Stage: stage, Verb: "get",
		RequestURI:               fmt.Sprintf("/api/v1/namespaces/ns%d/pods/p%d", ns, i),
		User:                     event.User{Username: fmt.Sprintf("user%d", user), Groups: []string{"system:authenticated"}},
		RequestObject:            fmt.Appendf(nil, `{"padding":"%s"}`, bytes.Repeat([]byte("x"), 40)),
		RequestReceivedTimestamp: at.Truncate(time.Microsecond), StageTimestamp: at.Truncate(time.Microsecond).Add(took),
	}
	if stage == event.StageRequestReceived {
		return e
	}
	decision, code := "forbid", int32(403)
	if allow {
		decision, code = "allow", 200
	}
	e.ResponseStatus = &event.Status{Code: code, Raw: fmt.Appendf(nil, `{"metadata":{},"code":%d}`, code)}
	e.Annotations = e.Annotations.Set(event.AnnotationDecision, decision).Set(event.AnnotationReason, "")
	return e
}

// roleObject is a listed ClusterRole that allows to get pods, all or one of them.
func roleObject(name string, rv, kind int) state.Observation {
	names := ""
	if kind == 2 {
		names = `,"resourceNames":["p1","p2","p3"]`
	}
	object := fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q,"uid":"uid-%d","resourceVersion":"%d","creationTimestamp":"2026-02-01T00:00:00Z"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]%s}]}`, name, rv, rv, names)
	return state.Observation{Source: state.SourceSnapshot, Resource: state.ClusterRoles, Name: name, UID: fmt.Sprintf("uid-%d", rv),
		ResourceVersion: strconv.Itoa(rv), Object: []byte(object)}
}

// bindingEvent is the creation or deletion of a binding, in a namespace or of the whole
// cluster.
func bindingEvent(name string, rv, role, user int, at time.Time, gone bool) *event.Event {
	uid := fmt.Sprintf("uid-%s-%d", name, rv)
	// Name and scope of a binding belong together, so that its deletion finds it.
	scope, resource, kind, namespace := "/apis/rbac.authorization.k8s.io/v1/namespaces/ns1", "rolebindings", "RoleBinding", `"namespace":"ns1",`
	if rv%3 == 0 {
		scope, resource, kind, namespace = "/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", ""
	}
	e := &event.Event{
		Level: event.LevelRequestResponse, AuditID: "write-" + uid, Stage: event.StageResponseComplete,
		User:                     event.User{Username: "admin", Groups: []string{"system:masters", "system:authenticated"}},
		RequestReceivedTimestamp: at.Truncate(time.Microsecond), StageTimestamp: at.Truncate(time.Microsecond).Add(2 * time.Millisecond),
	}
	e.Annotations = e.Annotations.Set(event.AnnotationDecision, "allow").Set(event.AnnotationReason, "")
	code := int32(201)
	if gone {
		code = 200
		e.Verb, e.RequestURI = "delete", scope+"/"+resource+"/"+name
		e.ResponseObject = fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":%q,"group":"rbac.authorization.k8s.io","kind":%q,"uid":%q}}`, name, resource, uid)
	} else {
		e.Verb, e.RequestURI = "create", scope+"/"+resource
		e.ResponseObject = fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q,%s"uid":%q,"resourceVersion":"%d","creationTimestamp":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"role%d"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"user%d"}]}`,
			kind, name, namespace, uid, rv, at.Format(time.RFC3339), role, user)
	}
	e.ResponseStatus = &event.Status{Code: code, Raw: fmt.Appendf(nil, `{"metadata":{},"code":%d}`, code)}
	return e
}
