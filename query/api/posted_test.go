package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/query/client"
)

// TestPosted: a long question comes whole from a client, by POST, and whoever may ask may ask it.
func TestPosted(t *testing.T) {
	var asked query.WhatIfRequest
	h := api.New([]query.Question{query.NewQuestion(query.CostHistory, "s", func(_ context.Context,
		q query.WhatIfRequest) (query.WhatIfAnswer, error) {
		asked = q
		return query.WhatIfAnswer{Cluster: q.Cluster}, nil
	})}, nil, zap.NewNop(), time.Minute)
	draft := map[string]string{"a b.yaml": strings.Repeat("é\n", 500_000)}
	from := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	answer, err := client.Ask(t.Context(), client.InProcess(h), query.WhatIfRequest{Cluster: "c", Draft: draft, From: from,
		Delete: []string{"ClusterRole/x", "Role/n/y"}})
	if err != nil || answer.Cluster != "c" || asked.Draft["a b.yaml"] != draft["a b.yaml"] || len(asked.Delete) != 2 ||
		!asked.From.Equal(from) || !asked.To.IsZero() {
		t.Errorf("%v: %d bytes, %v", err, len(asked.Draft["a b.yaml"]), asked.Delete)
	}
	for body, want := range map[string]int{
		`{"cluster":"c","delete":["Role/a/b"]}`: http.StatusOK, `{"cluster":"c"}`: http.StatusBadRequest, `[]`: http.StatusBadRequest,
		`{"cluster":"c","draft":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`: http.StatusBadRequest,
	} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/whatif", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%.60s: %d: %s", body, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/whatif?cluster=c", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d", w.Code)
	}
}
