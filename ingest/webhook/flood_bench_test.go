package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
)

// slowProducer acknowledges as a broker does that syncs.
type slowProducer struct{}

func (slowProducer) Produce(ctx context.Context, recs ...stream.Record) error {
	select {
	case <-time.After(5 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// BenchmarkFlood measures how long a quiet cluster, which posts ten events every 20 ms, waits for its acknowledgements: alone;
// while another cluster has 64 bodies of 400 events under way all the time, and 64 that come slowly; and the same
// without fair queues. Posts are given to the handler itself, so that all processor time is the receiver's.
func BenchmarkFlood(b *testing.B) {
	large := recordedPost(b)
	small := []byte(list(slices.Repeat([]string{read("a")}, 10)...))
	for _, tc := range []struct {
		name        string
		flood, fair bool
	}{{"flood=none", false, true}, {"flood=64", true, true}, {"flood=64,queue=none", true, false}} {
		b.Run(tc.name, func(b *testing.B) {
			h, err := New(Config{Trusted: true}, slowProducer{}, redact.New([]byte("0123456789abcdef")), nil, nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			if !tc.fair {
				h.decoding, h.outgoing = newFairQueue(1<<40), newFairQueue(1<<40)
			}
			ctx, stop := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer stop()
			post := func(cluster string, body io.Reader) {
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/clusters/"+cluster+"/audit", body)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
			var flooded atomic.Int64
			if tc.flood {
				for range 64 {
					wg.Go(func() {
						for ctx.Err() == nil {
							post("flood", bytes.NewReader(large))
							flooded.Add(400)
						}
					})
					wg.Go(func() {
						for ctx.Err() == nil {
							post("flood", dribble{ctx})
						}
					})
				}
			}
			post("quiet", bytes.NewReader(small))
			began, before := time.Now(), flooded.Load()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				post("quiet", bytes.NewReader(small))
				took = append(took, time.Since(began))
				time.Sleep(20 * time.Millisecond)
			}
			slices.Sort(took)
			at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
			b.ReportMetric(at(.5), "p50-ms")
			b.ReportMetric(at(.99), "p99-ms")
			b.ReportMetric(at(1), "max-ms")
			b.ReportMetric(float64(flooded.Load()-before)/time.Since(began).Seconds(), "flood-events/s")
		})
	}
}

// dribble is a body that comes a byte at a time.
type dribble struct{ ctx context.Context }

func (d dribble) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	return copy(p, " "), nil
}
