package stream

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// holder asks for a lease in a goroutine of its own.
type holder struct {
	stop context.CancelFunc
	held chan struct{} // one for every time the lease is taken
	lost chan struct{} // one for every time it is lost
	done chan error
}

func lease(t *testing.T, c *Client, holding *atomic.Int32) *holder {
	t.Helper()
	ctx, stop := context.WithCancel(deadline(t))
	h := &holder{stop: stop, held: make(chan struct{}, 8), lost: make(chan struct{}, 8), done: make(chan error, 1)}
	go func() {
		h.done <- c.Lease(ctx, "work", func(ctx context.Context) error {
			if n := holding.Add(1); n != 1 {
				t.Errorf("%d hold the lease", n)
			}
			tell(h.held)
			<-ctx.Done()
			holding.Add(-1)
			tell(h.lost)
			return nil
		})
	}()
	t.Cleanup(stop)
	return h
}

// tell notes an event unless many were that nobody asked for.
func tell(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// TestLeaseHasOneHolder: of two that ask, one holds the lease; when it stops, or its client
// is gone, the other one does.
func TestLeaseHasOneHolder(t *testing.T) {
	w := newWorld(t)
	other, err := NewClient(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var holding atomic.Int32
	a, b := lease(t, w.Client, &holding), lease(t, other, &holding)
	// Whoever has it may lose it once more when the other joins.
	for range 2 {
		var holds, waits *holder
		select {
		case <-a.held:
			holds, waits = a, b
		case <-b.held:
			holds, waits = b, a
		case <-deadline(t).Done():
			t.Fatal("nobody holds the lease")
		}
		select {
		case <-holds.lost: // to the other, who joined
			continue
		default:
		}
		holds.stop()
		if err := <-holds.done; err != nil {
			t.Fatal(err)
		}
		select {
		case <-waits.held:
		case <-deadline(t).Done():
			t.Fatal("the other one does not get the lease")
		}
		waits.stop()
		if err := <-waits.done; err != nil {
			t.Fatal(err)
		}
		break
	}
	if n := holding.Load(); n != 0 {
		t.Errorf("%d hold the lease after all have stopped", n)
	}
}

// TestLeaseAfterFailure: work that fails is begun again.
func TestLeaseAfterFailure(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(deadline(t))
	defer stop()
	runs := 0
	err := w.Lease(ctx, "work", func(ctx context.Context) error {
		if runs++; runs == 2 {
			stop()
			<-ctx.Done()
			return nil
		}
		return errors.New("no")
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
}
