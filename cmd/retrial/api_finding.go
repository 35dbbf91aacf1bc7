package main

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// findingQueries is what the API asks about detections.
type findingQueries interface {
	Findings(ctx context.Context, f storage.FindingFilter) ([]verdict.StoredFinding, error)
	FindingCounts(ctx context.Context, f storage.FindingFilter) ([]storage.RuleCount, error)
	// DetectionRules are the rules this process would detect with.
	DetectionRules() []detect.Rule
}

// ruledStore is a store and the rules its findings come from.
type ruledStore struct {
	*storage.Store
	rules *detect.Set
}

// DetectionRules returns the rules in the order of their ids.
func (s ruledStore) DetectionRules() []detect.Rule { return s.rules.Rules() }

// findingRoutes are the questions about what detections found.
func (a *api) findingRoutes() []route {
	return []route{
		{"findings", []string{"cluster", "from", "to", "at", "rule", "severity", "subject", "limit", "before"}, costQuery, a.findings},
		{"rules", nil, costNothing, a.rules},
	}
}

// Findings in one answer.
const (
	usualFindings = 100
	mostFindings  = 500
)

type findingsJSON struct {
	Findings []json.RawMessage `json:"findings"`        // as analysis/detect writes them
	Older    string            `json:"older,omitempty"` // what before= continues with
	Rules    map[string]uint64 `json:"rules"`           // findings by rule, of all pages
}

// findings lists what stands, newest first. Without a cluster it lists all clusters'.
func (a *api) findings(ctx context.Context, q url.Values) (any, error) {
	f, err := findingFilter(q)
	if err != nil {
		return nil, err
	}
	limit := f.Limit
	f.Limit++ // one more, to know whether there are older ones
	list, err := a.store.Findings(ctx, f)
	if err != nil {
		return nil, err
	}
	counts, err := a.store.FindingCounts(ctx, f)
	if err != nil {
		return nil, err
	}
	out := findingsJSON{Findings: []json.RawMessage{}, Rules: map[string]uint64{}}
	for i := range list[:min(len(list), limit)] {
		out.Findings = append(out.Findings, list[i].Body)
	}
	if len(list) > limit {
		c := storage.CursorOfFinding(&list[limit-1])
		out.Older = strconv.FormatInt(c.First, 10) + "." + c.ID
	}
	for _, c := range counts {
		out.Rules[c.Rule] = c.Findings
	}
	return out, nil
}

func findingFilter(q url.Values) (f storage.FindingFilter, err error) {
	f = storage.FindingFilter{Cluster: q.Get("cluster"), Rule: q.Get("rule"), Subject: q.Get("subject")}
	if f.From, err = instant(q, "from"); err != nil {
		return f, err
	}
	if f.To, err = instant(q, "to"); err != nil {
		return f, err
	}
	if f.At, err = instant(q, "at"); err != nil {
		return f, err
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return f, bad("from %s is not before to %s", q.Get("from"), q.Get("to"))
	}
	least, err := oneOf(q, "severity", detect.Severities()...)
	if err != nil {
		return f, err
	}
	if n := severityOrder(least); n > 0 {
		f.Severities = detect.Severities()[n:]
	}
	if f.Limit, err = limitOf(q, usualFindings, mostFindings); err != nil {
		return f, err
	}
	if s := q.Get("before"); s != "" {
		at, id, ok := strings.Cut(s, ".")
		n, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil || id == "" {
			return f, bad("before: %q is no place in a list of findings", s)
		}
		f.Before = storage.FindingCursor{First: n, ID: id}
	}
	return f, nil
}

type detectionRuleJSON struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Severity    string   `json:"severity"`
	Attack      []string `json:"attack"`
	Kind        string   `json:"kind"`
}

type detectionRulesJSON struct {
	Rules []detectionRuleJSON `json:"rules"`
}

func (a *api) rules(context.Context, url.Values) (any, error) {
	out := detectionRulesJSON{Rules: []detectionRuleJSON{}}
	for _, r := range a.store.DetectionRules() {
		attack := r.Attack
		if attack == nil {
			attack = []string{}
		}
		out.Rules = append(out.Rules, detectionRuleJSON{r.ID, r.Title, strings.TrimSpace(r.Description), r.Severity, attack, r.Kind})
	}
	return out, nil
}

// severityOrder orders severities; an unknown one is the least.
func severityOrder(severity string) int { return slices.Index(detect.Severities(), severity) }
