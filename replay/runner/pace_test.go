package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace has partitions with something to do every ten milliseconds take turns, whose inserts take
// a while: they insert together, for a hundredth of the time, and nobody waits longer than the bound.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name               string
		partitions         int
		insert, longest    time.Duration
		turns, beforeLimit int // in a minute
	}{
		{"cheap inserts", 1, 5 * time.Millisecond, 2 * time.Second, 110, 125},
		{"dear inserts", 1, 300 * time.Millisecond, 2 * time.Second, 31, 35},
		{"many partitions", 12, 5 * time.Millisecond, 2 * time.Second, 110, 125},
		{"no lingering", 1, 20 * time.Millisecond, 0, 2000, 3001},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				p := newPace(c.longest)
				turns := make([]int, c.partitions)
				var wg sync.WaitGroup
				for i := range turns {
					wg.Go(func() {
						for ctx.Err() == nil {
							time.Sleep(10 * time.Millisecond) // something comes
							due := time.Now()
							end, err := p.begin(ctx, due, false)
							if err != nil {
								return
							}
							if waited := time.Since(due); waited > c.longest {
								t.Errorf("waited %s, want at most %s", waited, c.longest)
							}
							time.Sleep(c.insert)
							end(c.insert)
							turns[i]++
						}
					})
				}
				wg.Wait()
				for i, n := range turns {
					if n < c.turns || n > c.beforeLimit {
						t.Errorf("partition %d had %d turns, want %d to %d", i, n, c.turns, c.beforeLimit)
					}
				}
			})
		})
	}
	t.Run("a backlog does not wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPace(time.Hour)
			for range 3 {
				end, err := p.begin(t.Context(), time.Now(), true)
				if err != nil {
					t.Fatal(err)
				}
				end(time.Second)
			}
		})
	})
	t.Run("who asks does not wait, and finds what waited settled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPace(time.Hour)
			end, err := p.begin(t.Context(), time.Now(), false)
			if err != nil {
				t.Fatal(err)
			}
			end(10 * time.Minute)
			began := time.Now()
			var settled atomic.Int32
			var wg sync.WaitGroup
			for _, after := range []time.Duration{0, 10 * time.Second, 20*time.Second + 2*muster} { // the last when somebody has asked
				due := began.Add(after)
				wg.Go(func() {
					time.Sleep(time.Until(due))
					end, err := p.begin(t.Context(), due, false)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Second)
					settled.Add(1)
					end(time.Second)
				})
			}
			time.Sleep(20 * time.Second)
			if err := p.ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := settled.Load(); n != 2 {
				t.Errorf("%d blocks are settled for who asks, want the 2 that waited when he asked", n)
			}
			if took := time.Since(began) - 20*time.Second; took != time.Second {
				t.Errorf("asking took %s, want as long as the blocks, 1s", took)
			}
			done := p.hurry()
			wg.Wait()
			done()
			if took := time.Since(began); took > 23*time.Second {
				t.Errorf("the last block was settled after %s, want as soon as somebody is in a hurry", took)
			}
		})
	})
	t.Run("who asks does not wait for a backlog, nor longer than his time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPace(time.Hour)
			if _, err := p.begin(t.Context(), time.Now(), true); err != nil {
				t.Fatal(err)
			}
			if err := p.ask(t.Context()); err != nil {
				t.Errorf("with a backlog: %v", err)
			}
			time.Sleep(2 * fresh)
			if _, err := p.begin(t.Context(), time.Now().Add(-2*fresh), false); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := p.ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with a block that is never settled: %v, want %v", err, context.DeadlineExceeded)
			}
		})
	})
}
