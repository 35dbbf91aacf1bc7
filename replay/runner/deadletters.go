package runner

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/verdict"
)

// letterBatch bounds the dead letters of one save.
const letterBatch = 1000

// deadLetters handles one partition of audit.deadletter: it moves dead letters to the store.
// Saving is idempotent by position, so the offset is simply committed after it.
func (r *Runner) deadLetters(ctx context.Context, a stream.Assignment, p Partition) error {
	next := max(a.Committed, 0)
	progress := r.board.own(stream.TopicDeadLetter, a.Partition, next)
	defer r.board.disown(stream.TopicDeadLetter, a.Partition)
	for {
		batch, err := p.Fetch(ctx, letterBatch, r.cfg.BatchBytes)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fetch dead letters: %w", err)
		}
		if n := len(batch.Records); n > 0 {
			first, last := batch.Records[0].Position.Offset, batch.Records[n-1].Position.Offset
			token := fmt.Sprintf("dl/%d/%d/%d-%d", a.Epoch, a.Partition, first, last)
			if err := r.saveLetters(ctx, token, storedLetters(batch.Records, a.Epoch)); err != nil {
				return nil // only the end of ctx ends the attempts
			}
			r.metrics.letters.Add(float64(n))
			next = last + 1
			if err := p.Commit(ctx, next, stream.NoPending(nil)); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("commit dead letters: %w", err)
			}
			r.log.Debug("dead letters stored", zap.Int("count", n))
		}
		progress.set(next, batch.HighWatermark, nil)
		r.observeLag(stream.TopicDeadLetter)
	}
}

// storedLetters reads the dead letters of a batch. A record that is none itself is kept as
// one: nothing that was acknowledged vanishes.
func storedLetters(records []stream.Record, epoch uint32) []verdict.StoredDeadLetter {
	out := make([]verdict.StoredDeadLetter, 0, len(records))
	for i := range records {
		rec := &records[i]
		position := rec.Position
		position.Epoch = epoch
		letter, err := stream.DecodeDeadLetter(rec)
		if err == nil {
			err = rec.Err
		}
		if err != nil {
			letter = unread(rec, err)
		}
		out = append(out, storedLetter(rec, letter, position))
	}
	return out
}
