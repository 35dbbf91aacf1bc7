package query

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

// findingQueries is what questions ask about detections.
type findingQueries interface {
	Findings(ctx context.Context, f storage.FindingFilter) ([]verdict.StoredFinding, error)
	FindingCounts(ctx context.Context, f storage.FindingFilter) ([]storage.RuleCount, error)
	// DetectionRules are the rules this process would detect with.
	DetectionRules() []detect.Rule
}

// RuledStore is a store and the rules its findings come from.
type RuledStore struct {
	*storage.Store
	Set *detect.Set
}

// DetectionRules returns the rules in the order of their ids.
func (s RuledStore) DetectionRules() []detect.Rule { return s.Set.Rules() }

// findingRoutes are the questions about what detections found.
func (a *Service) findingRoutes() []Question {
	return []Question{
		{"findings", []string{"cluster", "from", "to", "at", "rule", "severity", "subject", "limit", "before"}, CostQuery, a.findings},
		{"rules", nil, CostNothing, a.rules},
	}
}

// Findings in one answer.
const (
	UsualFindings = 100
	MostFindings  = 500
)

// FindingsAnswer is what detections found.
type FindingsAnswer struct {
	Findings []json.RawMessage `json:"findings"`        // as analysis/detect writes them
	Older    string            `json:"older,omitempty"` // what before= continues with
	Rules    map[string]uint64 `json:"rules"`           // findings by rule, of all pages
}

// findings lists what stands, newest first. Without a cluster it lists all clusters'.
func (a *Service) findings(ctx context.Context, q url.Values) (any, error) {
	f, err := FindingFilter(q)
	if err != nil {
		return nil, err
	}
	limit := f.Limit
	f.Limit++ // one more, to know whether there are older ones
	list, err := a.Store.Findings(ctx, f)
	if err != nil {
		return nil, err
	}
	counts, err := a.Store.FindingCounts(ctx, f)
	if err != nil {
		return nil, err
	}
	out := FindingsAnswer{Findings: []json.RawMessage{}, Rules: map[string]uint64{}}
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

// FindingFilter reads which findings are asked for.
func FindingFilter(q url.Values) (f storage.FindingFilter, err error) {
	f = storage.FindingFilter{Cluster: q.Get("cluster"), Rule: q.Get("rule"), Subject: q.Get("subject")}
	if f.From, err = Instant(q, "from"); err != nil {
		return f, err
	}
	if f.To, err = Instant(q, "to"); err != nil {
		return f, err
	}
	if f.At, err = Instant(q, "at"); err != nil {
		return f, err
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return f, Bad("from %s is not before to %s", q.Get("from"), q.Get("to"))
	}
	least, err := oneOf(q, "severity", detect.Severities()...)
	if err != nil {
		return f, err
	}
	if n := SeverityOrder(least); n > 0 {
		f.Severities = detect.Severities()[n:]
	}
	if f.Limit, err = limitOf(q, UsualFindings, MostFindings); err != nil {
		return f, err
	}
	if s := q.Get("before"); s != "" {
		at, id, ok := strings.Cut(s, ".")
		n, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil || id == "" {
			return f, Bad("before: %q is no place in a list of findings", s)
		}
		f.Before = storage.FindingCursor{First: n, ID: id}
	}
	return f, nil
}

// DetectionRule is a rule that findings come from.
type DetectionRule struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Severity    string   `json:"severity"`
	Attack      []string `json:"attack"`
	Kind        string   `json:"kind"`
}

// RulesAnswer are the rules there are, in the order of their IDs.
type RulesAnswer struct {
	Rules []DetectionRule `json:"rules"`
}

func (a *Service) rules(context.Context, url.Values) (any, error) {
	out := RulesAnswer{Rules: []DetectionRule{}}
	for _, r := range a.Store.DetectionRules() {
		attack := r.Attack
		if attack == nil {
			attack = []string{}
		}
		out.Rules = append(out.Rules, DetectionRule{r.ID, r.Title, strings.TrimSpace(r.Description), r.Severity, attack, r.Kind})
	}
	return out, nil
}

// SeverityOrder orders severities; an unknown one is the least.
func SeverityOrder(severity string) int { return slices.Index(detect.Severities(), severity) }
