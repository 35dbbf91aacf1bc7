package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/verdict"
)

// firstFetchBytes is what an idle partition asks for: little enough that many of them may
// wait without a share of the memory budget.
const firstFetchBytes = 1 << 20

// behind is how many records wait in a partition that does not wait for its turn: what an insert
// costs whatever it holds is little beside what they do.
const behind = 8192

// farewell bounds the last commit of a partition that is being taken away.
const farewell = 2 * time.Second

// lane works on one assigned partition of audit.events, one block after the other:
//
//	take ─▶ hold ─▶ decode, find duplicates, replay ─▶ announce the range in the commit
//	                                                         │
//	correct ◀── next round ◀── counted as settled ◀── insert under the range's token
//
// The announcement of one block confirms the one before; an idle or revoked partition
// confirms with a commit of its own.
type lane struct {
	r         *Runner
	p         Partition
	partition int32
	epoch     uint32
	log       *zap.Logger
	progress  *progress

	queue []stream.Record // fetched, in no block yet
	// Memory of a block that is settled, for the next: an empty queue, and events.
	room     []stream.Record
	decoders decoders
	fetched  time.Time // when the last fetch returned
	end      int64     // high watermark as of then
	next     int64     // offset after the last settled record
	dirty    bool      // the commit says something else than next and corrected
	// announced: a range has been announced and not settled; only its owner-to-be or a
	// success may take the announcement back.
	announced bool
	layout    stream.Layout // of the last barrier
	entered   bool          // all partitions have reached it
	entry     entry
	forwarded bool          // what stood in the wrong partition; it is said once
	lost      error         // a commit was refused: whatever is done now is another owner's to do
	inserting time.Duration // how long the last block's insert took

	corrected map[int32]int64 // policy offsets the stored rows reflect
	// horizon holds the ends of the policy topic at assignment. An earlier owner may have
	// been correcting for any change below it, so those corrections settle rollups too.
	horizon map[int32]int64
	judged  judged // which changes the stored rows were judged with
	// held has the clusters whose state the partition needs: those it has rows of.
	held   map[string]bool
	looked time.Time // when it last looked which they are
	// everything has the rows of all clusters judged again.
	everything bool
	// jobs says how far the partition is with jobs it has worked on.
	jobs map[string]verdict.RejudgeProgress
}

// events handles one partition of audit.events while it is assigned.
func (r *Runner) events(ctx context.Context, a stream.Assignment, p Partition) error {
	l := &lane{
		r: r, p: p, partition: a.Partition, epoch: a.Epoch,
		log:  r.log.With(zap.Int32("partition", a.Partition), zap.Uint32("epoch", a.Epoch)),
		next: max(a.Committed, 0), corrected: maps.Clone(a.Metadata.PolicyOffsets), layout: a.Metadata.Layout,
		held: map[string]bool{},
	}
	defer func() { r.states.release(l.partition, slices.Collect(maps.Keys(l.held))) }()
	l.progress = r.board.own(stream.TopicEvents, a.Partition, l.next)
	r.metrics.owned.Inc()
	defer func() {
		l.endWait()
		r.metrics.owned.Dec()
		r.board.disown(stream.TopicEvents, a.Partition)
	}()
	err := l.run(ctx, a)
	if ctx.Err() != nil {
		return nil // revoked or stopping; whatever was under way is announced
	}
	return err
}

func (l *lane) run(ctx context.Context, a stream.Assignment) error {
	if err := l.resume(ctx, a); err != nil {
		return err
	}
	if err := l.lookBack(ctx); err != nil {
		return err
	}
	for {
		if time.Since(l.looked) >= lookEvery {
			if err := l.lookAgain(ctx); err != nil {
				return l.leave(ctx, err)
			}
		}
		if err := l.correct(ctx); err != nil {
			return l.leave(ctx, err)
		}
		if err := l.work(ctx); err != nil {
			return l.leave(ctx, err)
		}
		settled, err := l.round(ctx)
		if err != nil {
			return l.leave(ctx, err)
		}
		if settled {
			continue
		}
		if err := l.confirm(ctx); err != nil {
			return err
		}
		l.progress.set(l.next, l.end, l.corrected)
		l.r.observeLag(stream.TopicEvents)
	}
}

