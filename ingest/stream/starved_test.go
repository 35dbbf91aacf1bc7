package stream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/ingest/embedded"
)

// TestEmbeddedGroupsOutliveStarvation: a member that is not heard of for an hour, as when the
// process was stopped, keeps its place at a coordinator that was stopped with it. At any other
// it loses it.
func TestEmbeddedGroupsOutliveStarvation(t *testing.T) {
	for name, inProcess := range map[string]bool{"broker in this process": true, "broker elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			onlyEmbedded(t)
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				b, err := embedded.Start(embedded.Config{Dir: dir, Consumers: Consumers(""), Verify: VerifyCommit, TrimInterval: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				c, err := NewClient(Config{Brokers: []string{b.Addr()}, Dial: b.Dial, Partitions: 1, Replication: 1, InProcess: inProcess,
					HeartbeatInterval: 2 * time.Hour}) // it is silent
				if err != nil {
					t.Fatal(err)
				}
				if err := c.EnsureTopics(t.Context()); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				taken, done := 0, make(chan error, 1)
				go func() {
					done <- c.Lease(ctx, "work", func(ctx context.Context) error {
						taken++
						<-ctx.Done()
						return nil
					})
				}()
				synctest.Wait()
				if taken != 1 {
					t.Fatalf("the lease was taken %d times", taken)
				}
				time.Sleep(time.Hour)
				// Who else asks, gets it only from a coordinator that has given the holder up.
				other, err := NewClient(c.cfg)
				if err != nil {
					t.Fatal(err)
				}
				octx, ostop := context.WithTimeout(t.Context(), time.Second)
				gone := false
				if err := other.Lease(octx, "work", func(context.Context) error { gone = true; return nil }); err != nil {
					t.Error(err)
				}
				if gone == inProcess {
					t.Errorf("given up: %v", gone)
				}
				ostop()
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				for _, closed := range []func() error{other.Close, c.Close, b.Close} {
					if err := closed(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
