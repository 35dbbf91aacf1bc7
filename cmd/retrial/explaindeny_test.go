package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/verdict"
)

// TestExplainDenyRoute: what refused a request, by every way in which one can be refused.
func TestExplainDenyRoute(t *testing.T) {
	ann := event.User{Username: "ann", Groups: []string{"system:authenticated"}}
	for _, tc := range []struct {
		name         string
		code         int32
		user         event.User
		verb, uri    string
		change       func(*event.Event, *verdict.Verdict)
		by, says     string
		chain, check int
	}{
		{"the authorizers", 403, ann, "delete", "/api/v1/secrets/s", func(_ *event.Event, v *verdict.Verdict) {
			v.Recorded, v.Replayed = verdict.DecisionForbid, verdict.DecisionForbid
		}, query.ByAuthorizers, "no authorizer allowed it", 3, 0},
		{"the authorizers, which allow it by what is known", 403, ann, "list", "/api/v1/secrets", func(_ *event.Event, v *verdict.Verdict) {
			v.Recorded, v.Replayed, v.Outcome = verdict.DecisionForbid, verdict.DecisionAllow, verdict.OutcomeDrift
		}, query.ByAuthorizers, "this is drift", 3, 0},
		{"a webhook", 403, ann, "list", "/api/v1/secrets", func(_ *event.Event, v *verdict.Verdict) {
			v.Recorded, v.Replayed, v.Outcome, v.RecordedReason = verdict.DecisionForbid, verdict.DecisionAllow, verdict.OutcomeMatch,
				"not on Fridays"
		}, query.ByAuthorizers, "not on Fridays. All others allow it: a webhook refused it", 3, 0},
		{"a check", 403, ann, "list", "/api/v1/secrets", func(_ *event.Event, v *verdict.Verdict) {
			v.Recorded, v.Replayed = verdict.DecisionAllow, verdict.DecisionAllow
			v.Implied = []verdict.Implied{
				{Check: verdict.CheckOwnerDelete, Recorded: verdict.DecisionAllow, Attributes: verdict.Attributes{Verb: "delete"}},
				{Check: verdict.CheckWebsocket, Replayed: verdict.DecisionForbid, Recorded: verdict.DecisionForbid,
					Attributes: verdict.Attributes{ResourceRequest: true, Verb: "create", Resource: "secrets", Namespace: "n", Name: "s"}}}
		}, query.ByCheck, "a check behind them refused it", 3, 1},
		{"impersonation", 403, ann, "list", "/api/v1/secrets", func(_ *event.Event, v *verdict.Verdict) {
			v.Impersonation = &verdict.ImpersonationCheck{Recorded: verdict.DecisionForbid, Replayed: verdict.DecisionForbid,
				Cause: "refused at impersonate users bob"}
			v.Implied = []verdict.Implied{{Check: verdict.CheckImpersonation, Replayed: verdict.DecisionForbid,
				Recorded:   verdict.DecisionForbid,
				Attributes: verdict.Attributes{ResourceRequest: true, Verb: "impersonate", Resource: "users", Name: "bob"}}}
		}, query.ByImpersonation, "ann may not act as the user it named: refused at impersonate users bob", 0, 1},
		{"an admission plugin", 403, ann, "list", "/api/v1/secrets", func(_ *event.Event, v *verdict.Verdict) {
			v.Recorded, v.Admission = verdict.DecisionAllow, verdict.Admission{Recorded: verdict.AdmissionRejected,
				Answers: []verdict.AdmissionAnswer{{Plugin: "NamespaceLifecycle", Outcome: verdict.PluginPass},
					{Plugin: "ResourceQuota", Name: "q", Outcome: verdict.PluginRejected, Code: 403}}}
		}, query.ByAdmission, "the admission plugin ResourceQuota q refused it", 3, 0},
		{"something behind the authorizers", 403, ann, "list", "/api/v1/secrets", func(_ *event.Event, v *verdict.Verdict) {
			v.Recorded = verdict.DecisionAllow
		}, query.ByOther, "the message says why", 3, 0},
		{"authentication", 401, event.User{}, "list", "/api/v1/secrets", func(e *event.Event, v *verdict.Verdict) {
			e.ResponseStatus.Message = "Authentication failed, attempted: bearer"
			v.Recorded, v.Class = verdict.DecisionNone, verdict.ClassUnauthenticated
		}, query.ByAuthentication, "credentials were sent and refused: bearer", 0, 0},
		{"nobody", 200, ann, "list", "/api/v1/secrets", func(_ *event.Event, v *verdict.Verdict) {
			v.Recorded, v.Replayed = verdict.DecisionAllow, verdict.DecisionAllow
		}, query.ByNobody, "rbac allows it", 3, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := row("x", 1, true)
			r.Event.Verb, r.Event.RequestURI, r.Event.User = tc.verb, tc.uri, tc.user
			r.Event.ResponseStatus = &event.Status{Code: tc.code}
			r.Verdict.Grants, r.Verdict.Implied, r.Verdict.Admission = nil, nil, verdict.Admission{}
			tc.change(r.Event, r.Verdict)
			f := &fakeStore{rows: []verdict.Row{r}, known: policyOf(t, readerRole, annReads)}
			answer := decodeAnswer[query.ExplainDenyAnswer](t,
				askFake(t, f, http.MethodGet, "explain-deny?auditID=x&at=2026-11-20T12:00:00Z"))
			if len(answer.Requests) != 1 {
				t.Fatalf("%d requests", len(answer.Requests))
			}
			d := answer.Requests[0]
			if d.By != tc.by || !strings.Contains(d.Text, tc.says) || len(d.Chain) != tc.chain || len(d.Checks) != tc.check {
				t.Errorf("got %s: %s (%d authorizers, %d checks); want %s: %s (%d, %d)", d.By, d.Text, len(d.Chain), len(d.Checks), tc.by,
					tc.says, tc.chain, tc.check)
			}
			for _, c := range d.Checks {
				if c.Nearest == nil || c.User != "ann" || c.Asked == "" {
					t.Errorf("check %+v", c)
				}
			}
			if page, _ := printed(printDenials, &answer); !strings.Contains(page, "REFUSED BY") {
				t.Error(page)
			}
		})
	}
	if w := askFake(t, &fakeStore{}, http.MethodGet, "explain-deny"); w.Code != http.StatusBadRequest ||
		!strings.Contains(w.Body.String(), "auditID is missing") {
		t.Errorf("without an audit ID: %d %s", w.Code, w.Body)
	}
}

