package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/verdict"
)

// Reasons of the dead letters the runner writes, from event.DeadLetter's closed set.
const (
	reasonPoison = "poison"
	reasonCodec  = "codec-version"
)

// maxPrefix is how many bytes of a record that could not be processed a dead letter keeps.
const maxPrefix = 1024

// block is what is stored in one step: the records of one range of offsets and what became
// of each of them. Every record ends as exactly one of a row, a stored row found again, a
// duplicate or a dead letter.
type block struct {
	first, last int64
	records     []stream.Record
	recovering  bool // the range was announced before, by this owner or another

	rows       []verdict.Row // to be inserted
	carriers   []int         // indexes of rows that carry their request's verdict
	stored     int           // records found stored under their own position while recovering
	duplicates map[string]int
	fuller     []fullerCopy
	letters    []verdict.StoredDeadLetter
	days       []time.Time // of every row the block may touch
}

// fullerCopy is a record of an event already stored with less content.
type fullerCopy struct {
	row   verdict.Row
	known verdict.KnownRow
}

// token names the block for the store: the same range gives the same token, whoever owns
// the partition and however often the range is written.
func (b *block) token(epoch uint32, partition int32) string {
	return fmt.Sprintf("ev/%d/%d/%d-%d", epoch, partition, b.first, b.last)
}

// decode turns the records into rows, in parallel, and what cannot become one into dead
// letters. Rows are in record order afterwards; no event is in the block twice.
//
// Rows refer to the memory of decoders, until those are released.
func (r *Runner) decode(b *block, epoch uint32, decoders *decoders) {
	rows := make([]verdict.Row, len(b.records))
	errs := make([]error, len(b.records))
	decoders.grow(len(b.records))
	r.parallel(len(b.records), func(from, to int) {
		for i := from; i < to; i++ {
			rows[i], errs[i] = decodeRecord(&(*decoders)[i/stretch], &b.records[i], epoch)
		}
	})
	b.duplicates = map[string]int{}
	at := make(map[event.Hash128]int, len(rows))
	b.rows = rows[:0]
	for i := range rows {
		if errs[i] != nil {
			b.letters = append(b.letters, r.deadLetter(&b.records[i], epoch, errs[i]))
			continue
		}
		b.days = addDay(b.days, &rows[i])
		j, twice := at[rows[i].EventKey]
		if !twice {
			at[rows[i].EventKey] = len(b.rows)
			b.rows = append(b.rows, rows[i])
			continue
		}
		if rows[i].Content == b.rows[j].Content {
			b.duplicates[duplicateEvent]++
			continue
		}
		b.duplicates[duplicateContent]++
		if rows[i].Size > b.rows[j].Size {
			b.rows[j] = withContentOf(b.rows[j], &rows[i])
		}
	}
}

// decoders have the memory of a block's events, one decoder for each stretch of records.
type decoders []event.Decoder

// grow sees to it that there are enough for so many records.
func (d *decoders) grow(records int) {
	if n := (records + stretch - 1) / stretch; n > len(*d) {
		*d = append(*d, make([]event.Decoder, n-len(*d))...)
	}
}

// release gives the memory of a block's events to those of the next, and lets go of the
// records they refer to: the next are fetched meanwhile.
func (d decoders) release() {
	for i := range d {
		d[i].Reuse()
	}
}

// decodeRecord reads one record of audit.events.
func decodeRecord(d *event.Decoder, rec *stream.Record, epoch uint32) (verdict.Row, error) {
	if rec.Err != nil {
		return verdict.Row{}, rec.Err
	}
	if rec.Kind != stream.KindEvent {
		return verdict.Row{}, fmt.Errorf("record of kind %q on the event topic", rec.Kind)
	}
	e, err := d.Decode(rec.Value, rec.Bodies)
	if err != nil {
		return verdict.Row{}, err
	}
	e.Server = rec.APIServer
	request := event.RequestKey(rec.Cluster, e)
	content := rec.Content
	if content == (event.Hash128{}) {
		content = event.Content(rec.Value)
	}
	position := rec.Position
	position.Epoch = epoch
	return verdict.Row{
		Cluster: rec.Cluster, Source: rec.Source, APIServer: rec.APIServer, Received: rec.Received,
		Position: position, EventKey: event.EventKey(request, e), Request: request,
		Content: content, Size: len(rec.Value), Event: e, Sign: 1, Revision: 1,
	}, nil
}

