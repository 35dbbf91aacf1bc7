package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

type nopProducer struct{}

func (nopProducer) Produce(context.Context, ...stream.Record) error { return nil }

// cpu returns the processor time of this process so far, in nanoseconds.
func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkPost takes a recorded body of 400 events, about 2 kB each, through
// the handler, with a producer that does nothing: alone, and over mTLS, where the client's
// share is in the figures too.
func BenchmarkPost(b *testing.B) {
	body := recordedPost(b)
	measure := func(b *testing.B, post func(b *testing.B)) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		before := cpu(b)
		for b.Loop() {
			post(b)
		}
		events := 400 * float64(b.N)
		b.ReportMetric(float64(cpu(b)-before)/1000/events, "cpu-µs/event")
		b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
	}
	b.Run("transport=none", func(b *testing.B) {
		h, err := New(Config{Trusted: true}, nopProducer{}, event.NewRedactor([]byte("0123456789abcdef")), nil, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		measure(b, func(b *testing.B) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, auditPath, bytes.NewReader(body)))
			if w.Code != http.StatusOK {
				b.Fatal(w.Code, w.Body)
			}
		})
	})
	for name, http2 := range map[string]bool{"transport=mtls-http1": false, "transport=mtls-http2": true} {
		b.Run(name, func(b *testing.B) {
			s := newSite(b, Config{}, ServerConfig{})
			s.h.producer = nopProducer{}
			client := s.client(b, s.add(b, "prod"), http2)
			measure(b, func(b *testing.B) {
				resp, err := client.Post(s.url+auditPath, "application/json", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Fatal(resp.StatusCode)
				}
			})
		})
	}
}