// TestExplainDenyByTime: the policy of another time is asked when it is named, and the nearest
// misses are those of that time.
func TestExplainDenyByTime(t *testing.T) {
	r := row("x", 1, true)
	r.Event.Verb, r.Event.RequestURI = "delete", "/api/v1/secrets/s"
	r.Event.User = event.User{Username: "ann", Groups: []string{"system:authenticated"}}
	r.Verdict.Recorded, r.Verdict.Replayed = verdict.DecisionForbid, verdict.DecisionForbid
	f := &fakeStore{rows: []verdict.Row{r}, known: policyOf(t, readerRole, annReads)}
	for at, almost := range map[string]bool{"2026-11-20T12:00:00Z": true, "2026-11-20T09:00:00Z": false} {
		d := decodeAnswer[query.ExplainDenyAnswer](t, askFake(t, f, http.MethodGet, "explain-deny?auditID=x&at="+at)).Requests[0]
		rbac := d.Chain[len(d.Chain)-1]
		if rbac.Nearest == nil || (len(rbac.Nearest.Almost) == 1) != almost || (len(d.Missing) == 0) != almost {
			t.Errorf("at %s: %+v, not known: %q", at, rbac.Nearest, d.Missing)
		}
		if almost && rbac.Nearest.Almost[0].Lacks != rbacindex.LackVerb.String() {
			t.Errorf("it lacks the %s", rbac.Nearest.Almost[0].Lacks)
		}
	}
	f.known = nil
	d := decodeAnswer[query.ExplainDenyAnswer](t, askFake(t, f, http.MethodGet, "explain-deny?auditID=x")).Requests[0]
	if d.Replayed != "none" || len(d.Missing) == 0 || d.Chain[len(d.Chain)-1].Nearest != nil {
		t.Errorf("without a state: %+v", d)
	}
}

// TestExplainDenyOfMany: clients may use an audit ID as often as they like.
func TestExplainDenyOfMany(t *testing.T) {
	f := &fakeStore{}
	for i := range query.MostDenials + 5 {
		r := row("x", i, true)
		r.Size = 1
		f.rows = append(f.rows, r)
	}
	answer := decodeAnswer[query.ExplainDenyAnswer](t, askFake(t, f, http.MethodGet, "explain-deny?auditID=x"))
	if len(answer.Requests) != query.MostDenials || !answer.Truncated || f.visited != query.MostDenials+1 {
		t.Errorf("%d requests, truncated %v, %d rows read", len(answer.Requests), answer.Truncated, f.visited)
	}
}

