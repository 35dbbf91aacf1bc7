package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/verdict"
)

// settle brings every record of the block to its end: a row, a stored row, a duplicate or a
// dead letter, here or in the partition it belongs to. It returns an error only when the partition is lost or the process stops;
// the range then stays announced.
func (l *lane) settle(ctx context.Context, b *block) error {
	r := l.r
	if err := l.pass(ctx); err != nil {
		return err
	}
	if err := l.divide(ctx, b); err != nil {
		return err
	}
	done := r.timed(stepDecode)
	r.decode(b, l.epoch, &l.decoders)
	done()
	judged := judgedBlock{spans: spansOf(b.rows)}
	if err := l.hold(ctx, judged.spans); err != nil {
		return err
	}
	if err := l.lookUp(ctx, b); err != nil {
		return err
	}
	if !b.recovering { // else somebody may have judged them before
		judged.knows = r.changes.cursor()
	}
	done = r.timed(stepReplay)
	r.judge(b, l.epoch)
	done()
	l.judged.add(judged)

	if b.recovering {
		l.announced = true
	} else if len(b.rows)+len(b.fuller)+len(b.letters) > 0 {
		if err := l.commit(ctx, b.first, stream.Pending{First: b.first, Last: b.last}); err != nil {
			return err
		}
		l.announced = true
	}
	if err := r.saveLetters(ctx, "dl"+b.token(l.epoch, l.partition), b.letters); err != nil {
		return err
	}
	if err := l.replaceFuller(ctx, b); err != nil {
		return err
	}
	if err := l.insert(ctx, b); err != nil {
		return err
	}
	l.announced, l.dirty = false, true
	l.next = b.last + 1
	r.states.stored(l.partition, judged.spans)
	r.count(b)
	l.decoders.release()
	l.progress.set(l.next, l.end, l.corrected)
	r.observeLag(stream.TopicEvents)
	return nil
}

// pass waits until the policy reader has applied everything that is in the policy topic
// now. "Now" is after the records were fetched and a hold after they were appended: the
// first makes "policy copy first, event second" safe under any clock, the second gives late
// copies time.
func (l *lane) pass(ctx context.Context) error {
	began := time.Now()
	defer func() { l.r.metrics.hold.Observe(time.Since(began).Seconds()) }()
	bounded, cancel := context.WithTimeout(ctx, l.r.cfg.HoldLimit)
	defer cancel()
	ends, err := l.r.gate.horizon(bounded)
	if err == nil {
		err = l.r.gate.wait(bounded, ends)
	}
	if err != nil && ctx.Err() == nil {
		// What the reader has not reached yet will be corrected for.
		l.r.metrics.holdTimeouts.Inc()
		l.log.Warn("policy reader does not get on; judging with what is known", zap.Error(err))
		return nil
	}
	return ctx.Err()
}

// lookUp asks the store what it knows of the block's requests.
func (l *lane) lookUp(ctx context.Context, b *block) error {
	defer l.r.timed(stepKnown)()
	known, err := l.known(ctx, b.rows)
	if err != nil {
		return err
	}
	b.classify(known)
	return nil
}

func (l *lane) known(ctx context.Context, rows []verdict.Row) (known []verdict.KnownRow, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	_, err = l.r.retry(ctx, opKnown, func() (err error) {
		known, err = l.r.store.Known(ctx, rows)
		return err
	}, zap.Int32("partition", l.partition))
	return known, err
}

// insert writes the block's rows. After an error, or when an earlier owner may have written
// them, the outcome is established first: what is missing is written under the same token,
// then the rollups are made equal to the rows.
func (l *lane) insert(ctx context.Context, b *block) error {
	defer l.r.timed(stepInsert)()
	defer func(began time.Time) { l.inserting = time.Since(began) }(time.Now())
	token := b.token(l.epoch, l.partition)
	if !b.recovering {
		if len(b.rows) == 0 {
			return nil
		}
		err := l.r.store.Insert(ctx, token, b.rows)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// Its outcome is unknown: it is settled as if another owner had made it.
		pace := backoff{r: l.r, operation: opInsert}
		if err := pace.pause(ctx, err, zap.String("token", token), zap.Int("rows", len(b.rows))); err != nil {
			return err
		}
		defer l.r.metrics.recovered.Inc()
	}
	missing, err := l.missing(ctx, b.rows)
	if err != nil {
		return err
	}
	// The store may have taken the token for another set of rows only if this release reads
	// a record that the one before could not, or the other way round. Such rows get a token
	// of their own.
	for n := 0; len(missing) > 0; n++ {
		t := token
		if n > 0 {
			t = fmt.Sprintf("%s/%d", token, n)
		}
		if _, err := l.r.retry(ctx, opInsert, func() error { return l.r.store.Insert(ctx, t, missing) },
			zap.String("token", t)); err != nil {
			return err
		}
		if missing, err = l.missing(ctx, missing); err != nil {
			return err
		}
	}
	return l.recover(ctx, b.days)
}