// withContentOf returns the row with the content of a fuller copy of the same event. It
// keeps its place and provenance: the row is still the record that was stored first.
func withContentOf(row verdict.Row, fuller *verdict.Row) verdict.Row {
	row.Event, row.Content, row.Size = fuller.Event, fuller.Content, fuller.Size
	return row
}

// classify compares the block with what the store holds already: rows stored before are
// dropped, and of each request the first row that can carry a verdict is made its carrier
// unless a stored row is that already. Stage RequestReceived precedes the decision and
// never carries it.
func (b *block) classify(known []verdict.KnownRow) {
	events := make(map[event.Hash128]verdict.KnownRow, len(known))
	judged := make(map[event.Hash128]bool, len(known))
	for _, k := range known {
		events[k.EventKey] = k
		if k.HasVerdict {
			judged[k.Request] = true
		}
	}
	rows := b.rows
	b.rows = rows[:0]
	for i := range rows {
		row := rows[i]
		if k, ok := events[row.EventKey]; ok {
			b.countStored(row, k)
			continue
		}
		if row.Event.Stage != event.StageRequestReceived && !judged[row.Request] {
			judged[row.Request] = true
			b.carriers = append(b.carriers, len(b.rows))
		}
		b.rows = append(b.rows, row)
	}
}

// countStored decides what a row is whose event the store holds as k.
func (b *block) countStored(row verdict.Row, k verdict.KnownRow) {
	own := row.Position == k.Position
	switch {
	case own && b.recovering:
		b.stored++
	case own:
		b.duplicates[duplicatePosition]++
	case row.Content != k.Content:
		b.duplicates[duplicateContent]++
	default:
		b.duplicates[duplicateEvent]++
	}
	// A smaller copy says less, and one of equal size nothing more. A row of another partition,
	// from before another layout, is not this owner's to replace.
	if row.Content != k.Content && row.Size > k.Size && row.Position.Partition == k.Position.Partition {
		b.fuller = append(b.fuller, fullerCopy{row, k})
	}
}

// judge replays the carriers, in parallel. A row whose replay panics becomes a dead letter:
// the bug is counted, the partition goes on.
func (r *Runner) judge(b *block, epoch uint32) {
	bad := make([]error, len(b.carriers))
	var allowed allowances
	r.metrics.replay.Add(r.parallel(len(b.carriers), func(from, to int) {
		for i := from; i < to; i++ {
			row := &b.rows[b.carriers[i]]
			if row.Verdict, bad[i] = r.verdict(allowed.of(row.Cluster), row.Cluster, row.Event); bad[i] == nil {
				row.Marks = r.tag(row)
				r.learn(row)
				r.noteAge(row)
			}
		}
	}).Seconds())
	remove := map[int]bool{}
	for i, err := range bad {
		if err != nil {
			row := &b.rows[b.carriers[i]]
			remove[b.carriers[i]] = true
			b.letters = append(b.letters, r.deadLetter(b.record(row.Position.Offset), epoch, err))
		}
	}
	if len(remove) == 0 {
		return
	}
	kept := make([]verdict.Row, 0, len(b.rows)-len(remove))
	for i := range b.rows {
		if !remove[i] {
			kept = append(kept, b.rows[i])
		}
	}
	b.rows = kept
}

// record returns the record at an offset of the block.
func (b *block) record(offset int64) *stream.Record {
	i, _ := slices.BinarySearchFunc(b.records, offset, func(r stream.Record, o int64) int {
		return int(r.Position.Offset - o)
	})
	return &b.records[i]
}

// verdict replays one event against the state of its cluster, within an allowance.
func (r *Runner) verdict(a *replay.Allowance, cluster string, e *event.Event) (v *verdict.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.metrics.panics.Inc()
			v, err = nil, fmt.Errorf("replay of event %q panicked: %v", e.AuditID, p)
		}
	}()
	return r.engine.ReplayWithin(a, e, r.states.of(cluster)), nil
}

