package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// lossy passes INSERTs of events on, and loses the answers of some.
type lossy struct {
	http.RoundTripper
	mu   sync.Mutex
	lose int // how many more
	deaf int // how many are lost before they arrive
}

func (l *lossy) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.Query().Get("query"), "events` (") && !strings.Contains(req.URL.Query().Get("query"), ".events (") {
		return l.RoundTripper.RoundTrip(req)
	}
	l.mu.Lock()
	lose, deaf := l.lose > 0, l.deaf > 0
	l.lose, l.deaf = max(l.lose-1, 0), max(l.deaf-1, 0)
	l.mu.Unlock()
	if deaf {
		return nil, errors.New("connection refused")
	}
	res, err := l.RoundTripper.RoundTrip(req)
	if err == nil && lose {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return nil, errors.New("connection reset")
	}
	return res, err
}

// TestPartitionsShareInserts inserts for twelve partitions at once, again and again, through a
// connection that loses answers and requests. Each partition's owner repeats what failed as the
// runner does: under the same token until it succeeds. Every row stands once, in events and in
// every rollup, and where nothing fails the partitions share inserts.
func TestPartitionsShareInserts(t *testing.T) {
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	line := &lossy{RoundTripper: engine}
	reg := prometheus.NewRegistry()
	s, err := storage.Open(context.Background(), storage.Config{Transport: line, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const partitions, rounds = 12, 6
	all := lines(t)
	share := len(all) / partitions / rounds
	for round := range rounds {
		before := inserts(t, reg)
		line.mu.Lock()
		line.lose, line.deaf = round%3, round/3
		line.mu.Unlock()
		var wg sync.WaitGroup
		for p := range partitions {
			in := rowsOf(t, all[(round*partitions+p)*share:][:share], "c", int32(p), received)
			for i := range in {
				in[i].Position.Offset = int64(round*share + i)
			}
			wg.Go(func() {
				own(t, s, in, fmt.Sprintf("ev/1/%d/%d", p, round))
			})
		}
		wg.Wait()
		if n := inserts(t, reg) - before; round == 0 && n > 2*partitions/3 {
			t.Errorf("%v inserts of %d blocks", n, partitions)
		}
	}
	if got, want := consistent(t, s).Events, int64(partitions*rounds*share); got != want {
		t.Errorf("%d events stand, want %d", got, want)
	}
}

// TestOwnersInsertTheSame has two processes insert the same blocks of twelve partitions, as an owner that was stopped does after the next
// one has stored its block: what comes second adds nothing, which takes that no partition shares its token with another.
func TestOwnersInsertTheSame(t *testing.T) {
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	const partitions = 12
	all := lines(t)
	share := len(all) / partitions
	var last *storage.Store
	for range 2 {
		s, err := storage.Open(context.Background(), storage.Config{Transport: engine, Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var wg sync.WaitGroup
		for p := range partitions {
			in := rowsOf(t, all[p*share:][:share], "c", int32(p), received)
			wg.Go(func() {
				if err := s.Insert(context.Background(), fmt.Sprintf("ev/1/%d/0", p), in); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		last = s
	}
	if got, want := consistent(t, last).Events, int64(partitions*share); got != want {
		t.Errorf("%d events stand, want %d", got, want)
	}
}

// inserts returns how many INSERTs were tried.
func inserts(t *testing.T, reg *prometheus.Registry) (n float64) {
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "retrial_storage_inserts_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// own inserts as the owner of a partition does, until it succeeds.
func own(t *testing.T, s *storage.Store, in []verdict.Row, token string) {
	for range 20 {
		if s.Insert(context.Background(), token, in) == nil {
			known, err := s.Known(context.Background(), in)
			if err != nil || len(known) < len(in) {
				t.Errorf("%s: %d of %d rows are known: %v", token, len(known), len(in), err)
			}
			if err := s.Recover(context.Background(), in[0].Position.Partition, 1, days(in)); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("%s: never inserted", token)
}

// TestNoInsertWaitsForOneThatLeft cancels the context of one of two partitions that share an
// insert: the other's rows are stored.
func TestNoInsertWaitsForOneThatLeft(t *testing.T) {
	s := storagetest.Open(t)
	all := lines(t)
	a, b := rowsOf(t, all[:40], "c", 0, received), rowsOf(t, all[40:80], "c", 1, received)
	insert(t, s, "a0", a[:1])
	insert(t, s, "b0", b[:1]) // both are waited for from now on
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { left <- s.Insert(ctx, "a1", a[1:]) }()
	cancel()
	insert(t, s, "b1", b[1:])
	if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	known, err := s.Known(context.Background(), b)
	if err != nil || len(known) != len(b) {
		t.Errorf("%d of %d rows are known: %v", len(known), len(b), err)
	}
}
