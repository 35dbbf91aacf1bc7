package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/storage/queries"
)

// keptAsked keeps questions, or refuses them.
type keptAsked struct {
	list []queries.Asked
	err  error
}

func (k *keptAsked) SaveAsked(_ context.Context, list []queries.Asked) error {
	if k.err == nil {
		k.list = append(k.list, list...)
	}
	return k.err
}

func (f *fakeStore) QueryLog(ctx context.Context, _ time.Time, limit int) ([]queries.Asked, error) {
	return make([]queries.Asked, min(limit, 3)), f.answer(ctx)
}

// TestQuestionsAreRecorded: every question that tells what somebody did leaves a record of
// who asked, and how it ended; what the store does not take is kept for it.
func TestQuestionsAreRecorded(t *testing.T) {
	kept := &keptAsked{err: errors.New("not now")}
	log := api.NewQueryLog(kept, zap.NewNop())
	f := &fakeStore{}
	h := apiHandler(f, f.replay(), log, zap.NewNop(), time.Minute)
	ask := func(path string, prepare func(*http.Request)) {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/"+path, nil)
		r.RemoteAddr = "10.1.2.3:999"
		prepare(r)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	none := func(*http.Request) {}
	ask("status", none)
	ask("clusters", none)
	ask("events?cluster=a", none)
	log.Save(t.Context())
	ask("events?cluster=a", none)
	ask("events?cluster=a&verb=get", func(r *http.Request) { r.SetBasicAuth("alice", "secret-of-alice") })
	ask("events?clutser=a", func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") })
	f.err = errors.New("broken")
	ask("why?auditID=x", func(r *http.Request) {
		*r = *r.WithContext(context.WithValue(r.Context(), api.CallerKey{}, api.Caller{Door: "socket", Name: "0 (root)"}))
	})
	log.Save(t.Context())
	kept.err = nil
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]queries.Asked{}
	count := int64(0)
	for _, a := range kept.list {
		got[a.Question+"?"+a.Detail] = a
		count += a.Count
	}
	if count != 5 {
		t.Errorf("%d questions recorded, want 5 (two of them alike)", count)
	}
	for question, want := range map[string]queries.Asked{
		"events?cluster=a":          {Door: "page", Caller: "anybody here", Address: "10.1.2.3", Status: "ok"},
		"events?cluster=a&verb=get": {Door: "page", Caller: "token, as alice", Address: "10.1.2.3", Status: "ok"},
		"events?clutser=a":          {Door: "page", Caller: "token", Address: "10.1.2.3", Status: "refused"},
		"why?auditID=x":             {Door: "socket", Caller: "0 (root)", Status: "failed"},
	} {
		a, ok := got[question]
		if !ok || a.Door != want.Door || a.Caller != want.Caller || a.Address != want.Address || a.Status != want.Status || a.Bytes == 0 {
			t.Errorf("%s: recorded %+v (%v), want %+v", question, a, ok, want)
		}
	}
}
