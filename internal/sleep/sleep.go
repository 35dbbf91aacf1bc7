// Package sleep waits for a time that the end of a context cuts short.
package sleep

import (
	"context"
	"time"
)

// For waits for d, or returns the context's error as soon as it ends.
func For(ctx context.Context, d time.Duration) error { return Unless(ctx, d, nil) }

// Unless is For, and ends early, without an error, as soon as something can be received from a channel.
func Unless(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-early:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