// resume settles the range an earlier owner announced.
func (l *lane) resume(ctx context.Context, a stream.Assignment) error {
	if _, err := l.r.retry(ctx, opEnds, func() (err error) {
		l.horizon, err = l.r.gate.horizon(ctx)
		return err
	}); err != nil {
		return err
	}
	for p, end := range l.horizon {
		// An offset past the end was committed for a topic that no longer exists: how far
		// the rows reflect what it held is not known any more.
		if l.corrected[p] > end {
			delete(l.corrected, p)
			l.everything = true
		}
	}
	if !a.Metadata.Has() && reached(l.corrected, l.horizon) {
		return nil
	}
	// An earlier owner was, or may have been, writing. Whatever it sent has landed or never
	// will once the store has recovered any day; one that has no events costs nothing.
	if err := l.recover(ctx, []time.Time{time.Unix(0, 0).UTC()}); err != nil {
		return err
	}
	if !a.Metadata.Has() {
		return nil
	}
	release, err := l.r.reserve(ctx, l.r.cfg.BatchBytes)
	if err != nil {
		return err
	}
	defer release()
	if err := l.fill(ctx, a.Metadata.Last); err != nil {
		return err
	}
	n := 0
	for n < len(l.queue) && l.queue[n].Position.Offset <= a.Metadata.Last {
		n++
	}
	b := &block{first: a.Metadata.First, last: a.Metadata.Last, records: l.queue[:n:n], recovering: true}
	l.queue = l.queue[n:]
	l.log.Info("settling an announced range", zap.Int64("first", b.first), zap.Int64("last", b.last), zap.Int("records", n))
	if err := l.settle(ctx, b); err != nil {
		return err
	}
	l.r.metrics.recovered.Inc()
	return nil
}

// hold sees to it that the states of clusters are loaded while the partition is assigned, with the policy that requests of these times
// need.
func (l *lane) hold(ctx context.Context, spans map[string]span) error {
	var wanted []since
	for _, cluster := range slices.Sorted(maps.Keys(spans)) {
		wanted = append(wanted, since{cluster, spans[cluster].from})
	}
	if len(wanted) == 0 {
		return nil
	}
	defer l.r.timed(stepPolicy)()
	if err := l.r.hold(ctx, l.partition, wanted, l.held); err != nil {
		return err
	}
	for _, w := range wanted {
		l.held[w.cluster] = true
	}
	return nil
}

// lookEvery is how often a partition looks which requests it still has: old ones are dropped.
const lookEvery = time.Hour

// lookBack looks which requests earlier owners stored, and holds the policy that they need: only then may the cursor pass what the policy
// topic tells of them.
func (l *lane) lookBack(ctx context.Context) error {
	spans, err := l.spans(ctx)
	if err != nil {
		return err
	}
	l.judged = judged{judgedEarlier(spans)}
	if err := l.hold(ctx, l.judged[0].spans); err != nil {
		return err
	}
	l.r.states.rows(l.partition, l.held, l.judged[0].spans)
	return nil
}

// lookAgain looks which requests there still are, so that the policy of others can be forgotten. All that were judged are stored.
func (l *lane) lookAgain(ctx context.Context) error {
	spans, err := l.spans(ctx)
	if err != nil {
		return err
	}
	l.r.states.rows(l.partition, l.held, judgedEarlier(spans).spans)
	return nil
}

func (l *lane) spans(ctx context.Context) (spans []verdict.Span, err error) {
	l.looked = time.Now()
	_, err = l.r.retry(ctx, opAffected, func() (err error) {
		spans, err = l.r.store.Spans(ctx, l.partition)
		return err
	})
	return spans, err
}

// fill fetches until the queue reaches the offset or the log ends before it.
func (l *lane) fill(ctx context.Context, last int64) error {
	for {
		if n := len(l.queue); n > 0 && l.queue[n-1].Position.Offset >= last {
			return nil
		}
		got, err := l.fetch(ctx, l.r.cfg.BatchRecords, l.r.cfg.BatchBytes)
		if err != nil {
			return err
		}
		// Nothing came although the log reaches further: either the broker was slow, or
		// retention cut the range and what follows has not been written. What was cut is
		// counted by the stream; waiting would not bring it back.
		if got == 0 && (l.end <= last || l.p.Position() > last) {
			return nil
		}
	}
}

// round takes and settles one block; false means that there was nothing to do.
//
// The wait for the hold comes before the block has its share of the memory: until then the
// queue is one small fetch, however many partitions wait.
func (l *lane) round(ctx context.Context) (settled bool, err error) {
	if entered, err := l.enter(ctx); !entered {
		return false, err
	}
	if len(l.queue) == 0 {
		if _, err := l.fetch(ctx, l.r.cfg.BatchRecords, min(firstFetchBytes, l.r.cfg.BatchBytes)); err != nil {
			return false, err
		}
		if len(l.queue) == 0 {
			l.room, l.decoders = nil, nil // a partition at rest keeps nothing
			return false, nil
		}
	}
	if to, ok := l.barrier(); ok {
		return true, l.cross(ctx, to)
	}
	due := l.due(&l.queue[0])
	if err := sleep.For(ctx, time.Until(due)); err != nil {
		return false, err
	}
	end, err := l.r.pace.begin(ctx, due, l.end-l.queue[0].Position.Offset >= behind)
	if err != nil {
		return false, err
	}
	defer func() { end(l.inserting) }()
	l.inserting = 0
	limit := l.share()
	release, err := l.r.reserve(ctx, limit)
	if err != nil {
		return false, err
	}
	defer release()
	if err := l.gather(ctx, limit); err != nil {
		return false, err
	}
	b := l.cut()
	if err := l.settle(ctx, b); err != nil {
		return true, err
	}
	clear(b.records) // dead letters have copies, rows are stored
	l.room = b.records[:0]
	return true, nil
}

