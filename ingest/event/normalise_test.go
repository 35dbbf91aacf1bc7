package event

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/retrial-io/retrial/test/perevent"
	"github.com/retrial-io/retrial/test/recorded"
)

// auditCodec returns the apiserver's own decoder of audit events.
func auditCodec() apiruntime.Decoder {
	scheme := apiruntime.NewScheme()
	auditinstall.Install(scheme)
	return serializer.NewCodecFactory(scheme).UniversalDecoder(schema.GroupVersion{Group: "audit.k8s.io", Version: apiruntime.APIVersionInternal})
}

// BenchmarkNormalise takes the bundled recording in lists of 400, as an apiserver posts them,
// several ways in turn: ours, which decodes, redacts and writes the canonical event; that and
// all else a receiver does, which is to tell policy writes, keys and digests; our decoder alone;
// encoding/json into audit v1; and the apiserver's codec. It compares processor time by the
// operating system, garbage collection included.
func BenchmarkNormalise(b *testing.B) {
	var bodies [][]byte
	lines := recorded.Sample(b)
	size := 0
	for i := 0; i < len(lines); i += 400 {
		bodies = append(bodies, recorded.List(lines[i:min(i+400, len(lines))]...))
		size += len(bodies[len(bodies)-1])
	}
	var (
		lists    Lists
		buf      []byte
		redactor = NewRedactor(testKey)
		codec    = auditCodec()
	)
	ways := []struct {
		name  string
		spent time.Duration
		take  func(body []byte) (events int, err error)
	}{
		{name: "ours", take: func(body []byte) (n int, err error) {
			err = lists.Decode(body, func(item Item) error {
				n++
				item.RedactWith(redactor)
				buf = item.AppendJSON(buf[:0])
				return item.Err
			})
			lists.Forget()
			return n, err
		}},
		{name: "receiver", take: func(body []byte) (n int, err error) {
			err = lists.Decode(body, func(item Item) error {
				n++
				KeepsPolicy(item.Event)
				item.RedactWith(redactor)
				buf = item.AppendJSON(buf[:0])
				EventKey(RequestKey("cluster", item.Event), item.Event)
				Content(buf)
				return item.Err
			})
			lists.Forget()
			return n, err
		}},
		{name: "decode", take: func(body []byte) (n int, err error) {
			err = lists.Decode(body, func(item Item) error { n++; return item.Err })
			lists.Forget()
			return n, err
		}},
		{name: "json", take: func(body []byte) (int, error) {
			var list auditv1.EventList
			err := json.Unmarshal(body, &list)
			return len(list.Items), err
		}},
		{name: "codec", take: func(body []byte) (int, error) {
			var list internal.EventList
			_, _, err := codec.Decode(body, nil, &list)
			return len(list.Items), err
		}},
	}
	rounds := 0
	for b.Loop() {
		rounds++
		for i := range ways {
			w := &ways[i]
			runtime.GC() // what the way before left
			before := perevent.CPU()
			total := 0
			for _, body := range bodies {
				n, err := w.take(body)
				if err != nil {
					b.Fatal(w.name, err)
				}
				total += n
			}
			if total != len(lines) {
				b.Fatalf("%s: %d of %d events", w.name, total, len(lines))
			}
			w.spent += perevent.CPU() - before
		}
	}
	events := float64(rounds * len(lines))
	for _, w := range ways {
		b.ReportMetric(float64(w.spent.Nanoseconds())/1e3/events, w.name+"-cpu-µs/event")
	}
	b.ReportMetric(events/ways[0].spent.Seconds(), "events/cpu-s")
	b.ReportMetric(float64(rounds*size)/1e6/ways[0].spent.Seconds(), "MB/cpu-s")
	b.ReportMetric(float64(ways[3].spent)/float64(ways[0].spent), "x-json")
	b.ReportMetric(float64(ways[4].spent)/float64(ways[0].spent), "x-codec")
	b.ReportMetric(float64(ways[3].spent)/float64(ways[2].spent), "x-json-decode-only")
	b.ReportMetric(float64(ways[4].spent)/float64(ways[2].spent), "x-codec-decode-only")
	b.ReportMetric(0, "ns/op") // of all ways together: says nothing
}
