package query

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/storage/queries"
)

// FindingsAnswer is what detections found.
type FindingsAnswer struct {
	Findings []json.RawMessage `json:"findings"`        // as analysis/detect writes them
	Older    string            `json:"older,omitempty"` // what before= continues with
	Rules    map[string]uint64 `json:"rules"`           // findings by rule, of all pages
	// Stranger says that no request of the subject asked about is stored.
	Stranger bool `json:"stranger,omitempty"`
	// Near are subjects that a stranger's name may have been meant for, three at most.
	Near []string `json:"near,omitempty"`
}

// FindingsRequest asks what detections found, by the first request of each, newest first.
type FindingsRequest struct {
	Asks[FindingsAnswer] `question:"findings"`
	Cluster              string    `json:"cluster" help:"findings of this cluster (default: all)" flag:"findings of this cluster (default: all); with --events its name, part of every id (default \"evaluate\")"`
	From                 time.Time `json:"from" help:"findings with requests at or after this time, such as 2026-11-20T11:36:00Z"`
	To                   time.Time `json:"to" help:"findings with requests before this time"`
	At                   time.Time `json:"at" help:"findings as they stood at this time: those whose first request had been received"`
	Rule                 string    `json:"rule" help:"findings of this rule"`
	Severity             string    `json:"severity" name:"min-severity" enum:"info,low,medium,high,critical" help:"findings of this severity or above" flag:"leave out findings below info, low, medium, high or critical"`
	Subject              string    `json:"subject" help:"findings on this user" flag:"findings on this user: sa/NAMESPACE:NAME, or a user name as audit events have it"`
	Limit                int       `json:"limit" default:"100" min:"1" max:"500" help:"most findings of an answer"`
	Before               string    `json:"before" help:"go on behind this place in the list: older of the answer before"`
}

func (r FindingsRequest) check() error { return before(r.From, r.To) }

// Findings answers with the findings that stand; without a cluster, with those of all clusters. It does not stream: Limit bounds the
// answer, and many who open a page share it.
func (a *Service) Findings(ctx context.Context, q FindingsRequest) (out FindingsAnswer, err error) {
	f, err := q.filter()
	if err != nil {
		return out, err
	}
	limit := f.Limit
	f.Limit++ // one more, to know whether there are older ones
	list, err := a.Store.Findings(ctx, f)
	if err != nil {
		return out, err
	}
	counts, err := a.Store.FindingCounts(ctx, f)
	if err != nil {
		return out, err
	}
	out = FindingsAnswer{Findings: []json.RawMessage{}, Rules: map[string]uint64{}}
	if len(list) == 0 && q.Subject != "" && q.Before == "" {
		if out.Stranger, out.Near, err = a.unseen(ctx, q.Cluster, q.Subject); err != nil {
			return out, err
		}
	}
	for i := range list[:min(len(list), limit)] {
		out.Findings = append(out.Findings, list[i].Body)
	}
	if len(list) > limit {
		c := queries.CursorOfFinding(&list[limit-1])
		out.Older = formatCursor(c.First, c.ID)
	}
	for _, c := range counts {
		out.Rules[c.Rule] = c.Findings
	}
	return out, nil
}

// unseen reports whether no request of a subject is stored of a cluster, or of any without one, and who is called much like it.
func (a *Service) unseen(ctx context.Context, cluster, subject string) (unseen bool, near []string, err error) {
	clusters := []queries.Cluster{{Name: cluster}}
	if cluster == "" {
		if clusters, err = a.Store.Clusters(ctx); err != nil {
			return false, nil, err
		}
	}
	var known []string
	for _, c := range clusters {
		_, last, told, err := a.Store.LastGroups(ctx, c.Name, subject, time.Time{})
		if err != nil || !last.IsZero() || !told {
			return false, nil, err
		}
		like, err := a.Store.NearSubjects(ctx, c.Name, subject, nearCandidates)
		if err != nil {
			return false, nil, err
		}
		known = append(known, like...)
	}
	return true, NearSubjects(subject, known, mostNear), nil
}

func (r *FindingsRequest) filter() (f queries.FindingFilter, err error) {
	f = queries.FindingFilter{Cluster: r.Cluster, Rule: r.Rule, Subject: r.Subject, From: r.From, To: r.To, At: r.At, Limit: r.Limit}
	if n := SeverityOrder(r.Severity); n > 0 {
		f.Severities = detect.Severities()[n:]
	}
	if r.Before != "" {
		f.Before.First, f.Before.ID, err = parseCursor(r.Before)
	}
	return f, err
}

// DetectionRule is a rule that findings come from.
type DetectionRule struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"` // what it looks for, and why
	Severity    string   `json:"severity"`    // info, low, medium, high, critical
	Attack      []string `json:"attack"`      // MITRE ATT&CK techniques
	Kind        string   `json:"kind"`        // event, window, first-seen
}

// RulesAnswer lists the rules, in the order of their IDs.
type RulesAnswer struct {
	Rules []DetectionRule `json:"rules"` // in the order of their ids
}

// RulesRequest asks for the rules the server detects with.
type RulesRequest struct {
	Asks[RulesAnswer] `question:"rules"`
}

// Rules answers with the rules the server detects with.
func (a *Service) Rules(context.Context, RulesRequest) (RulesAnswer, error) {
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
