package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/test/perevent"
)

type nopProducer struct{}

func (nopProducer) Produce(context.Context, ...stream.Record) error { return nil }

// BenchmarkPost takes a recorded body of 400 events, about 2 kB each, through
// the handler, with a producer that does nothing: alone, and over mTLS, where the client's
// share is in the figures too.
func BenchmarkPost(b *testing.B) {
	body := recordedPost(b)
	measure := func(b *testing.B, post func(b *testing.B)) {
		m := perevent.Start(b)
		for b.Loop() {
			post(b)
		}
		m.Report(400*b.N, int64(len(body))*int64(b.N))
	}
	b.Run("transport=none", func(b *testing.B) {
		h, err := New(Config{Trusted: true}, nopProducer{}, redact.New([]byte("0123456789abcdef")), nil, nil, nil)
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
