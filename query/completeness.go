package query

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/analysis/completeness"
)

// CompletenessRequest asks what the apiservers of a cluster sent and what of it is missing.
type CompletenessRequest struct {
	Asks[completeness.Report] `question:"completeness"`
	Cluster                   string        `json:"cluster" required:"true" help:"cluster the question is about" flag:"of this cluster (default: the only one)"`
	From                      time.Time     `json:"from" help:"events at or after this time, such as 2026-11-20T11:36:00Z (default: a day before to)" flag:"events at or after this time, such as 2026-11-20T11:36:00Z (default: a day before --to)"`
	To                        time.Time     `json:"to" help:"events before this time (default: now, less settle)" flag:"events before this time (default: now, less --settle)"`
	Settle                    time.Duration `json:"settle" min:"1ns" max:"1h" help:"how long events may be under way (default 150s: a batch's wait and its retries)"`
}

func (r CompletenessRequest) check() error { return before(r.From, r.To) }

// Completeness answers what apiservers sent and what of it is missing.
func (a *Service) Completeness(ctx context.Context, tables Tables, q CompletenessRequest) (out completeness.Report, err error) {
	var scraped []string
	if a.Scraped != nil {
		scraped = a.Scraped(q.Cluster)
	}
	return completeness.Check(ctx, tables, completeness.Config{Settle: q.Settle},
		completeness.Question{Cluster: q.Cluster, From: q.From, To: q.To, Now: a.time(), Scraped: scraped})
}
