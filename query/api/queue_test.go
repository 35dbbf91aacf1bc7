package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// desk serves one question, whose answers a test gives one after the other.
type desk struct {
	http.Handler
	mu     sync.Mutex     // while questions end together; a test looks when all of them wait
	begun  map[string]int // questions whose turn began, by caller
	answer map[string]chan struct{}
	got    map[string][]*httptest.ResponseRecorder
}

type deskKey struct{}

func newDesk() *desk {
	d := &desk{begun: map[string]int{}, answer: map[string]chan struct{}{}, got: map[string][]*httptest.ResponseRecorder{}}
	q := query.NewQuestion(query.CostQuery, "a test's", func(ctx context.Context, _ query.ClustersRequest) (query.ClustersAnswer, error) {
		who := ctx.Value(deskKey{}).(string)
		d.count(who, 1)
		select {
		case <-d.answer[who]:
		case <-ctx.Done():
			return query.ClustersAnswer{}, ctx.Err()
		}
		d.count(who, -1)
		return query.ClustersAnswer{Clusters: []query.Cluster{}}, nil
	})
	d.Handler = api.New([]query.Question{q}, nil, zap.NewNop(), time.Minute)
	return d
}

func (d *desk) count(who string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun[who] += n
}

// ask asks n questions of a caller and returns when they wait or their turn has begun.
func (d *desk) ask(ctx context.Context, who string, n int) {
	if d.answer[who] == nil {
		d.answer[who] = make(chan struct{})
	}
	for range n {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(context.WithValue(ctx, deskKey{}, who), http.MethodGet, "/api/v1/clusters", nil)
		name, address, _ := strings.Cut(who, "@")
		r.RemoteAddr = address + ":1234"
		r.SetBasicAuth(name, "secret")
		go func() {
			d.ServeHTTP(w, r)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.got[who] = append(d.got[who], w)
		}()
		synctest.Wait()
	}
}

// reply answers one of a caller's questions.
func (d *desk) reply(who string) {
	d.answer[who] <- struct{}{}
	synctest.Wait()
}

func (d *desk) wantBegun(t *testing.T, who string, want int) {
	t.Helper()
	if got := d.begun[who]; got != want {
		t.Errorf("%s has %d questions under way, want %d", who, got, want)
	}
}

// TestCallersTakeTurns: whoever asks much waits for himself.
func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		ctx, cancel := context.WithCancel(t.Context())
		d.ask(ctx, "eager@192.0.2.1", 50)
		d.wantBegun(t, "eager@192.0.2.1", api.QueriesAtOnce/2)
		d.ask(ctx, "late@192.0.2.2", 1)
		d.wantBegun(t, "late@192.0.2.2", 1)
		d.reply("late@192.0.2.2")
		if got := d.got["late@192.0.2.2"]; len(got) != 1 || got[0].Code != http.StatusOK {
			t.Errorf("the late caller got %v", got)
		}
		// All places are taken: the next one goes to who has none, however long others wait.
		for _, who := range []string{"b@192.0.2.2", "b@192.0.2.2", "c@192.0.2.3", "d@192.0.2.4"} {
			d.ask(ctx, who, 1)
			d.wantBegun(t, who, max(1, d.begun[who]))
		}
		d.ask(ctx, "e@192.0.2.5", 2)
		d.wantBegun(t, "e@192.0.2.5", 0)
		d.reply("eager@192.0.2.1")
		d.wantBegun(t, "e@192.0.2.5", 1)
		d.wantBegun(t, "eager@192.0.2.1", api.QueriesAtOnce/2-1)
		// The last place is for somebody who has none.
		d.reply("eager@192.0.2.1")
		d.wantBegun(t, "e@192.0.2.5", 1)
		d.ask(ctx, "f@192.0.2.6", 1)
		d.wantBegun(t, "f@192.0.2.6", 1)
		cancel()
		synctest.Wait()
		// Nobody who went away holds a place. Names of one machine share its places, in turn.
		d.begun = map[string]int{}
		d.ask(t.Context(), "eager@192.0.2.1", 8)
		d.wantBegun(t, "eager@192.0.2.1", api.QueriesAtOnce/2)
		d.ask(t.Context(), "other@192.0.2.1", 1)
		d.wantBegun(t, "other@192.0.2.1", 0)
		d.reply("eager@192.0.2.1")
		d.wantBegun(t, "other@192.0.2.1", 1)
		d.reply("other@192.0.2.1")
		for range 7 {
			d.reply("eager@192.0.2.1")
		}
	})
}

// TestLinesAreBounded: what cannot wait is refused at once, in words, and only to who asks too much.
func TestLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		ctx, cancel := context.WithCancel(t.Context())
		refused := func(who string, code int, words string) {
			t.Helper()
			got := d.got[who]
			if len(got) != 1 {
				t.Fatalf("%d answers to %s, want one", len(got), who)
			}
			w := got[0]
			if w.Code != code || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), words) {
				t.Errorf("%s got %d, Retry-After %q: %s", who, w.Code, w.Header().Get("Retry-After"), w.Body)
			}
			d.got[who] = nil
		}
		d.ask(ctx, "eager@192.0.2.1", api.QueriesAtOnce/2+64)
		if n := len(d.got["eager@192.0.2.1"]); n != 0 {
			t.Fatalf("%d questions were refused before the line was full", n)
		}
		d.ask(ctx, "eager@192.0.2.1", 1)
		refused("eager@192.0.2.1", http.StatusTooManyRequests, "64 questions waiting")
		d.ask(ctx, "late@192.0.2.2", 1)
		d.wantBegun(t, "late@192.0.2.2", 1)
		d.reply("late@192.0.2.2")
		d.got["late@192.0.2.2"] = nil
		// One machine under many names fills half of what may wait.
		d.ask(ctx, "a@192.0.2.1", 64)
		d.ask(ctx, "b@192.0.2.1", 1)
		refused("b@192.0.2.1", http.StatusServiceUnavailable, "too many questions at once")
		d.ask(ctx, "late@192.0.2.2", 1)
		d.wantBegun(t, "late@192.0.2.2", 1)
		d.reply("late@192.0.2.2")
		d.got["late@192.0.2.2"] = nil
		cancel()
		synctest.Wait()
		// Whose turn does not come within the time a question may take is told so.
		all, stop := context.WithCancel(t.Context())
		d.got["eager@192.0.2.1"] = nil
		d.begun = map[string]int{}
		d.ask(all, "eager@192.0.2.1", api.QueriesAtOnce/2)
		time.Sleep(30 * time.Second)
		d.ask(all, "eager@192.0.2.1", 1)
		d.ask(all, "b@192.0.2.2", 2)
		d.ask(all, "c@192.0.2.3", 1)
		d.ask(all, "d@192.0.2.4", 1)
		d.ask(all, "e@192.0.2.5", 1)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if got := d.got["eager@192.0.2.1"]; len(got) != api.QueriesAtOnce/2 || got[0].Code != http.StatusGatewayTimeout {
			t.Errorf("questions without an answer for a minute ended with %v", got)
		}
		d.wantBegun(t, "e@192.0.2.5", 1)
		stop()
		synctest.Wait()
	})
}
