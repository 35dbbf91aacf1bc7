package queries

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// FindingFilter selects findings for a list. Empty members do not restrict.
type FindingFilter struct {
	Cluster  string
	From, To time.Time // findings with requests in it, by their first and last: From inclusive, To exclusive
	At       time.Time // findings whose first request was received by then
	Rule     string
	Subject  string
	// Severities to list, by name.
	Severities []string
	// Before continues a list: the cursor of the last finding of the page before.
	Before FindingCursor
	Limit  int // default 100, at most 1,000
}

// FindingCursor is a place in the newest-first list of findings.
type FindingCursor struct {
	First int64 // microseconds since 1970
	ID    string
}

// CursorOfFinding returns the cursor of a finding.
func CursorOfFinding(f *verdict.StoredFinding) FindingCursor {
	return FindingCursor{First: f.First.UnixMicro(), ID: f.ID}
}

func (f *FindingFilter) where() (string, clickhouse.Parameters) {
	where, p := []string{"withdrawn = 0"}, clickhouse.Parameters{}
	for _, c := range [...]struct{ column, name, value string }{
		{"cluster", "cluster", f.Cluster}, {"finding", "rule", f.Rule}, {"subject", "subject", f.Subject},
	} {
		if c.value != "" {
			where = append(where, c.column+" = {"+c.name+":String}")
			p[c.name] = statement.Text(c.value)
		}
	}
	for _, c := range [...]struct {
		condition, name string
		value           time.Time
	}{
		{"toUnixTimestamp64Micro(last_seen) >= {from:Int64}", "from", f.From},
		{"toUnixTimestamp64Micro(first_seen) < {to:Int64}", "to", f.To}, {"toUnixTimestamp64Micro(first_seen) <= {at:Int64}", "at", f.At},
	} {
		if !c.value.IsZero() {
			where = append(where, c.condition)
			p[c.name] = fmt.Sprint(c.value.UnixMicro())
		}
	}
	if len(f.Severities) > 0 {
		where = append(where, "severity IN {severities:Array(String)}")
		p["severities"] = statement.Texts(f.Severities)
	}
	return strings.Join(where, " AND "), p
}

const findingColumns = `cluster, finding, key, severity, subject, audit_id, toUnixTimestamp64Micro(first_seen), toUnixTimestamp64Micro(last_seen), requests,
    toInt64(toUnixTimestamp(span)), detail, withdrawn, toUnixTimestamp64Micro(updated)`

func findingTargets(f *verdict.StoredFinding) ([]any, func()) {
	var first, last, span, updated int64
	var body string
	var withdrawn uint8
	return []any{&f.Cluster, &f.Rule, &f.ID, &f.Severity, &f.Subject, &f.AuditID, &first, &last, &f.Count, &span, &body, &withdrawn,
			&updated}, func() {
			f.First, f.Last, f.Span, f.Updated = codec.FromMicro(first), codec.FromMicro(last), time.Unix(span, 0).UTC(),
				codec.FromMicro(updated)
			f.Body, f.Withdrawn = []byte(body), withdrawn != 0
		}
}

// Findings lists findings that stand, by their first request, newest first.
func (rd *Reader) Findings(ctx context.Context, f FindingFilter) ([]verdict.StoredFinding, error) {
	where, p := f.where()
	if f.Before.ID != "" {
		where += " AND (toUnixTimestamp64Micro(first_seen), key) < ({at_first:Int64}, {at_key:String})"
		p["at_first"], p["at_key"] = fmt.Sprint(f.Before.First), statement.Text(f.Before.ID)
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	p["limit"] = fmt.Sprint(min(f.Limit, 1000))
	out, err := statement.Collect(ctx, rd.at, "SELECT "+findingColumns+"\nFROM %s.findings FINAL WHERE "+where+
		"\nORDER BY first_seen DESC, key DESC LIMIT {limit:UInt32}", p, findingTargets)
	if err != nil {
		return nil, fmt.Errorf("list findings: %w", err)
	}
	return out, nil
}

// RuleCount is how many findings of a rule stand.
type RuleCount struct {
	Rule     string
	Findings uint64
}

// FindingCounts counts the findings a filter selects, by rule; Before and Limit are not looked at.
func (rd *Reader) FindingCounts(ctx context.Context, f FindingFilter) ([]RuleCount, error) {
	where, p := f.where()
	out, err := statement.Collect(ctx, rd.at,
		"SELECT finding, count() FROM %s.findings FINAL WHERE "+where+" GROUP BY finding ORDER BY finding", p,
		func(c *RuleCount) ([]any, func()) { return []any{&c.Rule, &c.Findings}, nil })
	if err != nil {
		return nil, fmt.Errorf("count findings: %w", err)
	}
	return out, nil
}

// FindingsOf returns every finding of rules in spans of clusters, of each rule in each of the spans of each cluster, withdrawn
// ones included.
func (rd *Reader) FindingsOf(ctx context.Context, clusters, rules []string, spans []time.Time) ([]verdict.StoredFinding, error) {
	begins := make([]uint32, len(spans))
	for i, at := range spans {
		begins[i] = statement.ClampSeconds(at)
	}
	out, err := statement.Collect(ctx, rd.at, "SELECT "+findingColumns+"\nFROM %s.findings FINAL "+
		"WHERE cluster IN {clusters:Array(String)} AND finding IN {rules:Array(String)} AND toUnixTimestamp(span) IN {spans:Array(UInt32)}",
		clickhouse.Parameters{"clusters": statement.Texts(clusters), "rules": statement.Texts(rules), "spans": statement.Numbers(begins)},
		findingTargets)
	if err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	return out, nil
}

// SpansDone returns from which marks the findings of each rule and span of some clusters (nil: of all) were worked out.
func (rd *Reader) SpansDone(ctx context.Context, clusters []string) (out []verdict.SpanDone, err error) {
	err = some(clusters, func(only string, p clickhouse.Parameters) error {
		list, err := statement.Collect(ctx, rd.at, "SELECT cluster, rule, toInt64(toUnixTimestamp(span)), digest, "+
			"toUnixTimestamp64Micro(updated) FROM %s.detections_done FINAL"+only, p,
			func(d *verdict.SpanDone) ([]any, func()) {
				var span, updated int64
				return []any{&d.Cluster, &d.Rule, &span, &d.Digest, &updated}, func() {
					d.Span, d.Updated = time.Unix(span, 0).UTC(), codec.FromMicro(updated)
				}
			})
		out = append(out, list...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read progress of detections: %w", err)
	}
	return out, nil
}
