package runner

import (
	"context"
	"sync"
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
}
