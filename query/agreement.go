package query

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// AgreementAnswer is how much of what was judged agrees with the record.
type AgreementAnswer struct {
	Cluster   string  `json:"cluster"`
	Judged    int64   `json:"judged"`    // requests that were compared with the replica
	Drifting  int64   `json:"drifting"`  // those of them that do not match
	Agreement float64 `json:"agreement"` // match ÷ (match + drift); 1 when nothing was judged
}

// AgreementRequest asks how much of what was judged agrees with the record.
type AgreementRequest struct {
	Asks[AgreementAnswer] `question:"agreement"`
	Cluster               string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"of this cluster (default: the only one); with --events its name (default \"evaluate\")"`
	From                  time.Time `json:"from" help:"requests at or after this time, such as 2026-11-20T11:36:00Z"`
	To                    time.Time `json:"to" help:"requests before this time"`
}

func (r AgreementRequest) check() error { return before(r.From, r.To) }

// Agreement answers how much of what was judged agrees with the record.
func (a *Service) Agreement(ctx context.Context, q AgreementRequest) (AgreementAnswer, error) {
	out := AgreementAnswer{Cluster: q.Cluster, Agreement: 1}
	groups, err := a.Store.DriftGroups(ctx, q.Cluster, q.From, q.To, 1, driftGroups)
	if err != nil {
		return out, err
	}
	if _, out.Judged, err = a.Store.Judged(ctx, q.Cluster, q.From, q.To); err != nil {
		return out, err
	}
	matching := out.Judged
	for i := range groups {
		if matching -= groups[i].Requests; groups[i].Outcome == verdict.OutcomeDrift {
			out.Drifting += groups[i].Requests
		}
	}
	if n := matching + out.Drifting; n > 0 {
		out.Agreement = float64(matching) / float64(n)
	}
	return out, nil
}
