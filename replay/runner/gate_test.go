package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestGateRests: policy gathers once those who waited for what has been applied can be told, even if they have not been yet; who waits for
// more ends the rest, and so does time.
func TestGateRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(nil)
		feed := &simFeed{done: make(chan struct{}), pos: map[int32]int64{0: 5}, moved: make(chan struct{})}
		g.open(feed)
		rest := func() time.Duration {
			began := time.Now()
			g.rest(t.Context(), time.Minute)
			return time.Since(began)
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(mark int64) { go func() { _ = g.wait(ctx, map[int32]int64{0: mark}) }() }

		if got := rest(); got != time.Minute {
			t.Errorf("nobody waits, and it rests for %s", got)
		}
		wait(7)
		synctest.Wait()
		feed.mu.Lock()
		feed.pos[0] = 7 // he is not told yet
		feed.mu.Unlock()
		if got := rest(); got != time.Minute {
			t.Errorf("it rests for %s while somebody waits for what has been applied", got)
		}
		wait(9)
		synctest.Wait()
		if got := rest(); got != 0 {
			t.Errorf("it rests for %s while somebody waits for more", got)
		}
		feed.mu.Lock()
		feed.pos[0] = 9
		feed.mu.Unlock()
		time.AfterFunc(time.Second, func() { wait(11) })
		if got := rest(); got != time.Second {
			t.Errorf("it rests for %s, and somebody waits for more after a second", got)
		}
		cancel()
		synctest.Wait()
	})
}
