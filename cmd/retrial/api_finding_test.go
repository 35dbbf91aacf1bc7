package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// fakeFindings is the part of a fakeStore that knows of findings.
type fakeFindings struct {
	found  []verdict.StoredFinding
	counts []queries.RuleCount
	rules  []detect.Rule

	asked queries.FindingFilter // of the last list
}

func (f *fakeFindings) Findings(_ context.Context, filter queries.FindingFilter) ([]verdict.StoredFinding, error) {
	f.asked = filter
	return f.found[:min(len(f.found), filter.Limit)], nil
}

func (f *fakeFindings) FindingCounts(context.Context, queries.FindingFilter) ([]queries.RuleCount, error) {
	return f.counts, nil
}

func (f *fakeFindings) DetectionRules() []detect.Rule { return f.rules }

func TestAPIFindings(t *testing.T) {
	f := &fakeStore{}
	for _, id := range []string{"c", "b", "a"} {
		f.found = append(f.found, verdict.StoredFinding{ID: id, First: time.UnixMicro(1000), Body: []byte(`{"id":"` + id + `"}`)})
	}
	f.counts = []queries.RuleCount{{Rule: "pod-exec", Findings: 3}}
	got := decodeAnswer[query.FindingsAnswer](t,
		askFake(t, f, http.MethodGet, "findings?cluster=c&severity=high&subject=bob&rule=pod-exec&at=2026-11-20T11:36:00Z&limit=2"+aRange))
	if len(got.Findings) != 2 || string(got.Findings[0]) != `{"id":"c"}` || got.Older != "1000.b" || got.Rules["pod-exec"] != 3 {
		t.Errorf("answer %+v", got)
	}
	if a := f.asked; a.Cluster != "c" || a.Subject != "bob" || a.Rule != "pod-exec" || len(a.Severities) != 2 ||
		a.Severities[0] != "high" || a.At.IsZero() || a.From.IsZero() || a.To.IsZero() {
		t.Errorf("the store was asked for %+v", a)
	}
	decodeAnswer[query.FindingsAnswer](t, askFake(t, f, http.MethodGet, "findings?before="+got.Older))
	if a := f.asked; a.Before != (queries.FindingCursor{First: 1000, ID: "b"}) || a.Limit != 101 {
		t.Errorf("the next page was asked as %+v", a)
	}
	for name, query := range map[string]string{
		"severity": "severity=huge", "limit": "limit=0", "limit too large": "limit=501", "no number": "limit=x", "place": "before=1",
		"time": "at=now", "range": "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
	} {
		if w := askFake(t, f, http.MethodGet, "findings?"+query); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d: %s", name, w.Code, w.Body)
		}
	}
}

func TestAPIRules(t *testing.T) {
	set, err := detect.Load(detect.BuiltinFiles())
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeStore{}
	f.fakeFindings.rules = set.Rules()
	got := decodeAnswer[query.RulesAnswer](t, askFake(t, f, http.MethodGet, "rules"))
	if len(got.Rules) != len(set.Rules()) {
		t.Fatalf("%d rules", len(got.Rules))
	}
	for _, r := range got.Rules {
		if r.ID == "" || r.Title == "" || r.Description == "" || r.Severity == "" || r.Kind == "" || r.Attack == nil {
			t.Errorf("incomplete rule %+v", r)
		}
	}
}
