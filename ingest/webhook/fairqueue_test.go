package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/stream"
)

// waits returns once n requests wait.
func (q *fairQueue) waits(n int) {
	for {
		q.mu.Lock()
		waiting := 0
		for _, queue := range q.waiting {
			waiting += len(queue)
		}
		q.mu.Unlock()
		if waiting == n {
			return
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func TestFairQueue(t *testing.T) {
	for _, tc := range []struct {
		name  string
		size  int64
		takes []string // cluster and, after a colon, how much; in this order
		want  []string // the order of being served, one being done after the other
	}{
		{"one cluster, in order", 1, []string{"a:1", "a:1", "a:1"}, []string{"a0", "a1", "a2"}},
		{"a quiet one comes last", 1, []string{"flood:1", "flood:1", "flood:1", "flood:1", "quiet:1"},
			[]string{"flood0", "quiet4", "flood1", "flood2", "flood3"}},
		{"three, in turn", 1, []string{"a:1", "a:1", "b:1", "b:1", "c:1", "c:1"}, []string{"a0", "b2", "c4", "a1", "b3", "c5"}},
		{"more than there is", 10, []string{"a:99", "b:3"}, []string{"a0", "b1"}},
		{"a large one is not passed over", 10, []string{"a:8", "a:8", "b:1", "b:1"}, []string{"a0", "b2", "a1", "b3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queue := newFairQueue(tc.size)
			all, err := queue.take(t.Context(), "before", tc.size) // everything is in use
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var order []string
			var wg sync.WaitGroup
			served := make(chan func())
			for i, take := range tc.takes {
				var n int64
				cluster, much, _ := strings.Cut(take, ":")
				if _, err := fmt.Sscan(much, &n); err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					got, err := queue.take(t.Context(), cluster, n)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					order = append(order, fmt.Sprint(cluster, i))
					mu.Unlock()
					served <- func() { queue.give(got) }
				})
				queue.waits(i + 1)
			}
			queue.give(all)
			for range tc.takes {
				(<-served)()
			}
			wg.Wait()
			if tc.size == 1 && !slices.Equal(order, tc.want) {
				t.Errorf("served %v, want %v", order, tc.want)
			}
			slices.Sort(order) // of those that were granted together either is noted first
			want := slices.Clone(tc.want)
			slices.Sort(want)
			if !slices.Equal(order, want) {
				t.Errorf("served %v, want %v in some order", order, want)
			}
			if queue.free != tc.size || len(queue.waiting) != 0 || len(queue.order) != 0 {
				t.Errorf("%d of %d free in the end, queues %v", queue.free, tc.size, queue.order)
			}
		})
	}
}

func TestFairQueuePassesOnACancelledTurn(t *testing.T) {
	queue := newFairQueue(1)
	if _, err := queue.take(t.Context(), "a", 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := queue.take(ctx, "a", 1)
		gone <- err
	}()
	queue.waits(1)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	queue.give(1)
	if n, err := queue.take(t.Context(), "b", 1); n != 1 || err != nil {
		t.Errorf("%d, %v: the turn of one that went away was not passed on", n, err)
	}
}

// While one cluster has many posts waiting, another's is the next to be worked on: for a
// processor, and for room in the producer.
func TestFloodOfOneCluster(t *testing.T) {
	const flood = 40
	path := func(cluster string) string { return "/v1/clusters/" + cluster + "/audit" }
	for name, of := range map[string]func(*Handler) *fairQueue{
		"to decode":  func(h *Handler) *fairQueue { return h.decoding },
		"to produce": func(h *Handler) *fairQueue { return h.outgoing },
	} {
		t.Run(name, func(t *testing.T) {
			b := trusted(t, Config{})
			b.h.decoding, b.h.outgoing = newFairQueue(1), newFairQueue(1)
			scarce := of(b.h)
			if _, err := scarce.take(t.Context(), "flood", 1); err != nil { // one of the flood's is being worked on
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			post := func(cluster string) {
				wg.Go(func() {
					if w := b.post(path(cluster), list(read("a"))); w.Code != 200 {
						t.Errorf("%s: answer %d %s", cluster, w.Code, w.Body)
					}
				})
			}
			for i := range flood {
				post("flood")
				if name == "to decode" || i == 0 {
					scarce.waits(i + 1)
				}
			}
			if name == "to produce" {
				scarce.waits(flood)
			}
			post("quiet")
			scarce.waits(flood + 1)
			scarce.give(1)
			wg.Wait()
			records := b.producer.topic(stream.TopicEvents)
			at := slices.IndexFunc(records, func(r stream.Record) bool { return r.Cluster == "quiet" })
			if at < 0 || at > 2 { // one turn was the flood's, and what was decoded may overtake
				t.Errorf("the quiet cluster's event came behind %d of the flood's %d", at, flood)
			}
			b.balanced(t)
		})
	}
}

// Three clusters flood with slow bodies, and a fourth finds room.
func TestRoomBesideFloods(t *testing.T) {
	body := list(read("a"))
	size := int64(len(body))
	b := trusted(t, Config{MaxBody: size, MaxInFlight: 100 * size, MaxClusterInFlight: 100 * size})
	slow := func(cluster string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/v1/clusters/"+cluster+"/audit", nil)
		r.Body, r.ContentLength = io.NopCloser(iotestSlow{t.Context()}), size
		return b.do(r)
	}
	var wg sync.WaitGroup
	refused := map[string]bool{}
	var mu sync.Mutex
	for i := range 3 {
		cluster := fmt.Sprintf("flood-%d", i)
		for {
			before := b.h.flight.inFlight()
			answered := make(chan struct{})
			wg.Go(func() {
				if w := slow(cluster); w.Code == 429 {
					mu.Lock()
					refused[cluster] = true
					mu.Unlock()
				}
				close(answered)
			})
			for b.h.flight.inFlight() == before {
				select {
				case <-answered:
				case <-time.After(50 * time.Microsecond):
					continue
				}
				break
			}
			mu.Lock()
			done := refused[cluster]
			mu.Unlock()
			if done {
				break
			}
		}
	}
	if left := b.h.flight.inFlight(); left > 99*size || left < 90*size {
		t.Errorf("%d of %d bytes are in flight", left, 100*size)
	}
	if w := b.post("/v1/clusters/quiet/audit", body); w.Code != 200 {
		t.Errorf("the quiet cluster: answer %d %s", w.Code, w.Body)
	}
	t.Cleanup(wg.Wait)
}

// iotestSlow is a body of which nothing comes until the test ends.
type iotestSlow struct{ ctx context.Context }

func (s iotestSlow) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, io.ErrUnexpectedEOF }

func (f *flight) inFlight() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

func TestRequestsOfOneCluster(t *testing.T) {
	b := trusted(t, Config{})
	for range clusterRequests {
		if !b.h.flight.enter("flood") {
			t.Fatal("refused too early")
		}
	}
	if w := b.post("/v1/clusters/flood/audit", list(read("a"))); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("flood: answer %d", w.Code)
	}
	if w := b.post("/v1/clusters/quiet/audit", list(read("a"))); w.Code != 200 {
		t.Errorf("quiet: answer %d", w.Code)
	}
	b.h.flight.leave("flood")
	if w := b.post("/v1/clusters/flood/audit", list(read("a"))); w.Code != 200 {
		t.Errorf("afterwards: answer %d", w.Code)
	}
}
