package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/stream"
)

func TestBytesInFlight(t *testing.T) {
	body := list(read("a"))
	size := int64(len(body))
	other := func(cluster string) string { return "/v1/clusters/" + cluster + "/audit" }
	for _, tc := range []struct {
		name                   string
		total, cluster         int64
		sameCode, otherCode    int
		withoutLength          bool
		sameReason, afterwards string
	}{
		{name: "room for both", total: 4 * size, cluster: 2 * size, sameCode: 200, otherCode: 200},
		{name: "the cluster's is used up", total: 4 * size, cluster: 2*size - 1, sameCode: 429, otherCode: 200},
		{name: "all is used up", total: 2*size - 1, cluster: 2*size - 1, sameCode: 429, otherCode: 429},
		{name: "no length declared", total: 4 * size, cluster: 2 * size, sameCode: 429, otherCode: 429, withoutLength: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := trusted(t, Config{MaxBody: size, MaxInFlight: tc.total, MaxClusterInFlight: tc.cluster})
			entered, leave := make(chan struct{}), make(chan struct{})
			first := true
			b.producer.before = func(context.Context, []stream.Record) error {
				if first {
					first = false
					close(entered)
					<-leave
				}
				return nil
			}
			answered := make(chan *httptest.ResponseRecorder, 1)
			go func() { answered <- b.post(other("prod"), body) }()
			<-entered
			if n := b.metric(t, "in_flight_bytes"); n != float64(size) {
				t.Errorf("%v bytes in flight, want %d", n, size)
			}
			for cluster, want := range map[string]int{"prod": tc.sameCode, "test": tc.otherCode} {
				r := httptest.NewRequest(http.MethodPost, other(cluster), strings.NewReader(body))
				if tc.withoutLength {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
				}
				w := b.do(r)
				if w.Code != want {
					t.Errorf("%s: answer %d, want %d", cluster, w.Code, want)
				}
				if want == 429 && w.Header().Get("Retry-After") != "1" {
					t.Errorf("%s: no Retry-After", cluster)
				}
			}
			close(leave)
			if w := <-answered; w.Code != 200 {
				t.Errorf("first: answer %d", w.Code)
			}
			if w := b.post(other("prod"), body); w.Code != 200 {
				t.Errorf("afterwards: answer %d", w.Code)
			}
			b.balanced(t)
		})
	}
}

func TestBodyWithoutLength(t *testing.T) {
	// Long enough to be accounted for in several steps.
	body := list(write("a", `{"kind":"Role","x":"`+strings.Repeat("x", 3<<20)+`"}`))
	b := trusted(t, Config{})
	b.producer.before = func(context.Context, []stream.Record) error {
		if n := b.metric(t, "in_flight_bytes"); n < float64(len(body)) || n > 2*float64(len(body)) {
			t.Errorf("%v bytes in flight for a body of %d", n, len(body))
		}
		return nil
	}
	r := httptest.NewRequest(http.MethodPost, auditPath, io.NopCloser(strings.NewReader(body)))
	r.ContentLength = -1
	if w := b.do(r); w.Code != 200 {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	b.balanced(t)
}

func TestBodyThatEndsEarly(t *testing.T) {
	b := trusted(t, Config{})
	r := httptest.NewRequest(http.MethodPost, auditPath, io.NopCloser(io.MultiReader(strings.NewReader(`{"kind"`), brokenReader{})))
	r.ContentLength = 5 << 20
	w := b.do(r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "ended after 7 of 5242880 bytes") {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	if len(b.producer.calls) != 0 {
		t.Error("a body the sender will repeat became a dead letter")
	}
	if n := b.metric(t, "refused_requests_total", "reason", "aborted"); n != 1 {
		t.Errorf("%v refusals counted", n)
	}
	b.balanced(t)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestClientThatGoesAway(t *testing.T) {
	b := trusted(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	b.producer.before = func(ctx context.Context, _ []stream.Record) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	w := b.do(httptest.NewRequestWithContext(ctx, http.MethodPost, auditPath, strings.NewReader(list(read("a")))))
	if w.Code != 503 {
		t.Errorf("answer %d", w.Code)
	}
	if n := b.metric(t, "refused_requests_total", "reason", "aborted"); n != 1 {
		t.Errorf("%v refusals counted", n)
	}
	b.balanced(t)
}

func TestAnswerWithinTheDeadline(t *testing.T) {
	b := trusted(t, Config{Deadline: 1})
	b.producer.before = func(ctx context.Context, _ []stream.Record) error {
		<-ctx.Done()
		return ctx.Err()
	}
	if w := b.post(auditPath, list(read("a"))); w.Code != 503 || w.Header().Get("Retry-After") != "5" {
		t.Errorf("answer %d", w.Code)
	}
	if n := b.metric(t, "refused_requests_total", "reason", "not-acknowledged"); n != 1 {
		t.Errorf("%v refusals counted", n)
	}
}
