package event_test

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/test/perevent"
	"github.com/retrial-io/retrial/test/recorded"
)

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
		lists    event.Lists
		buf      []byte
		redactor = redact.New(testKey)
		codec    = event.AuditCodec()
	)
	ways := []struct {
		name  string
		spent time.Duration
		take  func(body []byte) (events int, err error)
	}{
		{name: "ours", take: func(body []byte) (n int, err error) {
			err = lists.Decode(body, func(item event.Item) error {
				n++
				item.RedactWith(redactor)
				buf = item.AppendJSON(buf[:0])
				return item.Err
			})
			lists.Forget()
			return n, err
		}},
		{name: "receiver", take: func(body []byte) (n int, err error) {
			err = lists.Decode(body, func(item event.Item) error {
				n++
				event.KeepsPolicy(item.Event)
				item.RedactWith(redactor)
				buf = item.AppendJSON(buf[:0])
				event.EventKey(event.RequestKey("cluster", item.Event), item.Event)
				event.Content(buf)
				return item.Err
			})
			lists.Forget()
			return n, err
		}},
		{name: "decode", take: func(body []byte) (n int, err error) {
			err = lists.Decode(body, func(item event.Item) error { n++; return item.Err })
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
