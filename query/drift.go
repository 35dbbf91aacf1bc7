package query

import (
	"context"
	"net/url"
	"time"

	"github.com/retrial-io/retrial/analysis/drift"
	"github.com/retrial-io/retrial/storage"
)

// driftQueries is what the questions about drift ask the store.
type driftQueries interface {
	DriftGroups(ctx context.Context, cluster string, from, to time.Time, examples, limit int) ([]storage.Drift, error)
	Judged(ctx context.Context, cluster string, from, to time.Time) (requests, judged int64, err error)
}

// driftRoutes are the questions about verdicts that are no match.
func (a *Service) driftRoutes() []Question {
	return []Question{{"drift", []string{"cluster", "from", "to"}, CostQuery, a.drift}}
}

// driftGroups is how many groups of equal verdicts one answer reads: each says something
// else, and clients choose some of the words.
const driftGroups = 5000

// DriftAnswer is what is no match, by likely cause.
type DriftAnswer struct {
	Cluster string `json:"cluster"`
	// Requests are all of that time, Judged those that were compared with the replica. Without any
	// there is nothing to say, and no groups say nothing.
	Requests int64         `json:"requests"`
	Judged   int64         `json:"judged"`
	Groups   []drift.Group `json:"groups"`
	// Truncated says that there is more than one answer holds.
	Truncated bool `json:"truncated,omitempty"`
}

func (a *Service) drift(ctx context.Context, q url.Values) (any, error) {
	cluster, from, to, err := window(q)
	if err != nil {
		return nil, err
	}
	found, err := a.Store.DriftGroups(ctx, cluster, from, to, 3, driftGroups)
	if err != nil {
		return nil, err
	}
	var c drift.Collector
	for i := range found {
		addStored(&c, cluster, &found[i])
	}
	requests, judged, err := a.Store.Judged(ctx, cluster, from, to)
	if err != nil {
		return nil, err
	}
	return DriftAnswer{Cluster: cluster, Requests: requests, Judged: judged, Groups: c.Groups(), Truncated: len(found) == driftGroups}, nil
}

// addStored adds one stored group: its examples one by one, and the rest with the last.
func addStored(c *drift.Collector, cluster string, d *storage.Drift) {
	s := drift.Sample{
		Cluster: cluster, Server: d.APIServer, Outcome: d.Outcome, Class: d.Class, Cause: d.Cause, Missing: d.Missing,
		Recorded: d.Recorded, RecordedReason: d.RecordedReason, Replayed: d.Replayed,
		Code: d.Code, Config: d.Config,
	}
	n := d.Requests
	for i, x := range d.Examples {
		s.User, s.Verb, s.URI, s.AuditID, s.At = x.User, x.Verb, x.URI, x.AuditID, x.At
		if i == len(d.Examples)-1 {
			s.Last, s.Users = d.Last, int(d.Users)
			c.Add(&s, n)
			return
		}
		c.Add(&s, 1)
		n--
	}
}
