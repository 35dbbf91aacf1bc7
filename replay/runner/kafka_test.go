package runner

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/testfile"
	"github.com/retrial-io/retrial/verdict"
)

const sample = "sample"

// recording returns the events of a log and the state they ran against.
func recording(t testing.TB, log, objects string) ([]*event.Event, observe.Snapshot) {
	t.Helper()
	var events []*event.Event
	for line := range bytes.Lines(testfile.Read(t, log)) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	snap, _, err := observe.ReadSnapshot(bytes.NewReader(testfile.Read(t, objects)))
	if err != nil {
		t.Fatal(err)
	}
	return events, snap
}

// material is what the tests send: real events, the copies of the policy writes among them,
// the state they ran against, and the state all of it adds up to.
type material struct {
	records, policy, snapshot []stream.Record
	whole                     *state.State
	events                    int // distinct
}

func materials(t testing.TB) material {
	t.Helper()
	m := materialOf(t, "testdata/events.jsonl", "testdata/state.json", nil)
	if len(m.policy) < 10 {
		t.Fatalf("only %d policy writes among the recorded events", len(m.policy))
	}
	return m
}

// materialOf leaves out the events that without selects, if it is not nil.
func materialOf(t testing.TB, log, objects string, without func(*event.Event) bool) material {
	t.Helper()
	events, snap := recording(t, log, objects)
	if without != nil {
		events = slices.DeleteFunc(events, without)
	}
	received := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	m := material{whole: state.New(sample)}
	distinct := map[event.Hash128]bool{}
	for _, e := range events {
		distinct[event.EventKey(event.RequestKey(sample, e), e)] = true
		m.records = append(m.records, streamtest.EventRecord(sample, "import", "", received, e))
		if event.KeepsPolicy(e) {
			m.policy = append(m.policy, streamtest.PolicyEventRecord(sample, "import", "", received, e))
			obs, err := observe.FromEvent(e)
			if err != nil {
				t.Fatal(err)
			}
			m.whole.Apply(obs...)
		}
	}
	for _, o := range snap.Observations() {
		m.whole.Apply(o)
		m.snapshot = append(m.snapshot, stream.PolicyRecord(stream.KindObservation, sample, "import", received, o.Append(nil)))
	}
	m.events = len(distinct)
	return m
}

func startBroker(t testing.TB) *embedded.Broker {
	t.Helper()
	return startBrokerWith(t, stream.Consumers(""))
}

func startBrokerWith(t testing.TB, consumers map[string][]string) *embedded.Broker {
	t.Helper()
	broker, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Consumers: consumers, Verify: stream.VerifyCommit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	return broker
}

// pipeline is a runner on the embedded broker.
type pipeline struct {
	*Runner
	life   *life // holds the registry
	client *stream.Client
	stop   func()
}