// missing returns the rows whose events the store does not hold.
func (l *lane) missing(ctx context.Context, rows []verdict.Row) ([]verdict.Row, error) {
	known, err := l.known(ctx, rows)
	if err != nil {
		return nil, err
	}
	stored := make(map[event.Hash128]bool, len(known))
	for _, k := range known {
		stored[k.EventKey] = true
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r verdict.Row) bool { return stored[r.EventKey] }), nil
}

// recover makes the rollups of some days equal to the stored rows.
func (l *lane) recover(ctx context.Context, days []time.Time) error {
	if len(days) == 0 {
		return nil
	}
	_, err := l.r.retry(ctx, opRecover, func() error { return l.r.store.Recover(ctx, l.partition, l.epoch, days) },
		zap.Int32("partition", l.partition))
	return err
}

// replaceFuller puts the content of fuller copies into the rows that stand for their events.
func (l *lane) replaceFuller(ctx context.Context, b *block) error {
	if len(b.fuller) == 0 {
		return nil
	}
	known := make([]verdict.KnownRow, len(b.fuller))
	copies := make(map[event.Hash128]*verdict.Row, len(b.fuller))
	for i := range b.fuller {
		known[i] = b.fuller[i].known
		copies[known[i].EventKey] = &b.fuller[i].row
	}
	var standing []verdict.Row
	if _, err := l.r.retry(ctx, opAffected, func() error {
		standing = standing[:0]
		return l.r.store.Standing(ctx, known, func(row verdict.Row) error {
			standing = append(standing, row)
			return nil
		})
	}); err != nil {
		return err
	}
	var pairs []verdict.Row
	for i := range standing {
		old := standing[i]
		fuller := withContentOf(old, copies[old.EventKey])
		v := old.Verdict
		if v != nil && replay.Kept(l.r.states.of(fuller.Cluster), fuller.Event.RequestReceivedTimestamp) {
			var err error
			if v, err = l.r.verdict(nil, fuller.Cluster, fuller.Event); err != nil {
				l.log.Error("fuller copy cannot be judged; the first copy stands", zap.Error(err))
				continue
			}
		}
		pairs = append(pairs, l.r.pair(old, fuller, v)...)
	}
	failed, err := l.insertPairs(ctx, "fu", pairs)
	if err != nil || !failed || b.recovering {
		return err // while recovering, the rollups of the block's days are settled after its rows
	}
	return l.recover(ctx, b.days)
}

// count adds a settled block to the figures; in = out + dead-lettered + duplicates.
func (r *Runner) count(b *block) {
	m := r.metrics
	m.blocks.Observe(float64(len(b.records)))
	m.in.Add(float64(len(b.records)))
	m.out.Add(float64(len(b.rows) + b.stored))
	for kind, n := range b.duplicates {
		m.duplicates.WithLabelValues(kind).Add(float64(n))
	}
	for i := range b.letters {
		m.deadLettered.WithLabelValues(b.letters[i].Reason).Inc()
	}
	for i := range b.rows {
		if v := b.rows[i].Verdict; v != nil {
			m.verdicts.WithLabelValues(v.Outcome.String()).Inc()
		}
	}
}

// The layout of audit.events says which partition a request belongs to. A barrier in every partition tells of another one:
//
//	what is before the barrier           stored where it stands, as by the layout before
//	the barrier                          the layout is committed with the offset after it
//	until all partitions have done that  nothing behind it is settled: copies of it may wait in another partition
//	what is behind it                    stored if it stands in the right partition, else appended to that
//
// So of the copies of an event, those before the barriers are in one partition, those behind them in one, and the look-up of the second
// finds what the first has stored.

// Pace of a lane that waits for the other partitions.
const (
	waitMin = 200 * time.Millisecond
	waitMax = 2 * time.Second
	// overdue is when a lane says that it waits, and tells the others of the layout: who announced it may have been interrupted.
	overdue = 30 * time.Second
)

// entry is a lane's wait for the partitions that have not reached its layout.
type entry struct {
	since time.Time // zero: it does not wait
	next  time.Duration
	told  bool
}

// barrier returns the layout that the first record of the queue tells of.
func (l *lane) barrier() (stream.Layout, bool) {
	if len(l.queue) == 0 {
		return stream.Layout{}, false
	}
	return stream.DecodeLayout(&l.queue[0])
}

