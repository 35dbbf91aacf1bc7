package runner

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/verdict"
)

// correct judges the partition's stored rows again where policy that became known since may
// change the answer. Rows judged meanwhile need nothing, and where that is known of all rows a
// change may concern nothing is read; else looking again changes nothing.
//
// A crash between any two steps converges: the cursor is committed after the last step, so
// the changes are looked at again; a pair that landed is found standing and not written
// twice; and rollups it may have missed are settled, because every change below the horizon,
// forgotten ones included, is treated as one an earlier owner may have been busy with.
func (l *lane) correct(ctx context.Context) error {
	found, next, forgotten := l.r.changes.since(l.corrected)
	whole := l.judged.before(forgotten) // clusters of which every row is looked at
	if l.everything {
		whole = l.held
	}
	found = slices.DeleteFunc(l.judged.outlived(found), func(c change) bool { return whole[c.cluster] })
	if len(found) == 0 && len(whole) == 0 && !l.everything && maps.Equal(next, l.corrected) {
		return nil
	}
	uncertain := l.everything || len(whole) > 0 && !reached(l.corrected, l.horizon) ||
		slices.ContainsFunc(found, func(c change) bool { return c.offset < l.horizon[c.partition] })
	filters := plan(found)
	for _, cluster := range slices.Sorted(maps.Keys(whole)) {
		filters = append(filters, verdict.AffectedFilter{Cluster: cluster})
	}
	var allowed allowances
	for _, f := range filters {
		f.Partitions = []int32{l.partition}
		if err := l.visitAll(ctx, f, uncertain, correction{l, &allowed}); err != nil {
			return err
		}
	}
	l.corrected, l.dirty, l.everything = next, true, false
	l.progress.set(l.next, l.end, l.corrected)
	return nil
}

// visitor is what is done with visited rows.
type visitor interface {
	// begin is called when a visit starts, or starts over, and returns days to settle the
	// rollups of besides those of the rows, if they have to be settled.
	begin() []time.Time
	// rows reports whether an insertion failed before it succeeded. The slice is reused.
	rows(ctx context.Context, rows []verdict.Row) (failed bool, err error)
}

// correction replaces the verdicts of visited rows that changed.
type correction struct {
	l       *lane
	allowed *allowances
}

func (correction) begin() []time.Time { return nil }

func (c correction) rows(ctx context.Context, rows []verdict.Row) (failed bool, err error) {
	verdicts, _ := c.l.judgeAgain(rows, c.allowed)
	var changed []int
	for i, v := range verdicts {
		if v != nil && !c.l.r.store.SameVerdict(rows[i].Verdict, v) {
			changed = append(changed, i)
		}
	}
	return c.l.replace(ctx, "co", rows, verdicts, changed)
}

// visitAll visits the rows a filter selects. An error of the store starts the visit over, now
// settling rollups too.
func (l *lane) visitAll(ctx context.Context, f verdict.AffectedFilter, uncertain bool, with visitor) error {
	pace := backoff{r: l.r, operation: opAffected}
	defer pace.done()
	for {
		err := l.visit(ctx, f, uncertain, with)
		if err == nil || ctx.Err() != nil || l.lost != nil {
			return err
		}
		uncertain = true
		if err := pace.pause(ctx, err, zap.String("cluster", f.Cluster), zap.Int32("partition", l.partition)); err != nil {
			return err
		}
	}
}

// visit goes through the rows once, in steps of bounded size.
func (l *lane) visit(ctx context.Context, f verdict.AffectedFilter, uncertain bool, with visitor) error {
	release, err := l.r.reserve(ctx, l.r.cfg.BatchBytes)
	if err != nil {
		return err
	}
	defer release()
	var rows []verdict.Row
	days := with.begin()
	bytes := 0
	step := func() error {
		if len(rows) == 0 {
			return nil
		}
		failed, err := with.rows(ctx, rows)
		uncertain = uncertain || failed
		for i := range rows {
			days = addDay(days, &rows[i])
		}
		rows, bytes = rows[:0], 0
		return err
	}
	if err := l.r.store.Affected(ctx, f, func(row verdict.Row) error {
		rows = append(rows, row)
		bytes += row.Size
		if len(rows) < l.r.cfg.CorrectionRows && bytes < l.r.cfg.BatchBytes {
			return nil
		}
		return step()
	}); err != nil {
		return err
	}
	if err := step(); err != nil || !uncertain {
		return err
	}
	return l.recover(ctx, days)
}

