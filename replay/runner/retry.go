package runner

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/sleep"
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
	opRejudges    = "rejudges"
	opForward     = "forward"
	opLayout      = "layout"
)

var operations = [...]string{ //nolint:gochecknoglobals // constant table
	opKnown, opInsert, opRecover, opAffected, opSavePolicy, opDeadLetters, opEnds, opPolicy, opLoadPolicy, opRejudges,
	opForward, opLayout,
}

// stuckAfter is the number of failures in a row, about half a minute of them by default,
// after which a person should look: what fails that often may fail for good.
const stuckAfter = 10

// backoff paces the attempts at one operation; call done when there will be no more.
type backoff struct {
	r         *Runner
	operation string
	failures  int
	next      time.Duration
}

// pause counts a failure and waits before the next attempt, or returns the context's error.
func (b *backoff) pause(ctx context.Context, err error, fields ...zap.Field) error {
	b.failures++
	b.r.metrics.retries.WithLabelValues(b.operation).Inc()
	log, text := b.r.log.Warn, "operation failed, trying again"
	if b.failures == stuckAfter {
		b.r.metrics.stuck.WithLabelValues(b.operation).Inc()
		log, text = b.r.log.Error, "operation goes on failing, its partition waits"
	}
	log(text, append([]zap.Field{zap.String("operation", b.operation), zap.Int("attempt", b.failures), zap.Error(err)}, fields...)...)
	if b.next == 0 {
		b.next = b.r.cfg.RetryMin
	}
	d := b.next
	b.next = min(2*b.next, b.r.cfg.RetryMax)
	// Half fixed, half random, so that partitions that failed together do not return together.
	return sleep.For(ctx, d/2+time.Duration(b.r.jitter()*float64(d/2)))
}

// done takes the operation off the metric of those that are stuck.
func (b *backoff) done() {
	if b.failures >= stuckAfter {
		b.r.metrics.stuck.WithLabelValues(b.operation).Dec()
	}
}

// retry repeats f until it succeeds or ctx ends; there is no error that makes it skip. It
// returns how often f failed.
func (r *Runner) retry(ctx context.Context, operation string, f func() error, fields ...zap.Field) (failures int, err error) {
	b := backoff{r: r, operation: operation}
	defer b.done()
	for {
		err := f()
		if err == nil {
			return b.failures, nil
		}
		if ctx.Err() != nil {
			return b.failures, ctx.Err()
		}
		if err := b.pause(ctx, err, fields...); err != nil {
			return b.failures, err
		}
	}
}

// jitter returns a number in [0,1).
func jitter() float64 { return rand.Float64() }
