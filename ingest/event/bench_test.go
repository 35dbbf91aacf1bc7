package event_test

import (
	"encoding/json"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/test/recorded"
)

// testKey is a redaction key.
var testKey = []byte("0123456789abcdef0123456789abcdef")

// benchLists returns the list bodies to decode: the recorded slice at both ends of the
// sizes events have.
func benchLists(tb testing.TB) map[string][][]byte {
	var small, large [][]byte
	for _, line := range recorded.Slice(tb) {
		if e, err := event.Decode(line); err == nil && e.Level == event.LevelMetadata {
			small = append(small, line)
		} else {
			large = append(large, line)
		}
	}
	lists := map[string][][]byte{"level=Metadata": small, "level=RequestResponse": large}
	if os.Getenv("RETRIAL_CORPUS") != "" {
		// A batch of the webhook's default size from the middle of a busy cluster's log.
		lists["log=recorded"] = recorded.Sample(tb)[10_000:10_400]
		lists["log=full"] = recorded.Corpus(tb, "full-requestresponse.jsonl")[4_000:4_400]
	}
	return lists
}

// BenchmarkDecodeList decodes one list a time with ours, with encoding/json and with the
// apiserver's codec.
func BenchmarkDecodeList(b *testing.B) {
	scheme := runtime.NewScheme()
	auditinstall.Install(scheme)
	codec := serializer.NewCodecFactory(scheme).UniversalDecoder(schema.GroupVersion{Group: "audit.k8s.io",
		Version: runtime.APIVersionInternal})
	for name, lines := range benchLists(b) {
		body := recorded.List(lines...)
		for _, by := range []struct {
			name   string
			decode func() (int, error)
		}{
			{"by=retrial", func() (n int, err error) {
				err = event.DecodeList(body, func(item event.Item) error { n++; return item.Err })
				return n, err
			}},
			{"by=encoding-json", func() (int, error) {
				var list auditv1.EventList
				err := json.Unmarshal(body, &list)
				return len(list.Items), err
			}},
			{"by=apiserver-codec", func() (int, error) {
				var list internal.EventList
				_, _, err := codec.Decode(body, nil, &list)
				return len(list.Items), err
			}},
		} {
			b.Run(name+"/"+by.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					if n, err := by.decode(); err != nil || n != len(lines) {
						b.Fatal(n, err)
					}
				}
				b.ReportMetric(float64(len(lines))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

// decoded returns the events of lines.
func decoded(tb testing.TB, lines [][]byte) []*event.Event {
	tb.Helper()
	out := make([]*event.Event, len(lines))
	for i, line := range lines {
		e, err := event.Decode(line)
		if err != nil {
			tb.Fatal(err)
		}
		out[i] = e
	}
	return out
}

func BenchmarkDecode(b *testing.B) {
	for name, lines := range benchLists(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := event.Decode(lines[i%len(lines)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkRedact redacts copies of events, so that every pass finds what the first does.
func BenchmarkRedact(b *testing.B) {
	r := redact.New(testKey)
	for name, lines := range benchLists(b) {
		events := decoded(b, lines)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				e := *events[i%len(events)]
				r.Redact(&e)
				i++
			}
		})
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	for name, lines := range benchLists(b) {
		events := decoded(b, lines)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			i := 0
			for b.Loop() {
				buf = event.AppendJSON(buf[:0], events[i%len(events)])
				i++
			}
		})
	}
}

func BenchmarkKeys(b *testing.B) {
	events := decoded(b, recorded.Slice(b))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		e := events[i%len(events)]
		event.EventKey(event.RequestKey("cluster", e), e)
		i++
	}
}

// Allocations are what a garbage-collected pipeline pays for twice; these are the bounds
// for an event of each usual kind.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget at random under the race detector")
	}
	var plain []byte
	for _, line := range recorded.Slice(t) {
		if e, err := event.Decode(line); err == nil && e.Level == event.LevelMetadata && e.ObjectRef != nil && e.ImpersonatedUser == nil &&
			len(e.User.Groups) > 1 && e.Code() == 200 && len(e.Annotations) == 2 {
			plain = line
			break
		}
	}
	e, err := event.Decode(plain)
	if err != nil {
		t.Fatal(err)
	}
	r := redact.New(testKey)
	buf := event.AppendJSON(nil, e)
	list := recorded.List(plain, plain, plain, plain, plain, plain, plain, plain, plain, plain)
	for _, c := range []struct {
		name string
		most float64
		run  func()
	}{
		{"decode", 3, func() { _, _ = event.Decode(plain) }},
		{"decode a list of ten", 10, func() { _ = event.DecodeList(list, func(event.Item) error { return nil }) }},
		{"redact with nothing to redact", 0, func() { r.Redact(e) }},
		{"encode", 0, func() { buf = event.AppendJSON(buf[:0], e) }},
		{"keys", 0, func() { event.EventKey(event.RequestKey("c", e), e) }},
		{"policy", 0, func() { event.KeepsPolicy(e) }},
	} {
		if n := testing.AllocsPerRun(100, c.run); n > c.most {
			t.Errorf("%s: %v allocations, at most %v", c.name, n, c.most)
		}
	}
}
