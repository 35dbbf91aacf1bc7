package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/test/kafkatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a broker and a client of it.
type world struct {
	*Client
	broker *embedded.Broker // nil on a real Kafka
	cfg    Config
}

// newWorld starts an embedded broker, or connects to the real Kafka the environment names
// (make test-kafka), where a topic prefix of its own keeps tests apart.
func newWorld(t testing.TB, mods ...func(*Config)) *world {
	t.Helper()
	w := &world{cfg: Config{
		Log:               zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
		FetchWait:         20 * time.Millisecond,
		HeartbeatInterval: 100 * time.Millisecond,
		ProduceTimeout:    10 * time.Second,
	}}
	if a, ok := kafkatest.FromEnviron(); ok {
		w.cfg.access(t, a)
		w.cfg.ProduceTimeout = time.Minute // a broker that shares a busy machine takes its time
		w.cfg.TopicPrefix = fmt.Sprintf("test-%d.", time.Now().UnixNano())
	} else {
		// What a test changes may be what the broker must know, and what the broker is
		// may be what a test changes.
		probe := w.cfg
		for _, mod := range mods {
			mod(&probe)
		}
		w.startBroker(t, t.TempDir(), probe.TopicPrefix)
	}
	for _, mod := range mods {
		mod(&w.cfg)
	}
	w.connect(t)
	return w
}

func (w *world) startBroker(t testing.TB, dir, prefix string) {
	t.Helper()
	b, err := embedded.Start(embedded.Config{Dir: dir, Consumers: Consumers(prefix), Reserve: []string{prefix + TopicDeadLetter},
		Verify: VerifyCommit, MaxBytes: embedded.DefaultMaxBytes, TrimInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	w.broker = b
	w.cfg.Brokers, w.cfg.Dial = []string{b.Addr()}, b.Dial
}

func (w *world) connect(t testing.TB) {
	t.Helper()
	var err error
	if w.Client, err = NewClient(w.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Client.Close() })
	if err := w.EnsureTopics(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// access makes the configuration reach a real Kafka.
func (c *Config) access(t testing.TB, a kafkatest.Access) {
	t.Helper()
	var err error
	if c.TLS, err = a.TLS(); err != nil {
		t.Fatal(err)
	}
	c.Brokers, c.Dial, c.Replication = a.Brokers, nil, min(len(a.Brokers), 3)
	if a.Mechanism != "" {
		password, err := os.ReadFile(a.PasswordFile)
		if err != nil {
			t.Fatal(err)
		}
		c.SASL = &SASL{a.Mechanism, a.User, strings.TrimSpace(string(password))}
	}
}

// onlyEmbedded skips a test that reaches into the broker.
func onlyEmbedded(t testing.TB) {
	t.Helper()
	if _, ok := kafkatest.FromEnviron(); ok {
		t.Skip("reaches into the embedded broker; it runs without a real one")
	}
}

// deadline returns a context no healthy test outlives.
func deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// rec returns an event record with the key and value.
func rec(key, value string) Record {
	return Record{Topic: TopicEvents, Kind: KindEvent, Key: []byte(key), Value: []byte(value),
		Cluster: "c1", Source: "webhook", Received: time.Unix(1700000000, 123456000).UTC()}
}

// noise returns n bytes that do not compress.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}

func recs(from, to int) []Record {
	var rs []Record
	for i := from; i < to; i++ {
		rs = append(rs, rec(fmt.Sprintf("key-%d", i), fmt.Sprintf("value-%d", i)))
	}
	return rs
}

// collector consumes, keeps every value, and commits after each batch.
type collector struct {
	mu     sync.Mutex
	seen   map[string]int
	parts  map[int32][]int64 // offsets by partition in the order they came
	assign []Assignment
	want   int
	full   chan struct{}
	gap    int64
}

func newCollector(want int) *collector {
	return &collector{seen: map[string]int{}, parts: map[int32][]int64{}, want: want, full: make(chan struct{})}
}

func (c *collector) Partition(ctx context.Context, a Assignment, p *Partition) error {
	c.mu.Lock()
	c.assign = append(c.assign, a)
	c.mu.Unlock()
	for {
		b, err := p.Fetch(ctx, 0, 0)
		if err != nil {
			return err
		}
		if len(b.Records) == 0 {
			continue
		}
		c.mu.Lock()
		c.gap += b.Missing
		for _, r := range b.Records {
			if c.seen[string(r.Value)]++; len(c.seen) == c.want && c.seen[string(r.Value)] == 1 {
				close(c.full)
			}
			c.parts[a.Partition] = append(c.parts[a.Partition], r.Position.Offset)
		}
		c.mu.Unlock()
		if err := p.Commit(context.WithoutCancel(ctx), p.Position(), NoPending(nil)); err != nil {
			return err
		}
	}
}

// consume runs the handler in the background and returns a function that ends it.
func (w *world) consume(t testing.TB, h Handler) (stop func()) {
	t.Helper()
	return consumeWith(t, w.Client, h)
}

func consumeWith(t testing.TB, c *Client, h Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.ConsumeEvents(ctx, GroupReplay, h) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("consume: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func wait(t testing.TB, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-deadline(t).Done():
		t.Fatalf("%s: not in time", what)
	}
}

// metricValue reads a counter or a gauge.
func metricValue(m prometheus.Metric) float64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		return -1
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}
