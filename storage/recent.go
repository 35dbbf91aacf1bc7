package storage

import (
	"context"
	"fmt"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// recent tells which requests cannot be stored, so that most rows are not looked up: where nobody else writes, a request that came after
// all that its cluster had when this process began is stored only if this process tried to insert it. It remembers those that it tried
// last; of the others, and of those from before, nothing is known.
type recent struct {
	most int // requests of a generation

	mu      sync.Mutex
	now     generation
	earlier generation
	from    map[string]int64 // by cluster: the first minute of which all requests that were stored are remembered
}

// generation is a number of requests that were inserted one after the other.
type generation struct {
	requests map[event.Hash128]struct{}
	last     map[string]int64 // minute of the latest request by cluster
}

// mostRecent bounds the requests of a generation: two minutes of a cluster with 500 events a second.
const mostRecent = 1 << 16

func newRecent() *recent {
	return &recent{most: mostRecent, now: newGeneration(), earlier: newGeneration(), from: map[string]int64{}}
}

func newGeneration() generation {
	return generation{map[event.Hash128]struct{}{}, map[string]int64{}}
}

// note remembers requests that are about to be inserted, whatever comes of it.
func (r *recent) note(rows []verdict.Row) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range rows {
		row := &rows[i]
		r.now.requests[row.Request] = struct{}{}
		r.now.last[row.Cluster] = max(r.now.last[row.Cluster], int64(codec.Minute(row.Event.RequestReceivedTimestamp)))
	}
	if len(r.now.requests) < r.most {
		return
	}
	for cluster, minute := range r.earlier.last {
		if from, known := r.from[cluster]; known { // of one that is not, all that is stored by then counts
			r.from[cluster] = max(from, minute+1)
		}
	}
	r.earlier, r.now = r.now, newGeneration()
}

// unknown returns the clusters of rows of which it is not known from when on everything is remembered.
func (r *recent) unknown(rows []*verdict.Row) (clusters map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		if _, known := r.from[row.Cluster]; !known {
			if clusters == nil {
				clusters = map[string]bool{}
			}
			clusters[row.Cluster] = true
		}
	}
	return clusters
}

// begin notes the first minute of a cluster of which everything is remembered.
func (r *recent) begin(cluster string, minute int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from[cluster] = max(r.from[cluster], minute)
}

// among returns the rows whose requests may be stored.
func (r *recent) among(rows []*verdict.Row) (maybe []*verdict.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		_, now := r.now.requests[row.Request]
		_, earlier := r.earlier.requests[row.Request]
		if now || earlier || int64(codec.Minute(row.Event.RequestReceivedTimestamp)) < r.from[row.Cluster] {
			maybe = append(maybe, row)
		}
	}
	return maybe
}

// mayBeStored returns those of distinct requests that have to be looked up.
func (s *Store) mayBeStored(ctx context.Context, rows []*verdict.Row) ([]*verdict.Row, error) {
	if s.recent == nil {
		return rows, nil
	}
	for cluster := range s.recent.unknown(rows) {
		last, err := statement.Collect(ctx, s.at(), "SELECT toInt64(minute) FROM %[1]s.events WHERE cluster = {cluster:String} "+
			"ORDER BY minute DESC LIMIT 1", clickhouse.Parameters{"cluster": statement.Text(cluster)},
			func(v *int64) ([]any, func()) { return []any{v}, nil })
		if err != nil {
			return nil, fmt.Errorf("look for the latest request of cluster %q: %w", cluster, err)
		}
		from := int64(0)
		if len(last) > 0 {
			from = last[0] + 1
		}
		s.recent.begin(cluster, from)
	}
	return s.recent.among(rows), nil
}