// tag returns the marks of a row with a verdict. A rule that panics costs the row its marks,
// not its verdict.
func (r *Runner) tag(row *verdict.Row) (marks []verdict.Mark) {
	if r.cfg.Tagger == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			r.metrics.panics.Inc()
			r.log.Error("detection rules panicked; the request has no marks", zap.Any("panic", p), zap.String("cluster", row.Cluster))
			marks = nil
		}
	}()
	return r.cfg.Tagger.Tag(row.Cluster, row.Event, row.Verdict)
}

// stretch is how many neighbours in a block are worked on together.
const stretch = 64

// parallel calls f for stretches that make up 0..n-1, from a bounded number of goroutines, and
// returns, when all calls have, the time they took together. Each goroutine takes a stretch at
// a time: neighbours in a log tend to cost the same, and a stretch keeps two goroutines off
// one cache line.
func (r *Runner) parallel(n int, f func(from, to int)) time.Duration {
	workers := min(r.cfg.Parallel, (n+stretch-1)/stretch)
	began := time.Now()
	if workers <= 1 {
		if n > 0 {
			f(0, n)
		}
		return time.Since(began)
	}
	var next, spent atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			began := time.Now()
			defer func() { spent.Add(int64(time.Since(began))) }()
			for {
				from := int(next.Add(stretch)) - stretch
				if from >= n {
					return
				}
				f(from, min(from+stretch, n))
			}
		})
	}
	wg.Wait()
	return time.Duration(spent.Load())
}

// deadLetter describes a record that could not be processed. The store tells dead letters
// apart by position, and these have one in another topic than audit.deadletter: their
// partition p is written as −(2p+1) for audit.events and −(2p+2) for audit.policy.
func (r *Runner) deadLetter(rec *stream.Record, epoch uint32, err error) verdict.StoredDeadLetter {
	partition := -(2*rec.Position.Partition + 1)
	if rec.Topic == stream.TopicPolicy {
		partition--
	}
	l := storedLetter(rec, unread(rec, err), event.Position{Epoch: epoch, Partition: partition, Offset: rec.Position.Offset})
	if r.cfg.Redact != nil {
		l.Prefix = r.cfg.Redact(rec.Value)
		l.Prefix = l.Prefix[:min(len(l.Prefix), maxPrefix)]
	}
	return l
}

// unread says of a record that it could not be processed, and why: in one of the closed set of reasons.
func unread(rec *stream.Record, err error) event.DeadLetter {
	reason := reasonPoison
	if errors.Is(err, stream.ErrCodecVersion) {
		reason = reasonCodec
	}
	return event.DeadLetter{Cluster: rec.Cluster, Source: "replay", Reason: reason, Detail: err.Error(),
		Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(rec.Value)), Size: int64(len(rec.Value))}
}

// storedLetter gives a dead letter its place, and the time its record came.
func storedLetter(rec *stream.Record, letter event.DeadLetter, at event.Position) verdict.StoredDeadLetter {
	l := verdict.StoredDeadLetter{DeadLetter: letter, Position: at, Received: rec.Received}
	if l.Received.IsZero() {
		l.Received = rec.Appended
	}
	return l
}

// saveLetters stores the dead letters of a block.
func (r *Runner) saveLetters(ctx context.Context, token string, letters []verdict.StoredDeadLetter) error {
	if len(letters) == 0 {
		return nil
	}
	_, err := r.retry(ctx, opDeadLetters, func() error { return r.store.SaveDeadLetters(ctx, token, letters) })
	return err
}

// addDay adds the UTC day a row's request was received on to a short sorted list.
func addDay(days []time.Time, row *verdict.Row) []time.Time {
	d := row.Event.RequestReceivedTimestamp.UTC().Truncate(24 * time.Hour)
	i, found := slices.BinarySearchFunc(days, d, time.Time.Compare)
	if found {
		return days
	}
	return slices.Insert(days, i, d)
}
