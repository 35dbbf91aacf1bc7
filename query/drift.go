package query

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/analysis/drift"
	"github.com/retrial-io/retrial/storage/queries"
)

// driftGroups is how many groups of equal verdicts one answer reads: clients choose some of the words that tell groups apart.
const driftGroups = 5000

// DriftAnswer is what does not match, by likely cause.
type DriftAnswer struct {
	Cluster string `json:"cluster"`
	// Requests counts all requests of that time, Judged those compared with the replica. If Judged is 0, the absence of groups means
	// nothing.
	Requests int64         `json:"requests"`
	Judged   int64         `json:"judged"`
	Groups   []drift.Group `json:"groups"`
	// Truncated says that the answer does not hold everything.
	Truncated bool `json:"truncated,omitempty"`
}

// DriftRequest asks for what does not match, by likely cause.
type DriftRequest struct {
	Asks[DriftAnswer] `question:"drift"`
	Cluster           string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"of this cluster (default: the only one); with --events its name (default \"evaluate\")"`
	From              time.Time `json:"from" help:"requests at or after this time, such as 2026-11-20T11:36:00Z"`
	To                time.Time `json:"to" help:"requests before this time"`
}

func (r DriftRequest) check() error { return before(r.From, r.To) }

// Drift answers what does not match.
func (a *Service) Drift(ctx context.Context, q DriftRequest) (out DriftAnswer, err error) {
	found, err := a.Store.DriftGroups(ctx, q.Cluster, q.From, q.To, 3, driftGroups)
	if err != nil {
		return out, err
	}
	var c drift.Collector
	for i := range found {
		addStored(&c, q.Cluster, &found[i])
	}
	requests, judged, err := a.Store.Judged(ctx, q.Cluster, q.From, q.To)
	if err != nil {
		return out, err
	}
	return DriftAnswer{Cluster: q.Cluster, Requests: requests, Judged: judged, Groups: c.Groups(),
		Truncated: len(found) == driftGroups}, nil
}

// addStored adds one stored group: its examples one by one, and the rest with the last.
func addStored(c *drift.Collector, cluster string, d *queries.Drift) {
	s := drift.Sample{
		Cluster: cluster, Server: d.APIServer, Outcome: d.Outcome, Class: d.Class, Cause: d.Cause, Missing: d.Missing,
		Recorded: d.Recorded, RecordedReason: d.RecordedReason, Replayed: d.Replayed,
		Code: d.Code, Config: d.Config, At: d.First,
	}
	n := d.Requests
	for i, x := range d.Examples {
		s.User, s.Verb, s.URI, s.AuditID, s.Cause, s.At = x.User, x.Verb, x.URI, x.AuditID, x.Cause, x.At
		if i < len(d.Examples)-1 {
			c.Add(&s, 1)
			n--
		}
	}
	s.Last, s.Users = d.Last, int(d.Users)
	c.Add(&s, n)
}
