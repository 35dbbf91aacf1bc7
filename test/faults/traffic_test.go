package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/workload"
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
	digest string // of an item that is not an event; it becomes a dead letter
	policy bool   // the event writes policy
}

func itemOf(cluster string, e *event.Event) item {
	return item{raw: event.AppendJSON(nil, e), id: identity{cluster, event.EventKey(event.RequestKey(cluster, e), e)},
		policy: event.KeepsPolicy(e)}
}

// list returns the body of a post.
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
		stages := workload.Stages(rng.IntN(6))
		user, ns, allow := rng.IntN(4), rng.IntN(3), rng.IntN(2) == 0
		for k, stage := range stages {
			id := fmt.Sprint(name, "-", i)
			out = append(out, itemOf(cluster, workload.GetPod(id, "p-"+id, user, ns, stage, at, time.Duration(k+1)*time.Millisecond,
				allow)))
		}
	}
	return out
}

// huge returns a request whose body is far above what a record takes.
func huge(cluster, name string, size int) item {
	e := workload.GetPod(name, "p-"+name, 1, 1, event.StageResponseComplete, base, time.Millisecond, true)
	e.RequestObject = fmt.Appendf(nil, `{"padding":"%s"}`, bytes.Repeat([]byte("y"), size))
	return itemOf(cluster, e)
}

// malformed returns an entry that is not an event.
func malformed(name string) item {
	raw := fmt.Appendf(nil, `{"auditID":17,"verb":%q}`, name)
	return item{raw: raw, digest: digestOf(raw)}
}

// binding returns the creation or deletion of a binding, written while requests it decides are
// under way.
func binding(rng *rand.Rand, cluster, name string, rv int, gone bool) item {
	at := base.Add(time.Duration(rng.Int64N(int64(2 * time.Minute))))
	role, user := 0, 0
	if !gone {
		role, user = rng.IntN(3), rng.IntN(4)
	}
	return itemOf(cluster, workload.BindRole(name, rv, role, user, at, gone))
}

// listing returns what a cluster holds before its log begins: three roles.
func listing() *observe.Snapshot {
	snap := &observe.Snapshot{Began: base.Add(-time.Hour), Ended: base.Add(-time.Hour + time.Second), Kinds: kept.Resources()}
	for i := range 3 {
		snap.Objects = append(snap.Objects, workload.PodRole(fmt.Sprint("role", i), 1001+i))
	}
	return snap
}
