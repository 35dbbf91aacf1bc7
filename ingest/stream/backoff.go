package stream

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/retrial-io/retrial/internal/sleep"
)

// backoff is a growing, jittered pause between attempts.
type backoff struct{ next time.Duration }

const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

func newBackoff() backoff { return backoff{minBackoff} }

// sleep pauses and reports whether ctx is still alive.
func (b *backoff) sleep(ctx context.Context) bool {
	d := b.next/2 + rand.N(b.next/2+1)
	b.next = min(2*b.next, maxBackoff)
	return sleep.For(ctx, d) == nil
}
