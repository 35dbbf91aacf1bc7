package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

// TestAPIWhyAt: beside what is stored stands what the policy of another time says.
func TestAPIWhyAt(t *testing.T) {
	r := row("x", 1, true)
	r.Event.Verb, r.Event.RequestURI = "list", "/api/v1/secrets"
	r.Event.User = event.User{Username: "ann", Groups: []string{"system:authenticated"}}
	r.Verdict.Replayed, r.Verdict.Recorded = verdict.DecisionForbid, verdict.DecisionForbid
	f := &fakeStore{rows: []verdict.Row{r}, known: policyOf(t, readerRole, annReads)}
	for at, want := range map[string]string{"2026-11-20T12:00:00Z": "allow", "2026-11-20T09:00:00Z": "none"} {
		w := decodeAnswer[query.WhyAnswer](t, askFake(t, f, http.MethodGet, "why?auditID=x&at="+at))
		got := w.Requests[0]
		if got.At == nil || got.At.Replayed != want || got.Verdict.Replayed != "forbid" || (len(got.At.Grants) == 1) != (want == "allow") ||
			(len(got.At.Missing) > 0) != (want == "none") {
			t.Errorf("at %s: %+v beside %s; want %s", at, got.At, got.Verdict.Replayed, want)
		}
		var page cli.Page
		err := printWhy(&page, &w)
		if lines, _ := page.Texts(); err != nil || !strings.Contains(lines, "AT "+at) {
			t.Errorf("%v: %s", err, lines)
		}
	}
	if w := decodeAnswer[query.WhyAnswer](t, askFake(t, f, http.MethodGet, "why?auditID=x")); w.Requests[0].At != nil {
		t.Error("another time is answered without being asked for")
	}
	f.known = nil
	if w := decodeAnswer[query.WhyAnswer](t, askFake(t, f, http.MethodGet,
		"why?auditID=x&at=2026-11-20T12:00:00Z")); w.Requests[0].At.Replayed != "none" || len(w.Requests[0].At.Missing) == 0 {
		t.Errorf("without a state: %+v", w.Requests[0].At)
	}
}

// TestPrintWhyIsSafe: what clients chose does not reach a terminal as it is.
func TestPrintWhyIsSafe(t *testing.T) {
	hostile := "x\x1b[2J\nVERDICT  forged"
	e := &event.Event{Verb: hostile, RequestURI: hostile, UserAgent: hostile, SourceIPs: []string{hostile},
		User:             event.User{Username: hostile, Groups: []string{hostile}},
		ImpersonatedUser: &event.User{Username: hostile, Groups: []string{hostile}},
		ResponseStatus:   &event.Status{Code: 403, Message: hostile}}
	many, grants := []string{hostile},
		[]verdict.GrantLine{{GrantNames: verdict.GrantNames{Binding: hostile, Role: hostile, Subject: hostile}}}
	v := &verdict.Line{Verdict: hostile, Class: hostile, Cause: hostile, Recorded: hostile, RecordedReason: hostile, Replayed: hostile,
		Authorizer: hostile, Grants: grants,
		Errors: many, Missing: many, Identity: many, Evidence: many, Explained: many, Credential: hostile, Engine: hostile, Config: hostile,
		Impersonation: &verdict.ImpersonationLine{Replayed: hostile, Mode: hostile, Cause: hostile, Missing: many, Grants: grants},
		Implied: []verdict.ImpliedLine{{Check: hostile, Asked: hostile, Replayed: hostile, Recorded: hostile, Perhaps: hostile,
			Missing: many, Grants: grants}},
		Review: &verdict.ReviewLine{Kind: hostile, User: hostile, Asked: hostile, Recorded: hostile, Replayed: hostile, Reason: hostile,
			Verdict: hostile, Cause: hostile},
		Admission: &verdict.AdmissionLine{Recorded: hostile, Plugin: hostile,
			Answers: []verdict.AdmissionAnswer{{Plugin: hostile, Name: hostile, Outcome: hostile, Reason: hostile}}}}
	var page cli.Page
	err := printWhy(&page,
		&query.WhyAnswer{Requests: []query.JudgedRequest{{Cluster: hostile, APIServer: hostile, Twin: hostile,
			Event: event.AppendJSON(nil, e), Verdict: v,
			Stages: []query.Stage{{Stage: hostile}}, Chain: []verdict.ChainStep{{Authorizer: hostile, Answer: hostile, Reason: hostile}},
			Issue: &query.Issue{By: hostile, From: hostile, AuditID: hostile, ServiceAccount: hostile, CommonName: hostile}}}})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := page.Texts()
	if strings.ContainsAny(out, "\x1b\a") || strings.Contains(out, "\nVERDICT  forged") {
		t.Errorf("a control byte, or a forged line, came through:\n%q", out)
	}
}
