package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
)

// TestAPIWhyAt: beside what is stored stands what the policy of another time says.
func TestAPIWhyAt(t *testing.T) {
	r := row("x", 1, true)
	r.Event.Verb, r.Event.RequestURI = "list", "/api/v1/secrets"
	r.Event.User = event.User{Username: "ann", Groups: []string{"system:authenticated"}}
	r.Verdict.Replayed, r.Verdict.Recorded = replay.DecisionForbid, replay.DecisionForbid
	f := &fakeStore{rows: []replay.Row{r}, known: policyOf(t, readerRole, annReads)}
	for at, want := range map[string]string{"2026-11-20T12:00:00Z": "allow", "2026-11-20T09:00:00Z": "none"} {
		w := decodeAnswer[whyJSON](t, askFake(t, f, http.MethodGet, "why?auditID=x&at="+at))
		got := w.Requests[0]
		if got.At == nil || got.At.Replayed != want || got.Verdict.Replayed != "forbid" || (len(got.At.Grants) == 1) != (want == "allow") || (len(got.At.Missing) > 0) != (want == "none") {
			t.Errorf("at %s: %+v beside %s; want %s", at, got.At, got.Verdict.Replayed, want)
		}
		var page bytes.Buffer
		if err := printWhy(&page, w); err != nil || !strings.Contains(page.String(), "AT "+at) {
			t.Errorf("%v: %s", err, &page)
		}
	}
	if w := decodeAnswer[whyJSON](t, askFake(t, f, http.MethodGet, "why?auditID=x")); w.Requests[0].At != nil {
		t.Error("another time is answered without being asked for")
	}
	f.known = nil
	if w := decodeAnswer[whyJSON](t, askFake(t, f, http.MethodGet, "why?auditID=x&at=2026-11-20T12:00:00Z")); w.Requests[0].At.Replayed != "none" || len(w.Requests[0].At.Missing) == 0 {
		t.Errorf("without a state: %+v", w.Requests[0].At)
	}
}
