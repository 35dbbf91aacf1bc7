package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// DetectionRules returns the rules in the order of their ids.
func (s *Store) DetectionRules() []detect.Rule { return s.rules.Rules() }

// Detected returns what the rules did; ok is false if nobody asked for findings.
func (s *Store) Detected() (stats detect.Stats, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.detected == nil {
		return detect.Stats{}, false
	}
	return *s.detected, true
}

// all returns everything the rules find in the log, the latest first. They run once.
func (s *Store) all(ctx context.Context) ([]verdict.StoredFinding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.detected != nil {
		return s.findings, nil
	}
	d := detect.New(s.rules, detect.Config{})
	err := s.each(ctx, func(row *verdict.Row) error {
		if row.Verdict != nil {
			d.Observe(s.cluster.Name, row.Event, row.Verdict)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := d.Flush()
	out := make([]verdict.StoredFinding, len(found))
	for i := range found {
		if out[i], err = detect.Stored(&found[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b verdict.StoredFinding) int {
		return cmp.Or(cmp.Compare(b.First.UnixMicro(), a.First.UnixMicro()), strings.Compare(b.ID, a.ID))
	})
	stats := d.Stats()
	s.findings, s.detected = out, &stats
	return out, nil
}

// selected returns the findings a filter selects, whatever its page.
func (s *Store) selected(ctx context.Context, f *queries.FindingFilter) ([]verdict.StoredFinding, error) {
	all, err := s.all(ctx)
	var out []verdict.StoredFinding
	for i := range all {
		x := &all[i]
		first, last := x.First.UnixMicro(), x.Last.UnixMicro()
		switch {
		case f.Cluster != "" && x.Cluster != f.Cluster:
		case f.Rule != "" && x.Rule != f.Rule:
		case f.Subject != "" && x.Subject != f.Subject:
		case len(f.Severities) > 0 && !slices.Contains(f.Severities, x.Severity):
		case !f.From.IsZero() && last < f.From.UnixMicro():
		case !f.To.IsZero() && first >= f.To.UnixMicro():
		case !f.At.IsZero() && first > f.At.UnixMicro():
		default:
			out = append(out, *x)
		}
	}
	return out, err
}

// Findings lists findings by their first request, newest first.
func (s *Store) Findings(ctx context.Context, f queries.FindingFilter) ([]verdict.StoredFinding, error) {
	list, err := s.selected(ctx, &f)
	if f.Before.ID != "" {
		list = slices.DeleteFunc(list, func(x verdict.StoredFinding) bool {
			return cmp.Or(cmp.Compare(x.First.UnixMicro(), f.Before.First), strings.Compare(x.ID, f.Before.ID)) >= 0
		})
	}
	return list[:min(len(list), max(f.Limit, 1))], err
}

// FindingCounts counts the findings a filter selects, by rule.
func (s *Store) FindingCounts(ctx context.Context, f queries.FindingFilter) ([]queries.RuleCount, error) {
	list, err := s.selected(ctx, &f)
	counts := map[string]uint64{}
	for i := range list {
		counts[list[i].Rule]++
	}
	var out []queries.RuleCount
	for _, rule := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, queries.RuleCount{Rule: rule, Findings: counts[rule]})
	}
	return out, err
}
