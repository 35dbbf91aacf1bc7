package runner

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
)

const sample = "sample"

// unpack reads a .zst file of testdata.
func unpack(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// recorded returns real events and the state they ran against.
func recorded(t testing.TB) ([]*event.Event, state.Snapshot) {
	t.Helper()
	var events []*event.Event
	for line := range bytes.Lines(unpack(t, "events.jsonl.zst")) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	snap, _, err := state.ReadSnapshot(bytes.NewReader(unpack(t, "state.json.zst")))
	if err != nil {
		t.Fatal(err)
	}
	return events, snap
}

// pipeline is a runner on the embedded broker.
type pipeline struct {
	*Runner
	client *stream.Client
	rows   *simRows
	stop   func()
}

func newPipeline(t testing.TB, broker *embedded.Broker, rows *simRows) *pipeline {
	t.Helper()
	log := zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))
	client, err := stream.NewClient(stream.Config{Brokers: []string{broker.Addr()}, Dial: broker.Dial, FetchWait: 20 * time.Millisecond,
		HeartbeatInterval: 100 * time.Millisecond, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := client.EnsureTopics(ctx); err != nil {
		t.Fatal(err)
	}
	l := &life{world: &simWorld{}, cancel: func() {}}
	r, err := New(Config{Hold: -1, Linger: -1, Log: log, Registerer: prometheus.NewRegistry()},
		Kafka{client}, replay.New(replay.Config{}), &simStore{rows, l, l.rng("store", 0)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return &pipeline{r, client, rows, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}}
}

func (p *pipeline) send(t testing.TB, recs ...stream.Record) {
	t.Helper()
	if err := p.client.Producer().Produce(t.Context(), recs...); err != nil {
		t.Fatal(err)
	}
}

func (p *pipeline) drain(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.WaitDrained(ctx); err != nil {
		t.Fatalf("%v, lag %+v", err, p.Lag())
	}
}

// Real events through the embedded broker: stored once however often they come, judged with
// what is known, corrected when the rest becomes known after a restart.
func TestRecordedEventsThroughKafka(t *testing.T) {
	events, snap := recorded(t)
	broker, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Consumers: stream.Consumers(""), Verify: stream.VerifyCommit})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	rows := newSimRows("")
	p := newPipeline(t, broker, rows)
	received := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	var records, policy []stream.Record
	whole := state.New(sample)
	for _, e := range events {
		records = append(records, stream.EventRecord(sample, "import", "", received, e))
		if event.KeepsPolicy(e) {
			policy = append(policy, stream.PolicyEventRecord(sample, "import", "", received, e))
			obs, err := state.FromEvent(e)
			if err != nil {
				t.Fatal(err)
			}
			whole.Apply(obs...)
		}
	}
	if len(policy) < 10 {
		t.Fatalf("only %d policy writes among the recorded events", len(policy))
	}
	p.send(t, policy[:len(policy)/2]...)
	p.send(t, records...)
	p.drain(t)
	before := len(rows.standing())
	p.send(t, records[:200]...)
	p.drain(t)
	p.stop()

	p = newPipeline(t, broker, rows)
	p.send(t, policy[len(policy)/2:]...)
	for _, o := range snap.Observations() {
		whole.Apply(o)
		p.send(t, stream.PolicyRecord(stream.KindObservation, sample, "import", received, o.Append(nil)))
	}
	p.send(t, stream.DeadLetterRecord(event.DeadLetter{Cluster: sample, Reason: "malformed-item", Digest: "sha256:1"}, received))
	p.drain(t)
	p.stop()

	distinct := map[event.Hash128]bool{}
	for _, e := range events {
		distinct[event.EventKey(event.RequestKey(sample, e), e)] = true
	}
	standing := rows.standing()
	if before != len(distinct) || len(standing) != len(distinct) {
		t.Errorf("%d rows stand, %d before the second delivery, want %d", len(standing), before, len(distinct))
	}
	if len(rows.letters) != 1 {
		t.Errorf("%d dead letters, want 1", len(rows.letters))
	}
	engine := replay.New(replay.Config{})
	corrected, wrong := 0, 0
	for _, row := range standing {
		if row.Verdict == nil {
			continue
		}
		if row.Revision > 1 {
			corrected++
		}
		if want := engine.Replay(row.Event, whole); !sameVerdict(row.Verdict, want) {
			if wrong++; wrong <= 5 {
				t.Errorf("%s %s of %s: %s %q, from scratch %s %q", row.Event.Verb, row.Event.RequestURI, row.Event.User.Username,
					row.Verdict.Outcome, row.Verdict.Cause, want.Outcome, want.Cause)
			}
		}
	}
	if corrected == 0 || wrong > 0 {
		t.Errorf("%d of %d verdicts corrected, %d wrong", corrected, len(standing), wrong)
	}
	scratch := rollupOf(standing)
	for k, n := range scratch {
		if rows.rollup[k] != n {
			t.Errorf("rollup %+v is %d, want %d", k, rows.rollup[k], n)
		}
	}
}