// TestExplainDenyOffline: a log is explained without a store, with the apiserver's configuration.
func TestExplainDenyOffline(t *testing.T) {
	dir := filepath.Join("..", "..", "replay", "testdata", "recordings", "identities")
	id := ""
	for _, l := range verdictLines(t, dir) {
		for _, c := range l.Implied {
			if c.Check == verdict.CheckSignerApprove && c.Recorded == "forbid" {
				id = l.AuditID
			}
		}
	}
	if id == "" {
		t.Fatal("no refused approval is in the recording")
	}
	var out, errs bytes.Buffer
	args := []string{"explain-deny", id, "--events", filepath.Join(dir, "audit.jsonl.zst"), "--state", filepath.Join(dir, "state.json.zst"),
		"--apiserver-config", filepath.Join(dir, "config")}
	if code := execute(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	for _, want := range []string{"REFUSED BY", "check: the authorizers allowed it",
		"signer-approve: may petra approve signers.certificates.k8s.io", "NARROWEST RULE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &out)
		}
	}
}

// verdictLines evaluates a recording by the command and returns what it prints of each request.
func verdictLines(t *testing.T, dir string) (lines []verdict.Line) {
	t.Helper()
	var out, errs bytes.Buffer
	args := []string{"evaluate", "--events", filepath.Join(dir, "audit.jsonl.zst"), "--state", filepath.Join(dir, "state.json.zst"),
		"--apiserver-config", filepath.Join(dir, "config"), "-o", "jsonl"}
	if code := execute(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var l verdict.Line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// TestExplainDenyUsage: what cannot be asked is told.
func TestExplainDenyUsage(t *testing.T) {
	log := filepath.Join("..", "..", "replay", "testdata", "recordings", "always-deny", "audit.jsonl.zst")
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no ID":         {nil, cli.ExitUsage, "AUDIT-ID is missing"},
		"a state alone": {[]string{"x", "--state", log}, cli.ExitUsage, "add --events"},
		"no such log":   {[]string{"x", "--events", "nowhere.log"}, cli.ExitUsage, "nowhere.log"},
		"no time":       {[]string{"x", "--events", log, "--at", "tomorrow"}, cli.ExitUsage, `invalid time "tomorrow"`},
		"an ID nobody used": {[]string{"no-such\x1b[2J", "--events", log}, cli.ExitNoMatch,
			`no judged request of the log carries the audit ID no-such\x1b[2J`},
		"no configuration": {[]string{"x", "--events", log, "--apiserver-config", "nowhere"}, cli.ExitUsage, "nowhere"},
		"a form":           {[]string{"x", "-o", "xml"}, cli.ExitUsage, "want one of table, wide, name, json, yaml, csv, jsonpath"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := execute(t.Context(), append([]string{"explain-deny"}, tc.args...),
				cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			if code != tc.code || !strings.Contains(errs.String(), tc.says) {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, &errs)
			}
		})
	}
}

// TestPrintDenialsIsSafe: what clients chose does not reach a terminal as it is.
func TestPrintDenialsIsSafe(t *testing.T) {
	hostile := "x\x1b[2J\nREFUSED BY  forged"
	near := &query.NearestMiss{Roles: []query.Offer{{Role: hostile}}, Bindings: []query.Offer{{Binding: hostile, Role: hostile}},
		Almost: []query.Almost{{Grant: query.Grant{GrantNames: verdict.GrantNames{Subject: hostile, Binding: hostile, Role: hostile}},
			Lacks: hostile}}}
	near.Rule.Verbs, near.Rule.NonResourceURLs, near.Rule.Resources = []string{hostile}, []string{hostile}, []string{hostile}
	out, _ := printed(printDenials, &query.ExplainDenyAnswer{Truncated: true, Requests: []query.Denial{{
		Cluster: hostile, APIServer: hostile, AuditID: hostile, Verb: hostile, RequestURI: hostile, User: hostile,
		Groups: []string{hostile}, ActingAs: hostile, Message: hostile, By: query.ByAuthorizers, Text: hostile, Plugin: hostile,
		PluginName: hostile, Identity: []string{hostile}, Missing: []string{hostile},
		Chain:  []query.Shortfall{{Authorizer: hostile, Answer: hostile, Text: hostile, Almost: []string{hostile}, Nearest: near}},
		Checks: []query.DeniedCheck{{Check: hostile, Asked: hostile, User: hostile, Missing: []string{hostile}, Nearest: near}},
	}}})
	if strings.ContainsAny(out, "\x1b\a") || strings.Contains(out, "\nREFUSED BY  forged") {
		t.Errorf("a control byte, or a forged line, came through:\n%q", out)
	}
	if !strings.Contains(out, "more requests of this audit ID") {
		t.Error("nothing says that the answer is cut off")
	}
}
