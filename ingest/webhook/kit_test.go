package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/test/testfile"
)

// fakeProducer keeps copies of what it is given. before, when set, is called first and may
// refuse or block.
type fakeProducer struct {
	before func(ctx context.Context, recs []stream.Record) error

	mu    sync.Mutex
	calls [][]stream.Record
}

func (p *fakeProducer) Produce(ctx context.Context, recs ...stream.Record) error {
	if p.before != nil {
		if err := p.before(ctx, recs); err != nil {
			return err
		}
	}
	kept := make([]stream.Record, len(recs))
	for i, r := range recs {
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		kept[i] = r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, kept)
	return nil
}

// topic returns the records of one topic in the order they were produced.
func (p *fakeProducer) topic(name string) []stream.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	var recs []stream.Record
	for _, call := range p.calls {
		for _, r := range call {
			if r.Topic == name {
				recs = append(recs, r)
			}
		}
	}
	return recs
}

func (p *fakeProducer) letters(t *testing.T) []event.DeadLetter {
	t.Helper()
	var letters []event.DeadLetter
	for _, r := range p.topic(stream.TopicDeadLetter) {
		d, err := stream.DecodeDeadLetter(&r)
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, d)
	}
	return letters
}

// everything returns every byte that was produced.
func (p *fakeProducer) everything(t *testing.T) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, call := range p.calls {
		for _, r := range call {
			fmt.Fprintf(&b, "%s %s %s %s %s %s\n", r.Topic, r.Key, r.Value, r.Cluster, r.Source, r.APIServer)
			if r.Topic == stream.TopicDeadLetter {
				d, err := stream.DecodeDeadLetter(&r)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%s %s\n", d.Detail, d.Prefix) // the prefix travels as base64
			}
		}
	}
	return b.String()
}

// bench is a handler with what surrounds it.
type bench struct {
	h        *Handler
	producer *fakeProducer
	reg      *prometheus.Registry
	logs     *observer.ObservedLogs
	log      *zap.Logger
}

func newBench(t testing.TB, cfg Config, clusters Clusters) *bench {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	b := &bench{producer: &fakeProducer{}, reg: prometheus.NewRegistry(), logs: logs, log: zap.New(core)}
	h, err := New(cfg, b.producer, redact.New([]byte("0123456789abcdef")), clusters, b.log, b.reg)
	if err != nil {
		t.Fatal(err)
	}
	b.h = h
	return b
}

// trusted returns a handler as on the local socket.
func trusted(t testing.TB, cfg Config) *bench {
	t.Helper()
	cfg.Trusted = true
	return newBench(t, cfg, nil)
}

func (b *bench) post(path, body string) *httptest.ResponseRecorder {
	return b.do(httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
}

func (b *bench) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, r)
	return w
}

// logged returns every log line in full.
func (b *bench) logged() string {
	var out strings.Builder
	enc := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	for _, e := range b.logs.All() {
		line, err := enc.EncodeEntry(e.Entry, e.Context)
		if err != nil {
			panic(err)
		}
		out.WriteString(line.String())
	}
	return out.String()
}

// metric returns the value of a counter or gauge whose labels include those given, as
// name, value pairs.
func (b *bench) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "retrial_webhook_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			if hasLabels(m, labels) {
				if m.GetHistogram() != nil {
					return float64(m.GetHistogram().GetSampleCount())
				}
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %v", name, labels)
	return 0
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// balanced checks the account of the events: in = out + dead-lettered + not acknowledged.
func (b *bench) balanced(t *testing.T) {
	t.Helper()
	in := b.metric(t, "events_received_total")
	out := b.metric(t, "events_acknowledged_total") + b.metric(t, "items_malformed_total") + b.metric(t, "events_unacknowledged_total")
	if in != out {
		t.Errorf("received %v events, accounted for %v", in, out)
	}
	if n := b.metric(t, "in_flight_bytes"); n != 0 {
		t.Errorf("%v bytes still in flight", n)
	}
}

// list returns an EventList of items.
func list(items ...string) string {
	return `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
}

// at is the members of an event that say when.
const at = `"requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z","stageTimestamp":"2026-01-02T03:04:05.000002Z"`

// read returns an event of a read, write one of a policy write; id makes them distinct.
func read(id string) string {
	return `{"level":"Metadata","auditID":"` + id + `","stage":"ResponseComplete",` +
		`"requestURI":"/api/v1/namespaces/x/pods/a","verb":"get","user":{"username":"jane"},` +
		`"responseStatus":{"metadata":{},"code":200},` + at + `}`
}

func write(id, object string) string {
	return `{"level":"RequestResponse","auditID":"` + id + `","stage":"ResponseComplete",` +
		`"requestURI":"/apis/rbac.authorization.k8s.io/v1/namespaces/x/roles","verb":"create","user":{"username":"jane"},` +
		`"responseStatus":{"metadata":{},"code":201},"responseObject":` + object + `,` + at + `}`
}

// recordedPost returns the body of a real apiserver's post of 400 events.
func recordedPost(t testing.TB) []byte {
	t.Helper()
	return testfile.Read(t, "testdata/post-400.json")
}

// spaces is an endless body that is not JSON.
type spaces struct{ left int64 }

func (s *spaces) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), s.left)
	for i := range p[:n] {
		p[i] = ' '
	}
	s.left -= n
	return int(n), nil
}
