package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
)

// base is when the requests of a schedule happen: shortly before midnight, so that blocks
// hold two days.
var base = time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// identity is what tells events apart.
type identity struct {
	cluster string
	key     event.Hash128
}

// item is one entry of an event list, as posted.
type item struct {
	raw    []byte
	id     identity
	digest string // of an item that is no event; it becomes a dead letter
	policy bool   // the event writes policy
}

func itemOf(cluster string, e *event.Event) item {
	return item{raw: event.AppendJSON(nil, e), id: identity{cluster, event.EventKey(event.RequestKey(cluster, e), e)}, policy: event.KeepsPolicy(e)}
}

// list is the body of a post.
func list(items []item) []byte {
	var b bytes.Buffer
	b.WriteString(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`)
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(items[i].raw)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// requests draws the events of n requests; their apiserver's clock is off by skew.
func requests(rng *rand.Rand, cluster, name string, n int, skew time.Duration) (out []item) {
	for i := range n {
		at := base.Add(time.Duration(rng.Int64N(int64(2 * time.Minute)))).Add(skew)
		stages := []event.Stage{event.StageResponseComplete}
		switch rng.IntN(6) {
		case 0:
			stages = []event.Stage{event.StageRequestReceived, event.StageResponseComplete}
		case 1:
			stages = []event.Stage{event.StageResponseStarted, event.StageResponseComplete}
		}
		user, ns, allow := rng.IntN(4), rng.IntN(3), rng.IntN(2) == 0
		for k, stage := range stages {
			out = append(out, itemOf(cluster, request(fmt.Sprint(name, "-", i), user, ns, stage, at, time.Duration(k+1)*time.Millisecond, allow)))
		}
	}
	return out
}

// request is a request for a pod.
func request(id string, user, ns int, stage event.Stage, at time.Time, took time.Duration, allow bool) *event.Event {
	e := &event.Event{
		Level: event.LevelRequest, AuditID: id, Stage: stage, Verb: "get",
		RequestURI:               fmt.Sprintf("/api/v1/namespaces/ns%d/pods/p-%s", ns, id),
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

// huge is a request whose body is far above what a record takes.
func huge(cluster, name string, size int) item {
	e := request(name, 1, 1, event.StageResponseComplete, base, time.Millisecond, true)
	e.RequestObject = fmt.Appendf(nil, `{"padding":"%s"}`, bytes.Repeat([]byte("y"), size))
	return itemOf(cluster, e)
}

// malformed is an entry that is no event.
func malformed(name string) item {
	raw := fmt.Appendf(nil, `{"auditID":17,"verb":%q}`, name)
	return item{raw: raw, digest: digestOf(raw)}
}

// binding is the creation or deletion of a binding, written while requests it decides are
// under way.
func binding(rng *rand.Rand, cluster, name string, rv int, gone bool) item {
	at := base.Add(time.Duration(rng.Int64N(int64(2 * time.Minute))))
	uid := fmt.Sprintf("uid-%s-%d", name, rv)
	scope, resource, kind, namespace := "/apis/rbac.authorization.k8s.io/v1/namespaces/ns1", "rolebindings", "RoleBinding", `"namespace":"ns1",`
	if rv%3 == 0 {
		scope, resource, kind, namespace = "/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", ""
	}
	e := &event.Event{
		Level: event.LevelRequestResponse, AuditID: fmt.Sprint("write-", uid, gone), Stage: event.StageResponseComplete,
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
			kind, name, namespace, uid, rv, at.Format(time.RFC3339), rng.IntN(3), rng.IntN(4))
	}
	e.ResponseStatus = &event.Status{Code: code, Raw: fmt.Appendf(nil, `{"metadata":{},"code":%d}`, code)}
	return itemOf(cluster, e)
}

// listing is what a cluster holds before its log begins: three roles.
func listing() *state.Snapshot {
	snap := &state.Snapshot{Began: base.Add(-time.Hour), Ended: base.Add(-time.Hour + time.Second), Kinds: state.Resources()}
	for i := range 3 {
		rv := 1001 + i
		object := fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"role%d","uid":"uid-%d","resourceVersion":"%d","creationTimestamp":"2026-02-01T00:00:00Z"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, i, rv, rv)
		snap.Objects = append(snap.Objects, state.Observation{Source: state.SourceSnapshot, Resource: state.ClusterRoles, Name: fmt.Sprint("role", i),
			UID: fmt.Sprintf("uid-%d", rv), ResourceVersion: strconv.Itoa(rv), Object: json.RawMessage(object)})
	}
	return snap
}
