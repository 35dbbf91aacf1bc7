package runner

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// bornHere reports whether an event creates the namespace kube-system: whoever has seen that knows
// of everything since the cluster was made.
func bornHere(e *event.Event) bool {
	return e.Verb == "create" && e.RequestURI == "/api/v1/namespaces" && e.ObjectRef != nil && e.ObjectRef.Name == "kube-system" &&
		e.Code() == 201
}

// stateAdds counts the verdicts on a log that a state file changes when it comes after all
// policy of the log.
func stateAdds(t *testing.T, m *material) (changed int) {
	t.Helper()
	engine, before := replay.New(replay.Config{}), state.New(sample)
	for i := range m.policy {
		obs, err := observationsOf(new(event.Decoder), &m.policy[i])
		if err != nil {
			t.Fatal(err)
		}
		before.Apply(obs...)
	}
	seen := map[event.Hash128]bool{}
	for i := range m.records {
		e, err := event.Decode(m.records[i].Value)
		if err != nil {
			t.Fatal(err)
		}
		// Of the stages of a request one carries the verdict; which, the runner decides.
		if k := event.RequestKey(sample, e); replay.Judged(e) && !seen[k] {
			seen[k] = true
			if !codec.SameVerdict(engine.Replay(e, before), engine.Replay(e, m.whole)) {
				changed++
			}
		}
	}
	return changed
}

// A whole recorded log through broker and store, then again, then the state that makes all
// of it judgeable. The recording shows how its cluster was made, so that the state tells nothing
// new of it; of a cluster that was there before its log, the state decides whatever nobody wrote to meanwhile.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole recording takes its time; a slice runs with -short")
	}
	dir := filepath.Join("..", "..", "internal", "sample")
	whole := materialOf(t, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "state.json"), nil)
	if n := stateAdds(t, &whole); n != 0 {
		t.Errorf("the state changes %d verdicts of a cluster whose making is recorded", n)
	}
	m := materialOf(t, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "state.json"), bornHere)
	if whole.events-m.events != 1 {
		t.Fatalf("%d events make the cluster, want 1", whole.events-m.events)
	}
	adds := stateAdds(t, &m)
	if adds < 1000 {
		t.Fatalf("the state changes %d verdicts of %d events", adds, m.events)
	}
	store := storagetest.Open(t)
	p := newPipeline(t, startBroker(t), store)
	send := func(what string, records []stream.Record) {
		began := time.Now()
		for from := 0; from < len(records); from += 5000 {
			p.send(t, records[from:min(from+5000, len(records))]...)
		}
		sent := time.Since(began)
		p.drain(t)
		t.Logf("%s: %d records sent in %s, settled in %s, %.0f/s", what, len(records), sent, time.Since(began), float64(len(records))/
			time.Since(began).Seconds())
	}
	send("policy", m.policy)
	send("events", m.records)
	send("events again", m.records)
	if out := p.life.sums(t)["retrial_runner_out_total"]; out != float64(m.events) {
		t.Errorf("%v rows stored, want %d", out, m.events)
	}
	send("the state, late", m.snapshot)
	p.stop()
	sums := p.life.sums(t)
	t.Logf("%v verdicts judged again, %v corrected, %v s of replay", sums["retrial_runner_rejudged_total"],
		sums["retrial_runner_corrections_total"], sums["retrial_runner_replay_cpu_seconds_total"])
	var rows []verdict.Row
	if err := store.Affected(t.Context(), verdict.AffectedFilter{Cluster: sample, Partitions: []int32{0, 1, 2, 3}},
		func(row verdict.Row) error {
			rows = append(rows, row)
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	if corrected := m.compare(t, rows); corrected != adds || sums["retrial_runner_corrections_total"] < float64(adds) {
		t.Errorf("%d rows corrected by %v corrections, want %d", corrected, sums["retrial_runner_corrections_total"], adds)
	}
}
