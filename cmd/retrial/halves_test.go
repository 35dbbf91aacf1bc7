package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// One half alone reaches the other through a real Kafka only.
func TestHalvesNeedKafka(t *testing.T) {
	for _, command := range []string{"ingest", "replay"} {
		t.Run(command, func(t *testing.T) {
			var out, errs strings.Builder
			code := execute(t.Context(), []string{command, "--data-dir", t.TempDir()}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			if code != cli.ExitUsage || !strings.Contains(errs.String(), "kafka-brokers") || !strings.Contains(errs.String(), "retrial serve") {
				t.Errorf("exit code %d, printed %q", code, errs.String())
			}
		})
	}
}

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
	if _, err := stateElsewhere(context.Background(), "prod", time.Time{}, strings.NewReader("{}")); err == nil || !strings.Contains(err.Error(), "replay process") {
		t.Errorf("a state: %v", err)
	}
}
