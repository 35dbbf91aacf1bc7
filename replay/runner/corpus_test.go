package runner

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// A whole recorded log through broker and store, then again, then the state that makes all
// of it judgeable.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole recording takes its time; a slice runs with -short")
	}
	dir := filepath.Join("..", "..", "internal", "sample")
	m := materialOf(t, filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "state.json"))
	store := storagetest.Open(t)
	p := newPipeline(t, startBroker(t), store)
	send := func(what string, records []stream.Record) {
		began := time.Now()
		for from := 0; from < len(records); from += 5000 {
			p.send(t, records[from:min(from+5000, len(records))]...)
		}
		sent := time.Since(began)
		p.drain(t)
		t.Logf("%s: %d records sent in %s, settled in %s, %.0f/s", what, len(records), sent, time.Since(began), float64(len(records))/time.Since(began).Seconds())
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
	t.Logf("%v verdicts judged again, %v corrected, %v s of replay", sums["retrial_runner_rejudged_total"], sums["retrial_runner_corrections_total"], sums["retrial_runner_replay_cpu_seconds_total"])
	var rows []replay.Row
	if err := store.Affected(t.Context(), replay.AffectedFilter{Cluster: sample, Partitions: []int32{0, 1, 2, 3}}, func(row replay.Row) error {
		rows = append(rows, row)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	m.compare(t, rows)
}
