package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/test/perevent"
)

// auditJSON renders events of about 2 KB with the repetition and the randomness of real
// ones (identifiers, resource versions, time stamps).
func auditJSON(n int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([][]byte, n)
	for i := range out {
		ns, name := fmt.Sprintf("team-%d", rng.IntN(40)), fmt.Sprintf("web-%x-%x", rng.Uint32(), rng.Uint32()&0xfffff)
		id := fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", rng.Uint32(), rng.Uint32()&0xffff, rng.Uint32()&0xfff, rng.Uint32()&0xffff,
			rng.Uint64()&0xffffffffffff)
		at := fmt.Sprintf("2026-03-0%dT%02d:%02d:%02d.%06dZ", 1+rng.IntN(9), rng.IntN(24), rng.IntN(60), rng.IntN(60), rng.IntN(1e6))
		body := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"generateName":"web-","namespace":%q,"uid":%q,`+
			`"resourceVersion":"%d","creationTimestamp":%q,"labels":{"app":"web","pod-template-hash":"%x"},`+
			`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":%q,"controller":true,`+
			`"blockOwnerDeletion":true}]},"status":{"phase":"Running","conditions":[{"type":"PodReadyToStartContainers",`+
			`"status":"True","lastTransitionTime":%q},{"type":"Initialized","status":"True","lastTransitionTime":%q},`+
			`{"type":"Ready","status":"True","lastTransitionTime":%q}],"hostIP":"10.0.%d.%d","podIP":"10.244.%d.%d",`+
			`"startTime":%q,"containerStatuses":[{"name":"web","ready":true,"restartCount":0,`+
			`"image":"registry.example/web:1.%d","containerID":"containerd://%x%x%x%x","started":true}],`+
			`"qosClass":"Burstable"}}`,
			name, ns, id, rng.IntN(1e8), at, rng.Uint32(), id, at, at, at, rng.IntN(256), rng.IntN(256), rng.IntN(256), rng.IntN(256), at,
			rng.IntN(50), rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
		out[i] = fmt.Appendf(nil, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":%q,`+
			`"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/%s/pods/%s/status","verb":"patch",`+
			`"user":{"username":"system:node:node-%d","groups":["system:nodes","system:authenticated"],`+
			`"extra":{"authentication.kubernetes.io/credential-id":["X509SHA256=%x%x"]}},"sourceIPs":["10.0.0.%d"],`+
			`"userAgent":"kubelet/v1.33.2 (linux/amd64) kubernetes/abcdef0","objectRef":{"resource":"pods","namespace":%q,`+
			`"name":%q,"apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"code":200},`+
			`"requestReceivedTimestamp":%q,"stageTimestamp":%q,`+
			`"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""},`+
			`"responseObject":%s}`,
			id, ns, name, rng.IntN(200), rng.Uint64(), rng.Uint64(), rng.IntN(256), ns, name, at, at, body)
	}
	return out
}

func benchRecords(n int) []Record {
	out := make([]Record, n)
	for i, v := range auditJSON(n) {
		key := event.Content(v).Bytes()
		out[i] = Record{Topic: TopicEvents, Kind: KindEvent, Key: key[:], Value: v, Cluster: "prod", Source: "webhook",
			Received: time.Unix(1700000000, 0), Content: event.Content(v)}
	}
	return out
}

// size returns the bytes of the records' values.
func size(records []Record) (n int) {
	for i := range records {
		n += len(records[i].Value)
	}
	return n
}

// BenchmarkProduce appends calls of 400 events to the embedded broker (fsync per batch),
// client and broker in one process.
func BenchmarkProduce(b *testing.B) {
	const perCall = 400
	records := benchRecords(perCall * 4)
	for _, callers := range []int{1, 4} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w := newWorld(b)
			m := perevent.Start(b)
			var wg sync.WaitGroup
			for k := range callers {
				wg.Go(func() {
					mine := records[k*perCall : (k+1)*perCall]
					for i := k; i < b.N; i += callers {
						if err := w.Producer().Produce(context.Background(), mine...); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			m.Report(b.N*perCall, int64(b.N*size(records)*perCall/len(records)))
		})
	}
}

// BenchmarkFetch reads what one produce call after another has stored.
func BenchmarkFetch(b *testing.B) {
	const perCall = 400
	records := benchRecords(perCall)
	w := newWorld(b, func(c *Config) { c.Partitions = 1 })
	const stored = 20 * perCall
	for range stored / perCall {
		if err := w.Producer().Produce(context.Background(), records...); err != nil {
			b.Fatal(err)
		}
	}
	m := perevent.Start(b)
	for range b.N {
		q := newCursor(w.Client, TopicEvents, 0, 1, 0)
		for n := 0; n < stored; {
			batch, err := q.fetch(context.Background(), 0, 0)
			if err != nil {
				b.Fatal(err)
			}
			n += len(batch.Records)
		}
	}
	m.Report(b.N*stored, int64(b.N*size(records)*stored/len(records)))
}
