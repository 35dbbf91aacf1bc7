package state_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// podObject is a pod as an apiserver answers with it, of a Deployment with some volumes.
func podObject(i int, node bool, at time.Time) (namespace, name, uid string, object []byte) {
	namespace, name = fmt.Sprintf("team-%d", i%100), fmt.Sprintf("service-%d-7d9db56779-%05x", i%2000, i)
	uid = fmt.Sprintf("6c31089b-aea6-4adc-97c8-%012d", i)
	on := ""
	if node {
		on = fmt.Sprintf(`,"nodeName":"node-%d"`, i%1000)
	}
	return namespace, name, uid, fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q,`+
		`"resourceVersion":"%d","creationTimestamp":%q,"labels":{"app":"service-%d","pod-template-hash":"7d9db56779"},`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"service","uid":"b8675655-52ca-4bf8-bcb1-bca0765486f4",`+
		`"controller":true}]},"spec":{"volumes":[{"name":"config","configMap":{"name":"service-%d"}},{"name":"kube-api-access-r82lr",`+
		`"projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{`+
		`"name":"kube-root-ca.crt"}}]}}],"containers":[{"name":"main","image":"registry.example/service:1","envFrom":[{"secretRef":{`+
		`"name":"service-%d"}}]}],"terminationGracePeriodSeconds":30,"serviceAccountName":"service-%d"%s},"status":{"phase":"Running"}}`,
		name, namespace, uid, 1000+2*i, at.Format(time.RFC3339), i%2000, i%2000, i%2000, i%2000, on)
}

// podWrites are the audit events of n pods' making and binding.
func podWrites(n int, start time.Time) []*event.Event {
	out := make([]*event.Event, 0, 2*n)
	for i := range n {
		at := start.Add(time.Duration(i) * 20 * time.Millisecond)
		namespace, name, uid, object := podObject(i, false, at)
		out = append(out, &event.Event{
			Level: event.LevelRequestResponse, Stage: event.StageResponseComplete, Verb: "create", AuditID: uid,
			RequestURI:     "/api/v1/namespaces/" + namespace + "/pods",
			ResponseStatus: &event.Status{Code: 201}, ResponseObject: object, RequestReceivedTimestamp: at, StageTimestamp: at.Add(
				5 * time.Millisecond),
		}, &event.Event{
			Level: event.LevelRequestResponse, Stage: event.StageResponseComplete, Verb: "create", AuditID: uid,
			RequestURI:     "/api/v1/namespaces/" + namespace + "/pods/" + name + "/binding",
			ResponseStatus: &event.Status{Code: 201}, RequestReceivedTimestamp: at.Add(6 * time.Millisecond), StageTimestamp: at.Add(
				8 * time.Millisecond),
			RequestObject: fmt.Appendf(nil, `{"kind":"Binding","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q},`+
				`"target":{"kind":"Node","name":"node-%d"}}`, name, namespace, uid, i%1000),
		})
	}
	return out
}

// stored returns the observations of events as they come back from where they are stored.
func stored(tb testing.TB, events []*event.Event) (obs []observe.Observation, raw [][]byte) {
	for _, e := range events {
		list, err := observe.FromEvent(e)
		if err != nil {
			tb.Fatal(err)
		}
		for _, o := range list {
			raw = append(raw, o.Append(nil))
		}
		obs = append(obs, list...)
	}
	return obs, raw
}

// A hundred thousand pods as an audit stream tells of them: what a pod takes, graph included,
// what it takes stored, and how long reading them back takes.
func BenchmarkPods(b *testing.B) {
	const n = 100_000
	_, raw := stored(b, podWrites(n, benchStart))
	size := 0
	for _, r := range raw {
		size += len(r)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var bytes float64
	for b.Loop() {
		b.StopTimer()
		before := heap()
		b.StartTimer()
		s := state.New("c")
		s.Apply(observe.Born()...)
		for _, r := range raw {
			o, err := observe.Decode(r)
			if err != nil {
				b.Fatal(err)
			}
			s.Apply(o)
		}
		b.StopTimer()
		bytes = float64(heap()-before) / n
		runtime.KeepAlive(s)
		b.StartTimer()
	}
	b.ReportMetric(bytes, "bytes/pod")
	b.ReportMetric(float64(size)/n, "stored-bytes/pod")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
}

// The questions of identity and the node authorizer among a hundred thousand pods.
func BenchmarkPodLookup(b *testing.B) {
	const n = 100_000
	s := state.New("c")
	s.Apply(observe.Born()...)
	obs, _ := stored(b, podWrites(n, benchStart))
	s.Apply(obs...)
	at := benchStart.Add(n * 20 * time.Millisecond)
	namespace, name, uid, _ := podObject(77_777, false, at)
	node := fmt.Sprintf("node-%d", 77_777%1000)
	for _, c := range []struct {
		name string
		ask  func() state.Known
	}{
		{"pod", func() state.Known { _, k := s.Pod(namespace, name, at); return k }},
		{"uid", func() state.Known { _, k := s.PodByUID(uid); return k }},
		{"secret", func() state.Known {
			return s.Related(at, node, "", "secrets", namespace, fmt.Sprintf("service-%d", 77_777%2000))
		}},
	} {
		b.Run("pods=100k/by="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if k := c.ask(); k != state.Present {
					b.Fatal(k)
				}
			}
		})
	}
}

// Tokens of a hundred thousand pods.
func BenchmarkCredentials(b *testing.B) {
	const n = 100_000
	var raw [][]byte
	for i := range n {
		at := benchStart.Add(time.Duration(i) * 20 * time.Millisecond)
		namespace, name, uid, _ := podObject(i, false, at)
		_, r := stored(b, []*event.Event{{
			Stage: event.StageResponseComplete, Verb: "create", RequestURI: fmt.Sprintf(
				"/api/v1/namespaces/%s/serviceaccounts/service-%d/token", namespace, i%2000),
			AuditID: fmt.Sprintf("aaaaaaaa-aea6-4adc-97c8-%012d", i), User: event.User{Username: fmt.Sprintf("system:node:node-%d",
				i%1000)}, SourceIPs: []string{fmt.Sprintf("10.0.0.%d", i%250)},
			ResponseStatus: &event.Status{Code: 201}, RequestReceivedTimestamp: at, StageTimestamp: at.Add(5 * time.Millisecond),
			Annotations: event.Pairs{{Key: "authentication.kubernetes.io/issued-credential-id",
				Value: fmt.Sprintf("JTI=bbbbbbbb-aea6-4adc-97c8-%012d", i)}},
			ResponseObject: fmt.Appendf(nil, `{"kind":"TokenRequest","metadata":{"uid":"cccccccc-aea6-4adc-97c8-%012d"},"spec":{`+
				`"boundObjectRef":{"kind":"Pod","name":%q,"uid":%q}},"status":{"expirationTimestamp":"2026-01-02T12:00:00Z"}}`, i%2000,
				name, uid),
		}})
		raw = append(raw, r...)
	}
	pods, _ := stored(b, podWrites(n, benchStart))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var bytes float64
	for b.Loop() {
		b.StopTimer()
		s := state.New("c")
		s.Apply(pods...)
		before := heap()
		b.StartTimer()
		for _, r := range raw {
			o, err := observe.Decode(r)
			if err != nil {
				b.Fatal(err)
			}
			s.Apply(o)
		}
		b.StopTimer()
		bytes = float64(heap()-before) / n
		runtime.KeepAlive(s)
		b.StartTimer()
	}
	b.ReportMetric(bytes, "bytes/credential")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/credential")
}
