package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// page is a question whose answers a test gives.
type page struct {
	http.Handler
	asked, ended atomic.Int32 // questions that reached the store, and those whose context ended
	reply        chan struct{}
}

func newPage() *page {
	p := &page{reply: make(chan struct{})}
	q := query.NewQuestion(query.CostPage, "a test's", func(ctx context.Context, r query.EventsRequest) (query.EventsAnswer, error) {
		p.asked.Add(1)
		select {
		case <-p.reply:
		case <-ctx.Done():
			p.ended.Add(1)
			return query.EventsAnswer{}, ctx.Err()
		}
		return query.EventsAnswer{Events: []query.Event{{Verb: r.Verb}}}, nil
	})
	p.Handler = api.New([]query.Question{q}, nil, zap.NewNop(), time.Minute)
	return p
}

func (p *page) open(ctx context.Context, verb string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	go p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events?cluster=c&verb="+verb, nil))
	synctest.Wait()
	return w
}

// TestPagesShareAnswers: the store is asked once by all who open a page within a second, and by nobody else for them.
func TestPagesShareAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage()
		first, leave := context.WithCancel(t.Context())
		p.open(first, "get")
		var all []*httptest.ResponseRecorder
		for range 20 {
			all = append(all, p.open(t.Context(), "get"))
		}
		other := p.open(t.Context(), "list")
		if n := p.asked.Load(); n != 2 {
			t.Errorf("the store was asked %d times, want once for each question", n)
		}
		leave()
		synctest.Wait()
		if p.ended.Load() != 0 {
			t.Error("who asked first went away, and took the answer of the others along")
		}
		p.reply <- struct{}{}
		p.reply <- struct{}{}
		synctest.Wait()
		for _, w := range all {
			if w.Code != http.StatusOK || w.Body.String() != all[0].Body.String() || w.Body.Len() == 0 {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		}
		if other.Code != http.StatusOK || other.Body.String() == all[0].Body.String() {
			t.Errorf("another question got %d: %s", other.Code, other.Body)
		}
		// Nobody is told what the store said more than a second before he asked.
		a, leaveA := context.WithCancel(t.Context())
		b, leaveB := context.WithCancel(t.Context())
		p.asked.Store(0)
		p.open(a, "get")
		time.Sleep(time.Second)
		p.open(b, "get")
		if n := p.asked.Load(); n != 2 {
			t.Errorf("the store was asked %d times, want twice within two seconds", n)
		}
		// What nobody waits for any more ends.
		leaveA()
		leaveB()
		synctest.Wait()
		if n := p.ended.Load(); n != 2 {
			t.Errorf("%d questions ended with their callers, want 2", n)
		}
	})
}