// judgeAgain judges stored rows again; nil stands for a verdict that could not be reached, or
// whose policy has been forgotten: what stands was reached with it.
func (l *lane) judgeAgain(rows []verdict.Row, allowed *allowances) (verdicts []*verdict.Verdict, failed int) {
	verdicts = make([]*verdict.Verdict, len(rows))
	l.r.metrics.replay.Add(l.r.parallel(len(rows), func(from, to int) {
		for i := from; i < to; i++ {
			if !replay.Kept(l.r.states.of(rows[i].Cluster), rows[i].Event.RequestReceivedTimestamp) {
				continue
			}
			v, err := l.r.verdict(allowed.of(rows[i].Cluster), rows[i].Cluster, rows[i].Event)
			if err != nil {
				l.log.Error("stored event cannot be judged again; its verdict stands", zap.Error(err))
				continue
			}
			verdicts[i] = v
		}
	}).Seconds())
	l.r.metrics.rejudged.Add(float64(len(rows)))
	for _, v := range verdicts {
		if v == nil {
			failed++
		}
	}
	return verdicts, failed
}

// replace writes the pairs of the rows whose verdict changed. It reports whether an insertion
// failed before it succeeded, in which case the rollups are not certain.
func (l *lane) replace(ctx context.Context, kind string, rows []verdict.Row, verdicts []*verdict.Verdict, changed []int) (failed bool,
	err error) {
	pairs := make([]verdict.Row, 0, 2*len(changed))
	for _, i := range changed {
		pairs = append(pairs, l.r.pair(rows[i], rows[i], verdicts[i])...)
	}
	if failed, err = l.insertPairs(ctx, kind, pairs); err != nil {
		return failed, err
	}
	for _, i := range changed {
		l.r.metrics.corrections.WithLabelValues(verdicts[i].Outcome.String()).Inc()
	}
	return failed, nil
}

// pair takes a row back and puts another in its place: one −1 and one +1 for one block. The
// marks go with the verdict.
func (r *Runner) pair(old, replacement verdict.Row, v *verdict.Verdict) []verdict.Row {
	old.Sign = -1
	replacement.Sign = 1
	replacement.Verdict, replacement.Marks = v, nil
	if v != nil {
		replacement.Marks = r.tag(&replacement)
	}
	replacement.Revision = old.Revision + 1
	return []verdict.Row{old, replacement}
}

// insertPairs writes pairs as one block. The token names the rows it replaces, in the
// versions it replaces, and not only the step: after a crash the same step may find fewer
// rows left to replace, and those must not be taken for the block that landed.
//
// It reports whether an attempt failed. Before the write the partition's commit is repeated,
// which fails when the partition belongs to somebody else by now, who corrects it himself.
func (l *lane) insertPairs(ctx context.Context, kind string, pairs []verdict.Row) (failed bool, err error) {
	if len(pairs) == 0 {
		return false, nil
	}
	if !l.announced {
		if err := l.commit(ctx, l.next, stream.NoPending(nil)); err != nil {
			l.lost = err
			return false, err
		}
	}
	hash := xxhash.New()
	var b []byte
	for i := range pairs {
		b, _ = pairs[i].EventKey.AppendBinary(b[:0])
		b = binary.BigEndian.AppendUint64(b, pairs[i].Revision)
		b = append(b, byte(pairs[i].Sign))
		_, _ = hash.Write(b)
	}
	token := fmt.Sprintf("%s/%d/%d/%016x", kind, l.epoch, l.partition, hash.Sum64())
	// The same rows under the same token until the store has them for certain: judging again
	// in between could write a second successor of a row that was replaced.
	failures, err := l.r.retry(ctx, opInsert, func() error { return l.r.store.Insert(ctx, token, pairs) }, zap.String("token", token))
	return failures > 0, err
}
