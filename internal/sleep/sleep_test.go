package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaits: for as long as it is told, until something comes, or until the context ends; not at all for no time.
func TestWaits(t *testing.T) {
	closed, never := make(chan struct{}), make(chan struct{})
	close(closed)
	for name, c := range map[string]struct {
		d, ends, want time.Duration
		early         chan struct{}
		err           error
	}{
		"all of it":              {d: time.Second, ends: time.Hour, want: time.Second, early: never},
		"something comes":        {d: time.Second, ends: time.Hour, early: closed},
		"the context ends":       {d: time.Hour, ends: time.Second, want: time.Second, early: never, err: context.DeadlineExceeded},
		"no time":                {ends: time.Hour, early: never},
		"no time, and too late":  {d: -1, ends: 0, early: never, err: context.DeadlineExceeded},
		"nothing can come early": {d: time.Second, ends: time.Hour, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if c.early == closed {
				if err := Unless(t.Context(), c.d, c.early); err != nil {
					t.Error(err)
				}
				return
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				var early chan struct{} // of the bubble
				if c.early != nil {
					early = make(chan struct{})
				}
				began := time.Now()
				if err := Unless(ctx, c.d, early); !errors.Is(err, c.err) {
					t.Errorf("got %v, want %v", err, c.err)
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
			})
		})
	}
}
