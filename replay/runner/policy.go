package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// states holds the state of every cluster anything is known of.
type states struct {
	mu        sync.RWMutex
	byCluster map[string]*state.State
}

func newStates() *states { return &states{byCluster: map[string]*state.State{}} }

// of returns the state of a cluster, an empty one when nothing is known. Empty states are
// kept: an event and the first observation of its cluster may arrive in either order.
func (s *states) of(cluster string) *state.State {
	st, known := s.find(cluster)
	if known {
		return st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st = s.byCluster[cluster]; st == nil {
		st = state.New(cluster)
		s.byCluster[cluster] = st
	}
	return st
}

// find returns the state of a cluster without making one.
func (s *states) find(cluster string) (*state.State, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st, known := s.byCluster[cluster]
	return st, known
}

// clear forgets everything.
func (s *states) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byCluster)
}

// names returns the clusters anything is known of, sorted.
func (s *states) names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.byCluster))
}

// loadPolicy rebuilds the states from the policy table and returns where reading the topic
// goes on. It also rebuilds the log of changes, since a partition may not have been
// corrected for all of what the table holds.
func (r *Runner) loadPolicy(ctx context.Context) (map[int32]int64, error) {
	began := time.Now()
	var from map[int32]int64
	count, bad := 0, 0
	epochs := map[int32]uint32{}
	found := map[int32][]change{}
	_, err := r.retry(ctx, opLoadPolicy, func() error {
		r.states.clear()
		count, bad = 0, 0
		clear(epochs)
		clear(found)
		var err error
		from, err = r.store.LoadPolicy(ctx, func(v verdict.PolicyVersion) error {
			o, err := observe.Decode(v.Observation)
			if err != nil {
				// Saved by a newer release, or damaged: what it said stays unknown, and
				// answers that needed it are indeterminate or wrong until it is seen again.
				bad++
				return nil
			}
			count++
			effects := r.states.of(v.Cluster).Apply(o)
			p := v.Position
			if p.Epoch > epochs[p.Partition] {
				// Offsets began anew; what came before cannot be told from it by offset.
				epochs[p.Partition] = p.Epoch
				if len(found[p.Partition]) > 0 {
					found[p.Partition] = []change{}
				}
			}
			if c, ok := r.changeOf(v.Cluster, p.Partition, p.Offset, o.NotBefore, effects); ok {
				found[p.Partition] = append(found[p.Partition], c)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	var ends map[int32]int64
	if _, err := r.retry(ctx, opEnds, func() (err error) {
		ends, err = r.source.Ends(ctx, stream.TopicPolicy)
		return err
	}); err != nil {
		return nil, err
	}
	for partition, next := range from {
		// The topic was created anew: its offsets say nothing about what was loaded, and the
		// partitions' cursors, which lie past its end too, start over.
		if next > ends[partition] {
			delete(from, partition)
			delete(found, partition)
		}
	}
	for partition, list := range found {
		r.changes.add(partition, from[partition], list)
	}
	for partition, next := range from {
		r.changes.add(partition, next, nil)
	}
	if bad > 0 {
		r.log.Error("stored policy versions could not be read", zap.Int("count", bad))
	}
	for _, cluster := range r.states.names() {
		r.states.of(cluster).Prepare()
	}
	r.log.Info("policy loaded", zap.Int("observations", count), zap.Int("clusters", len(r.states.names())),
		zap.Duration("took", time.Since(began)))
	return from, nil
}

// muchPolicy is from how many bytes of policy at once the reader of policy indexes them, so that
// no request waits for it: some milliseconds' worth.
const muchPolicy = 256 << 10

// applyPolicy takes in records of one partition of audit.policy: first the table, then the
// state, so that the state is never ahead of what a restart would load by more than the
// topic still holds.
func (r *Runner) applyPolicy(ctx context.Context, records []stream.Record) error {
	partition := records[0].Position.Partition
	next := records[len(records)-1].Position.Offset + 1
	observations := make([][]observe.Observation, len(records))
	var versions []verdict.PolicyVersion
	var letters []verdict.StoredDeadLetter
	var d event.Decoder
	for i := range records {
		obs, err := observationsOf(&d, &records[i])
		if err != nil {
			// What can still be said of it, that an object was written with content nobody
			// could read, counts all the same.
			letters = append(letters, r.deadLetter(&records[i], records[i].Position.Epoch, err))
		}
		observations[i] = obs
		for j := range obs {
			versions = append(versions, version(&records[i], int32(j), obs[j], Near(obs)))
		}
	}
	if r.cfg.OwnsPolicy(partition) {
		// Dead letters first: a restart reads on after the last version in the table.
		first := records[0].Position
		if err := r.saveLetters(ctx, fmt.Sprintf("dlpo/%d/%d/%d-%d", first.Epoch, partition, first.Offset, next-1), letters); err != nil {
			return err
		}
		if len(versions) > 0 {
			if _, err := r.retry(ctx, opSavePolicy, func() error { return r.store.SavePolicy(ctx, versions) }); err != nil {
				return err
			}
		}
		for i := range letters {
			r.metrics.policyLetters.WithLabelValues(letters[i].Reason).Inc()
		}
	}
	var found []change
	told := map[string]int{}
	for i := range records {
		told[records[i].Cluster] += len(records[i].Value)
		effects := r.states.of(records[i].Cluster).Apply(observations[i]...)
		if c, ok := r.changeOf(records[i].Cluster, partition, records[i].Position.Offset, issued(observations[i]), effects); ok {
			found = append(found, c)
		}
	}
	for cluster, bytes := range told {
		if bytes >= muchPolicy {
			r.states.of(cluster).Prepare()
		}
	}
	r.changes.add(partition, next, found)
	r.metrics.policy.Add(float64(len(records)))
	r.metrics.backlog.Set(float64(r.changes.size()))
	if r.cfg.OwnsPolicy(partition) {
		if _, err := r.retry(ctx, opPolicy, func() error {
			return r.source.CommitPolicy(ctx, map[int32]int64{partition: next})
		}); err != nil {
			return err
		}
	}
	return nil
}

// observationsOf reads one record of audit.policy. Observations that come with an error are
// valid: see observe.FromEvent.
func observationsOf(d *event.Decoder, rec *stream.Record) ([]observe.Observation, error) {
	if rec.Err != nil {
		return nil, rec.Err
	}
	switch rec.Kind {
	case stream.KindPolicyEvent:
		e, err := d.Decode(rec.Value, rec.Bodies)
		if err != nil {
			return nil, err
		}
		e.Server = rec.APIServer
		return observe.FromEvent(e)
	case stream.KindObservation:
		o, err := observe.Decode(rec.Value)
		if err != nil {
			return nil, err
		}
		return []observe.Observation{o}, nil
	}
	return nil, fmt.Errorf("record of kind %q on the policy topic", rec.Kind)
}

// version is an observation as the policy table keeps it.
func version(rec *stream.Record, index int32, o observe.Observation, near time.Time) verdict.PolicyVersion {
	v := Version(rec.Cluster, &o, near, rec.Received)
	v.Position, v.Index = rec.Position, index
	return v
}

// Version returns an observation of a cluster as the policy table keeps it, but for its place. What
// has no time of its own was observed near another, or else when it was received.
func Version(cluster string, o *observe.Observation, near, received time.Time) verdict.PolicyVersion {
	observed := o.NotAfter
	if observed.IsZero() {
		observed = near
	}
	if observed.IsZero() {
		observed = received
	}
	return verdict.PolicyVersion{
		Cluster: cluster, Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		ResourceVersion: o.ResourceVersion, Deleted: o.Deleted, Observation: o.Append(nil), Observed: observed,
	}
}

// Near is a time near which what has no bounds was true: that of what else one record shows. It
// is the same however often the record's event is delivered.
func Near(obs []observe.Observation) time.Time {
	for i := range obs {
		if !obs[i].NotAfter.IsZero() {
			return obs[i].NotAfter
		}
	}
	return time.Time{}
}