// share returns how many bytes the next block may have: as much as waits, by the size of what was
// fetched. There is room in memory for many small blocks at once, or for a few large ones.
func (l *lane) share() int {
	waiting := min(l.end-l.queue[0].Position.Offset, int64(l.r.cfg.BatchRecords))
	guess := int64(l.queued()) * waiting / int64(len(l.queue)) * 5 / 4
	return int(min(max(guess, int64(l.r.cfg.BatchBytes/8)), int64(l.r.cfg.BatchBytes)))
}

// queued returns the bytes of the records in the queue.
func (l *lane) queued() (bytes int) {
	for i := range l.queue {
		bytes += len(l.queue[i].Value)
	}
	return bytes
}

// due returns when a record has been held long enough, counted from its append. A producer whose
// clock is ahead, or a clock set back meanwhile, holds it for no longer than a hold from the
// fetch: how old it was then is all that wall clocks are asked.
func (l *lane) due(rec *stream.Record) time.Time {
	age := max(0, l.fetched.Sub(rec.Appended))
	return l.fetched.Add(max(0, l.r.cfg.Hold-age))
}

// gather fetches more records until a block is full, what comes is not due, or the log has
// no more.
func (l *lane) gather(ctx context.Context, limit int) error {
	count, bytes := len(l.queue), l.queued()
	asked := l.r.cfg.Linger == 0 // whether the end is news; it may be as old as the hold
	for count < l.r.cfg.BatchRecords && bytes < limit && !l.due(&l.queue[len(l.queue)-1]).After(time.Now()) {
		if l.p.Position() >= l.end {
			if asked {
				return nil
			}
			asked = true
		}
		n, err := l.fetch(ctx, l.r.cfg.BatchRecords-count, limit-bytes)
		if err != nil {
			return err
		}
		for i := len(l.queue) - n; i < len(l.queue); i++ {
			bytes += len(l.queue[i].Value)
		}
		count += n
	}
	return nil
}

// cut takes one block of due records from the head of the queue; a barrier ends it.
func (l *lane) cut() *block {
	now := time.Now()
	n, bytes := 0, 0
	for n < len(l.queue) && n < l.r.cfg.BatchRecords {
		rec := &l.queue[n]
		if n > 0 && (bytes+len(rec.Value) > l.r.cfg.BatchBytes || rec.Kind == stream.KindLayout || l.due(rec).After(now)) {
			break
		}
		bytes += len(rec.Value)
		n++
	}
	b := &block{first: l.queue[0].Position.Offset, last: l.queue[n-1].Position.Offset, records: l.queue[:n]}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	} else {
		b.records = b.records[:n:n]
	}
	return b
}

// fetch appends the next records to the queue and returns how many came.
func (l *lane) fetch(ctx context.Context, records, bytes int) (int, error) {
	batch, err := l.p.Fetch(ctx, records, bytes)
	if err != nil {
		return 0, fmt.Errorf("fetch from partition %d: %w", l.partition, err)
	}
	l.fetched, l.end = time.Now(), batch.HighWatermark
	if need := len(l.queue) + len(batch.Records); need > cap(l.queue) && need <= cap(l.room) {
		l.queue, l.room = append(l.room, l.queue...), nil
	}
	l.queue = append(l.queue, batch.Records...)
	return len(batch.Records), nil
}

// commit writes offset, announced range and corrected offsets in one piece.
func (l *lane) commit(ctx context.Context, next int64, pending stream.Pending) error {
	defer l.r.timed(stepCommit)()
	pending.PolicyOffsets, pending.Layout = maps.Clone(l.corrected), l.layout
	if err := l.p.Commit(ctx, next, pending); err != nil {
		return fmt.Errorf("commit partition %d at %d: %w", l.partition, next, err)
	}
	return nil
}

// confirm commits what has been settled, if the last commit does not say it yet.
func (l *lane) confirm(ctx context.Context) error {
	if !l.dirty {
		return nil
	}
	if err := l.commit(ctx, l.next, stream.NoPending(nil)); err != nil {
		return err
	}
	l.dirty = false
	return nil
}

// leave confirms what is settled before the partition goes to somebody else. A block under
// way stays announced: its new owner settles it.
func (l *lane) leave(ctx context.Context, cause error) error {
	if ctx.Err() == nil || !l.dirty || l.announced {
		return cause
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := l.commit(last, l.next, stream.NoPending(nil)); err != nil {
		l.log.Warn("last commit did not succeed; the next owner reads the last block again", zap.Error(err))
	}
	return cause
}
