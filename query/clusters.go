package query

import (
	"context"
	"time"
)

// Cluster is a cluster with events.
type Cluster struct {
	Name   string    `json:"name"`
	Events int64     `json:"events"` // a count of events, not of requests
	First  time.Time `json:"first"`  // whole minutes that enclose the requests, fit for from and to
	Last   time.Time `json:"last"`   // as first
}

// ClustersAnswer lists the clusters of which anything is known.
type ClustersAnswer struct {
	Clusters []Cluster `json:"clusters"`
	// Quiet are clusters whose objects are known and which have no events.
	Quiet []string `json:"quiet,omitempty"`
}

// ClustersRequest asks which clusters there are.
type ClustersRequest struct {
	Asks[ClustersAnswer] `question:"clusters"`
}

// Clusters answers which clusters there are.
func (a *Service) Clusters(ctx context.Context, _ ClustersRequest) (out ClustersAnswer, err error) {
	list, err := a.Store.Clusters(ctx)
	if err != nil {
		return out, err
	}
	out.Clusters = []Cluster{}
	seen := make(map[string]bool, len(list))
	for _, c := range list {
		// The store knows whole minutes; the last one has not ended where its events have.
		out.Clusters = append(out.Clusters, Cluster{c.Name, c.Events, c.First, c.Last.Add(time.Minute)})
		seen[c.Name] = true
	}
	known, err := a.Replay.Clusters(ctx)
	if err != nil {
		return out, err
	}
	for _, name := range known {
		if !seen[name] {
			out.Quiet = append(out.Quiet, name)
		}
	}
	return out, nil
}
