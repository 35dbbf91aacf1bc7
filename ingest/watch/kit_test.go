package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/watch/watchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock the test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// said is what a record says, as the testEncoder writes it.
type said struct {
	Op         string // listed, changed, deleted, unknown, complete, gap
	Resource   string
	Name       string
	RV         string
	From, To   time.Time
	JSON       string
	Annotation string
}

type testEncoder struct{ check func() error }

func (testEncoder) Object(o Object) ([]byte, error) {
	h, err := headOf(o.JSON)
	if err != nil {
		return nil, err
	}
	s := said{
		Op:       "changed",
		Resource: o.Resource,
		Name:     h.Metadata.Name,
		RV:       h.Metadata.ResourceVersion,
		From:     o.NotBefore,
		To:       o.NotAfter,
		JSON:     string(o.JSON),
	}
	switch {
	case o.Deleted:
		s.Op = "deleted"
	case o.Unknown:
		s.Op = "unknown"
	case o.Listed:
		s.Op = "listed"
	}
	return json.Marshal(s)
}

func (testEncoder) Complete(resource string, began, ended time.Time) []byte {
	return must(json.Marshal(said{Op: "complete", Resource: resource, From: began, To: ended}))
}

func (testEncoder) Gap(resource string, from, to time.Time) []byte {
	return must(json.Marshal(said{Op: "gap", Resource: resource, From: from, To: to}))
}

func (e testEncoder) Check(string, [][]byte) error {
	if e.check == nil {
		return nil
	}
	return e.check()
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// log is a Producer that keeps what it is given.
type log struct {
	mu      sync.Mutex
	records []stream.Record
	calls   int
	refuse  func(call int, recs []stream.Record) error
	changed chan struct{}
}

func (l *log) Produce(ctx context.Context, recs ...stream.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.refuse != nil {
		if err := l.refuse(l.calls, recs); err != nil {
			return err
		}
	}
	for _, r := range recs {
		r.Value = bytes.Clone(r.Value)
		l.records = append(l.records, r)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return ctx.Err()
}

// said returns what was said about a resource, in order; about everything when "".
func (l *log) said(resource string) []said {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []said
	for _, r := range l.records {
		var s said
		if err := json.Unmarshal(r.Value, &s); err != nil {
			panic(err)
		}
		if resource == "" || s.Resource == resource {
			out = append(out, s)
		}
	}
	return out
}

// await returns what was said about a resource once n records say op.
func (l *log) await(t testing.TB, resource, op string, n int) []said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		all := l.said(resource)
		if len(pick(all, op)) >= n {
			return all
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waiting for %d × %s of %s, said: %s", n, op, resource, brief(all))
		}
	}
}

func pick(all []said, op string) []said {
	var out []said
	for _, s := range all {
		if s.Op == op {
			out = append(out, s)
		}
	}
	return out
}

// brief renders what was said in short: "listed:a changed:b gap".
func brief(all []said) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = s.Op
		if s.Name != "" {
			words[i] += ":" + s.Name
		}
	}
	return strings.Join(words, " ")
}

// memory keeps positions.
type memory struct {
	mu      sync.Mutex
	at      map[string]Position
	changed chan struct{}
}

func newMemory() *memory { return &memory{at: map[string]Position{}, changed: make(chan struct{})} }

func (m *memory) Load(resource string) (Position, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.at[resource]
	return p, ok, nil
}

func (m *memory) Save(resource string, p Position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at[resource] = p
	close(m.changed)
	m.changed = make(chan struct{})
	return nil
}

// await returns the position of a resource once it is at a version.
func (m *memory) await(t testing.TB, resource, rv string) Position {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		m.mu.Lock()
		p, changed := m.at[resource], m.changed
		m.mu.Unlock()
		if p.ResourceVersion == rv {
			return p
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("position of %s is %v, waiting for version %s", resource, p, rv)
		}
	}
}

// patience is how long a test that hangs may take to say where.
const patience = 20 * time.Second

const (
	roles      = "roles.rbac.authorization.k8s.io"
	refusedFor = 24 * time.Hour // pauses of this length wait for the test
)

// bench is a watcher of a double with what surrounds both.
type bench struct {
	clock     *clock
	server    *watchtest.Server
	log       *log
	encoder   testEncoder
	positions *memory
	reg       *prometheus.Registry
	logs      *observer.ObservedLogs
	release   chan struct{} // ends one long pause
	paused    chan time.Duration
	cfg       Config
	stop      func()
}

func newBench(t testing.TB) *bench {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	b := &bench{
		clock: newClock(), log: &log{changed: make(chan struct{})}, positions: newMemory(), logs: logs,
		release: make(chan struct{}), paused: make(chan time.Duration, 1000),
	}
	b.server = watchtest.New(t, b.clock.now)
	b.server.Put("namespaces", "", "kube-system", "", nil)
	b.cfg = Config{
		Cluster: "prod", REST: b.server.REST(), PageSize: 2, Now: b.clock.now, Pause: b.pause,
		MinPause: time.Millisecond, MaxPause: 2 * time.Millisecond, RefusedPause: refusedFor, SaveEvery: -1, Log: zap.New(core),
	}
	return b
}

// pause passes short pauses over and holds long ones until release.
func (b *bench) pause(ctx context.Context, d time.Duration) error {
	if d < time.Hour {
		return ctx.Err()
	}
	b.paused <- d
	select {
	case <-b.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start runs a watcher until stop or the test's end.
func (b *bench) start(t testing.TB) {
	t.Helper()
	b.reg = prometheus.NewRegistry()
	b.cfg.Registerer = b.reg
	w, err := New(b.cfg, b.log, redact.New([]byte("0123456789abcdef")), b.encoder, b.positions)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	b.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(b.stop)
}

// metric returns the value of a series of retrial_watch_<name>; labels are name, value pairs.
func (b *bench) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "retrial_watch_"+name {
			continue
		}
	series:
		for _, m := range f.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if have[labels[i]] != labels[i+1] {
					continue series
				}
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s %v", name, labels)
	return 0
}

// logged returns every log line in full.
func (b *bench) logged() string {
	var out strings.Builder
	for _, e := range b.logs.All() {
		fmt.Fprintln(&out, e.Level, e.Message, e.ContextMap())
	}
	return out.String()
}
