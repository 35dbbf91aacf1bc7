package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// A process that only receives says so to whoever asks it something, or gives it a state.
func TestIngestAnswersForNothingElse(t *testing.T) {
	w := httptest.NewRecorder()
	elsewhere{}.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/overview", nil))
	if w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), "replay process") {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
	client := apiclient.InProcess(elsewhere{})
	if _, err := apiclient.Ask(t.Context(), client, query.DrainedRequest{}); !errors.Is(err, apiclient.ErrElsewhere) {
		t.Errorf("waiting for it: %v", err)
	}
	if _, err := stateElsewhere(context.Background(), "prod", time.Time{}, strings.NewReader("{}")); err == nil ||
		!strings.Contains(err.Error(), "replay process") {
		t.Errorf("a state: %v", err)
	}
}