// cross passes a barrier; all before it is settled.
func (l *lane) cross(ctx context.Context, to stream.Layout) error {
	l.next = l.queue[0].Position.Offset + 1
	l.queue = l.queue[1:]
	l.dirty = true
	l.r.metrics.barriers.Inc()
	if l.follow(to) {
		if err := l.confirm(ctx); err != nil {
			return err
		}
		l.log.Info("passed the barrier of a layout", zap.Stringer("layout", to), zap.Int64("offset", l.next-1))
	}
	l.progress.set(l.next, l.end, l.corrected)
	return nil
}

// follow takes a layout, unless it is the one at hand or an earlier one.
func (l *lane) follow(to stream.Layout) bool {
	if to.Compare(l.layout) <= 0 {
		return false
	}
	l.layout, l.entered = to, false
	return true
}

// enter reports whether every partition has reached the lane's layout. While that is not so, it pauses; corrections go on in between.
func (l *lane) enter(ctx context.Context) (entered bool, err error) {
	if l.entered || l.layout.Epoch == 0 {
		return true, nil
	}
	behind, err := l.behindLayout(ctx)
	if err != nil {
		return false, err
	}
	w := &l.entry
	if len(behind) > 0 {
		if w.since.IsZero() {
			*w = entry{since: time.Now(), next: waitMin}
			l.r.metrics.waiting.Inc()
		}
		if !w.told && time.Since(w.since) > overdue {
			w.told = true
			l.log.Warn("waiting for partitions that have not reached the layout; nothing behind its barrier is stored meanwhile",
				zap.Stringer("layout", l.layout), zap.Int32s("partitions", behind))
			if err := l.announce(ctx, behind...); err != nil {
				return false, err
			}
		}
		pause := w.next
		w.next = min(2*w.next, waitMax)
		return false, sleep.For(ctx, pause)
	}
	// All have the barrier, so producers may know of it. Who announced it may not have said so.
	if err := l.announce(ctx); err != nil {
		return false, err
	}
	l.entered = true
	l.endWait()
	return true, nil
}

// endWait takes the lane off the metric of those that wait.
func (l *lane) endWait() {
	if !l.entry.since.IsZero() {
		l.entry = entry{}
		l.r.metrics.waiting.Dec()
	}
}

// behindLayout returns the partitions that have not committed the lane's layout or a later one.
func (l *lane) behindLayout(ctx context.Context) (behind []int32, err error) {
	var commits map[int32]stream.Commit
	if _, err := l.r.retry(ctx, opLayout, func() (err error) {
		commits, err = l.r.source.Commits(ctx, stream.TopicEvents)
		return err
	}); err != nil {
		return nil, err
	}
	for p := range l.layout.Partitions {
		if p != l.partition && commits[p].Pending.Layout.Compare(l.layout) < 0 {
			behind = append(behind, p)
		}
	}
	return behind, nil
}

func (l *lane) announce(ctx context.Context, partitions ...int32) error {
	_, err := l.r.retry(ctx, opLayout, func() error { return l.r.source.Announce(ctx, l.layout, partitions...) })
	return err
}

// misplaced reports whether a record stands in another partition than its own. One whose headers cannot be read belongs nowhere else.
func misplaced(l stream.Layout, rec *stream.Record) bool {
	return l.Epoch > 0 && rec.Err == nil && l.PartitionOf(rec.Cluster, rec.Key) != rec.Position.Partition
}

// divide takes out of a block what is not stored: records that belong to another partition, which it appends to that, and barriers, which a
// range can hold that an earlier release announced.
func (l *lane) divide(ctx context.Context, b *block) error {
	var misplaced []stream.Record
	keep := b.records[:0]
	for i := range b.records {
		rec := &b.records[i]
		switch to, ok := stream.DecodeLayout(rec); {
		case ok:
			l.follow(to)
			l.r.metrics.barriers.Inc()
		case l.r.misplaced(l.layout, rec):
			misplaced = append(misplaced, *rec)
		case len(keep) == i:
			keep = b.records[:i+1]
		default:
			keep = append(keep, *rec)
		}
	}
	clear(b.records[len(keep):])
	b.records = keep
	if len(misplaced) == 0 {
		return nil
	}
	if _, err := l.r.retry(ctx, opForward, func() error { return l.r.source.Forward(ctx, l.layout, misplaced) },
		zap.Int32("partition", l.partition)); err != nil {
		return err
	}
	l.r.metrics.forwarded.Add(float64(len(misplaced)))
	l.r.forwards.Add(1)
	if !l.forwarded {
		l.forwarded = true
		l.log.Info("events stood in another partition than theirs and were appended to that; some receiver has not noticed the layout yet",
			zap.Stringer("layout", l.layout), zap.Int("events", len(misplaced)))
	}
	return nil
}
