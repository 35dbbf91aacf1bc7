package runner

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

// Operations that are repeated after an error; a closed set, for the metric.
const (
	opKnown       = "known"
	opInsert      = "insert"
	opRecover     = "recover"
	opAffected    = "affected"
	opSavePolicy  = "save_policy"
	opDeadLetters = "save_dead_letters"
	opEnds        = "ends"
	opPolicy      = "commit_policy"
	opLoadPolicy  = "load_policy"
)

// backoff paces the attempts at one operation.
type backoff struct {
	r    *Runner
	next time.Duration
}

// pause waits before the next attempt, or returns the context's error.
func (b *backoff) pause(ctx context.Context) error {
	if b.next == 0 {
		b.next = b.r.cfg.RetryMin
	}
	d := b.next
	b.next = min(2*b.next, b.r.cfg.RetryMax)
	// Half fixed, half random, so that partitions that failed together do not return together.
	d = d/2 + time.Duration(b.r.jitter()*float64(d/2))
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry repeats f until it succeeds or ctx ends; there is no error that makes it skip. It
// returns how often f failed.
func (r *Runner) retry(ctx context.Context, operation string, f func() error, fields ...zap.Field) (failures int, err error) {
	b := backoff{r: r}
	for {
		err := f()
		if err == nil {
			return failures, nil
		}
		if ctx.Err() != nil {
			return failures, ctx.Err()
		}
		failures++
		r.metrics.retries.WithLabelValues(operation).Inc()
		r.log.Warn("operation failed, trying again",
			append([]zap.Field{zap.String("operation", operation), zap.Int("attempt", failures), zap.Error(err)}, fields...)...)
		if err := b.pause(ctx); err != nil {
			return failures, err
		}
	}
}

// jitter returns a number in [0,1).
func jitter() float64 { return rand.Float64() }