func newPipeline(t testing.TB, broker *embedded.Broker, store Store) *pipeline {
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
	l := &life{reg: prometheus.NewRegistry()}
	r, err := New(Config{Tagger: simTagger{}, Hold: -1, Linger: -1, Log: log, Registerer: l.reg}, Kafka{client},
		replay.New(replay.Config{}), store)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return &pipeline{r, l, client, func() {
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

// patience bounds every wait; a machine that is busy with other tests is slow.
const patience = 4 * time.Minute

func (p *pipeline) drain(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.WaitDrained(ctx); err != nil {
		t.Fatalf("%v, lag %+v", err, p.Lag())
	}
}

// quietStore returns a store that never fails.
func quietStore(rows *simRows) *simStore {
	return &simStore{rows, &life{world: &simWorld{}, cancel: func() {}, instant: true}}
}

// sendInTwoRuns sends the events with half the policy, some of them again, and after a
// restart the rest of the policy.
func sendInTwoRuns(t *testing.T, m material, store Store) (first, second map[string]float64) {
	t.Helper()
	broker := startBroker(t)
	p := newPipeline(t, broker, store)
	p.send(t, m.policy[:len(m.policy)/2]...)
	p.send(t, m.records...)
	p.drain(t)
	p.send(t, m.records[:200]...)
	p.drain(t)
	p.stop()
	first = p.life.sums(t)

	p = newPipeline(t, broker, store)
	p.send(t, m.policy[len(m.policy)/2:]...)
	p.send(t, m.snapshot...)
	p.send(t, stream.DeadLetterRecord(event.DeadLetter{Cluster: sample, Reason: "malformed-item", Digest: "sha256:1"}, time.Unix(0, 0)))
	p.drain(t)
	p.stop()
	return first, p.life.sums(t)
}

// compare counts verdicts that are not what a replay from scratch gives.
func (m *material) compare(t *testing.T, rows []verdict.Row) (corrected int) {
	t.Helper()
	engine := replay.New(replay.Config{})
	wrong := 0
	for _, row := range rows {
		if row.Verdict == nil {
			continue
		}
		if row.Revision > 1 {
			corrected++
		}
		if want := engine.Replay(row.Event, m.whole); !codec.SameVerdict(row.Verdict, want) {
			if wrong++; wrong <= 5 {
				t.Errorf("%s %s of %s: %s %q, from scratch %s %q", row.Event.Verb, row.Event.RequestURI, row.Event.User.Username,
					row.Verdict.Outcome, row.Verdict.Cause, want.Outcome, want.Cause)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d verdicts corrected, %d wrong", corrected, len(rows), wrong)
	}
	return corrected
}

// Real events through the embedded broker: stored once however often they come, judged with
// what is known, corrected when the rest becomes known after a restart.
func TestRecordedEventsThroughKafka(t *testing.T) {
	m, rows := materials(t), newSimRows("")
	first, second := sendInTwoRuns(t, m, quietStore(rows))
	standing := rows.standing()
	if len(standing) != m.events {
		t.Errorf("%d rows stand, want %d", len(standing), m.events)
	}
	if in, out := first["retrial_runner_in_total"], first["retrial_runner_out_total"]; in != float64(len(m.records)+200) ||
		out != float64(m.events) {
		t.Errorf("in %v and out %v, want %d and %d", in, out, len(m.records)+200, m.events)
	}
	if len(rows.letters) != 1 {
		t.Errorf("%d dead letters, want 1", len(rows.letters))
	}
	if n := m.compare(t, standing); n == 0 || second["retrial_runner_corrections_total"] < float64(n) {
		t.Errorf("%v corrections counted for %d corrected rows", second["retrial_runner_corrections_total"], n)
	}
	scratch := rollupOf(standing)
	for k, n := range scratch {
		if rows.rollup[k] != n {
			t.Errorf("rollup %+v is %d, want %d", k, rows.rollup[k], n)
		}
	}
}

// The same with the real store: what comes back from it is what was stored, so that judging
// it again changes nothing.
func TestRecordedEventsIntoTheStore(t *testing.T) {
	store := storagetest.Open(t)
	m := materials(t)
	sendInTwoRuns(t, m, store)
	var rows []verdict.Row
	if err := store.Affected(t.Context(), verdict.AffectedFilter{Cluster: sample, Partitions: []int32{0, 1, 2, 3}},
		func(row verdict.Row) error {
			rows = append(rows, row)
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	m.compare(t, rows)
	keys := map[event.Hash128]bool{}
	for _, row := range rows {
		keys[row.EventKey] = true
	}
	if len(keys) != len(rows) {
		t.Errorf("%d rows of %d events stand", len(rows), len(keys))
	}
}

// Two processes share the partitions of a real group; the first leaves while there is work.
// Their Kafka deletes nothing for having been consumed: the embedded broker, which does, has
// one process, and here the second would find the policy log cut off that it has not read.
func TestProcessesShareTheWork(t *testing.T) {
	m, rows, broker := materials(t), newSimRows(""), startBrokerWith(t, nil)
	first := newPipeline(t, broker, quietStore(rows))
	first.send(t, m.snapshot...)
	first.send(t, m.policy...)
	first.send(t, m.records[:400]...)
	second := newPipeline(t, broker, quietStore(rows))
	for from := 400; from < len(m.records); from += 100 {
		second.send(t, m.records[from:min(from+100, len(m.records))]...)
		switch from {
		case 600: // either can tell when the work of both is done
			first.drain(t)
			second.drain(t)
		case 800:
			first.stop()
		}
	}
	second.drain(t)
	second.stop()
	standing := rows.standing()
	if len(standing) != m.events {
		t.Errorf("%d rows stand, want %d", len(standing), m.events)
	}
	engine := replay.New(replay.Config{})
	for _, row := range standing {
		if row.Verdict != nil && !codec.SameVerdict(row.Verdict, engine.Replay(row.Event, m.whole)) {
			t.Errorf("%s is %s %q", row.Event.RequestURI, row.Verdict.Outcome, row.Verdict.Cause)
		}
	}
	for k, n := range rollupOf(standing) {
		if rows.rollup[k] != n {
			t.Errorf("rollup %+v is %d, want %d", k, rows.rollup[k], n)
		}
	}
}
