package runner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/test/perevent"
	"github.com/retrial-io/retrial/verdict"
)

// nowhere is a store that takes everything and keeps nothing.
type nowhere struct{ Store }

func (nowhere) Known(context.Context, []verdict.Row) ([]verdict.KnownRow, error) { return nil, nil }
func (nowhere) Insert(context.Context, string, []verdict.Row) error              { return nil }

type noCommits struct{ Partition }

func (noCommits) Commit(context.Context, int64, stream.Pending) error { return nil }

// BenchmarkSettle measures decode, keys, duplicates and replay of real events under their
// real state, without broker and store.
func BenchmarkSettle(b *testing.B) {
	events, snap := recording(b, "testdata/events.jsonl", "testdata/state.json")
	log := newSimLog(simPlan{}, 1, 1)
	source := &simSource{log, &life{world: &simWorld{}, instant: true}}
	r, err := New(Config{Hold: -1}, source, replay.New(replay.Config{}), nowhere{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := heldState(r.states, sample).LoadSnapshot(snap); err != nil {
		b.Fatal(err)
	}
	feed := &simFeed{done: make(chan struct{}), pos: map[int32]int64{}, moved: make(chan struct{})}
	r.gate.open(feed)
	const rows = 12_000
	records := make([]stream.Record, 0, rows)
	size := 0
	for i := range rows {
		e := *events[i%len(events)]
		e.AuditID = fmt.Sprintf("%s-%d", e.AuditID, i)
		rec := streamtest.EventRecord(sample, "import", "", time.Unix(0, 0), &e)
		rec.Position = event.Position{Offset: int64(i)}
		records = append(records, rec)
		size += len(rec.Value)
	}
	m := perevent.Start(b)
	for b.Loop() {
		l := &lane{r: r, p: noCommits{}, log: r.log, progress: r.board.own(stream.TopicEvents, 0, 0), held: map[string]bool{sample: true}}
		if err := l.settle(b.Context(), &block{first: 0, last: rows - 1, records: records}); err != nil {
			b.Fatal(err)
		}
	}
	m.Report(rows*b.N, int64(size)*int64(b.N))
}
