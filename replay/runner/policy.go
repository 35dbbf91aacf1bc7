package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// startPolicy returns where reading audit.policy goes on: after what the policy table holds.
func (r *Runner) startPolicy(ctx context.Context) (map[int32]int64, error) {
	var stored map[int32]event.Position
	if _, err := r.retry(ctx, opLoadPolicy, func() (err error) {
		stored, err = r.store.PolicyEnds(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	var ends map[int32]int64
	if _, err := r.retry(ctx, opEnds, func() (err error) {
		ends, err = r.source.Ends(ctx, stream.TopicPolicy)
		return err
	}); err != nil {
		return nil, err
	}
	from := make(map[int32]int64, len(stored))
	for partition, end := range stored {
		if end.Offset > ends[partition] {
			// The topic was created anew: its offsets say nothing about what is stored, and the partitions'
			// cursors, which lie past its end too, start over.
			r.changes.begin(partition, end.Epoch+1, 0)
			continue
		}
		from[partition] = end.Offset
		r.states.begin(partition, end.Offset)
		r.changes.begin(partition, end.Epoch, end.Offset)
	}
	return from, nil
}

// errEnded is what those are told who wait for a state when the runner has ended.
var errEnded = errors.New("the replay has ended")

// hold returns once the states of clusters are loaded. Those that were not held stay so until they are released, and nothing is
// forgotten that judging requests since then needs. After an error no others are held than before.
func (r *Runner) hold(ctx context.Context, partition int32, clusters []since, held map[string]bool) error {
	err := r.wait(ctx, r.states.want(clusters, partition, held))
	if err == nil {
		return nil
	}
	var others []string
	for _, w := range clusters {
		if !held[w.cluster] {
			others = append(others, w.cluster)
		}
	}
	r.states.release(partition, others)
	return err
}

// wait returns once states are loaded.
func (r *Runner) wait(ctx context.Context, all []waiting) error {
	for _, w := range all {
		if w.ready == nil {
			continue
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return errEnded
		}
	}
	return nil
}

// loadStates loads what is queued, until ctx ends. It does not matter who asked for it: others may wait for it by then.
func (r *Runner) loadStates(ctx context.Context) error {
	for {
		select {
		case <-r.states.queued:
			if clusters := r.states.take(); len(clusters) > 0 {
				r.load(ctx, clusters)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// loading is a state that is being rebuilt from the policy table.
type loading struct {
	state *state.State
	count int // observations
	// anew is where the reader of policy was when it was decided to load the state anew, which has no effect: nil, if nobody had it.
	anew  map[int32]int64
	found map[int32][]change
}

// load rebuilds states from the policy table. It also gives the log of changes what the table tells of them, since a partition may not
// have been corrected for all of that. Only the end of ctx stops it.
func (r *Runner) load(ctx context.Context, clusters []string) {
	began := time.Now()
	bad := 0
	built := make(map[string]*loading, len(clusters))
	if _, err := r.retry(ctx, opLoadPolicy, func() error {
		bad = 0
		for _, cluster := range clusters {
			built[cluster] = &loading{state: state.New(cluster), anew: r.states.loadedAnew(cluster), found: map[int32][]change{}}
		}
		return r.store.LoadPolicy(ctx, clusters, func(v verdict.PolicyVersion) error {
			o, err := observe.Decode(v.Observation)
			if err != nil {
				// Saved by a newer release, or damaged: what it said stays unknown, and answers that needed it are
				// indeterminate or wrong until it is seen again.
				bad++
				return nil
			}
			l, p := built[v.Cluster], v.Position
			present := r.changes.present(p)
			if l.anew != nil && present && p.Offset >= l.anew[p.Partition] {
				return nil // the reader has yet to come to it
			}
			l.count++
			effects := l.state.Apply(o)
			if c, ok := r.changeOf(v.Cluster, p.Partition, p.Offset, o.NotBefore, effects); ok && present && l.anew == nil {
				l.found[p.Partition] = append(l.found[p.Partition], c)
			}
			return nil
		})
	}); err != nil {
		return
	}
	if bad > 0 {
		r.log.Error("stored policy versions could not be read", zap.Int("count", bad))
	}
	observations := 0
	for name, l := range built {
		observations += l.count
		l.state.Prepare()
		r.loaded(name, l)
		r.forgetOld(name)
		delete(built, name)
	}
	r.log.Info("policy loaded", zap.Int("observations", observations), zap.Int("clusters", len(clusters)),
		zap.Duration("took", time.Since(began)))
}

// loaded puts a state in place, with what the reader of policy passed meanwhile.
func (r *Runner) loaded(cluster string, l *loading) {
	r.states.applying.Lock()
	defer r.states.applying.Unlock()
	r.states.mu.Lock()
	defer r.states.mu.Unlock()
	h := r.states.byCluster[cluster]
	for _, t := range h.pending {
		c, ok := r.changeOf(cluster, t.partition, t.offset, issued(t.observations), l.state.Apply(t.observations...))
		if ok && l.anew == nil { // else the state there was has told
			l.found[t.partition] = append(l.found[t.partition], c)
		}
	}
	for partition, list := range l.found {
		r.changes.insert(partition, list)
	}
	// Only now, or a partition could pass what is not in the log of changes yet.
	h.state, h.known, h.pending = l.state, h.known || l.count > 0, nil
	h.anew, h.horizon, h.deep = nil, time.Time{}, time.Time{}
	close(h.ready)
}

// apply takes in what a record says of a cluster, if somebody needs it: else the table has it. It waits for what a state has forgotten, if
// the record tells of that.
func (r *Runner) apply(ctx context.Context, cluster string, t told) (c change, ok bool, err error) {
	for {
		r.states.applying.Lock()
		older := r.states.older(cluster, &t)
		if older == nil {
			defer r.states.applying.Unlock()
			st := r.states.note(cluster, t)
			if st == nil {
				return change{}, false, nil
			}
			c, ok = r.changeOf(cluster, t.partition, t.offset, issued(t.observations), st.Apply(t.observations...))
			return c, ok, nil
		}
		r.states.applying.Unlock()
		if err := r.wait(ctx, []waiting{*older}); err != nil {
			return change{}, false, err
		}
	}
}

// dropStates forgets, until ctx ends, the states that nobody needs, and of others what nobody needs.
func (r *Runner) dropStates(ctx context.Context) error {
	for sleep.For(ctx, r.rest/5) == nil {
		if n := r.states.drop(r.changes, r.rest); n > 0 {
			r.log.Info("policy let go of, since no partition of this process needs it", zap.Int("clusters", n))
		}
		for _, cluster := range r.states.names() {
			r.forgetOld(cluster)
		}
		for _, s := range r.states.idle(r.rest / 5) {
			s.Rest()
		}
	}
	return nil
}

// Clusters returns, sorted, the clusters anything is known of: what the policy table has, and what is held.
func (r *Runner) Clusters(ctx context.Context) ([]string, error) {
	stored, err := r.store.PolicyClusters(ctx)
	if err != nil {
		return nil, fmt.Errorf("list clusters with a policy: %w", err)
	}
	known := slices.Concat(stored, r.states.names())
	slices.Sort(known)
	return slices.Compact(known), nil
}

// State returns what is known of a cluster since a moment, which is the earliest that is asked about (zero: any), nil if that is
// nothing. It is loaded if this process does not hold it, or not since then, and kept for some minutes. The State may be read from any
// goroutine and must not be written to.
func (r *Runner) State(ctx context.Context, cluster string, from time.Time) (*state.State, error) {
	all := r.states.want([]since{{cluster, from}}, noPartition, nil)
	if err := r.wait(ctx, all); err != nil {
		return nil, fmt.Errorf("load the policy of cluster %s: %w", cluster, err)
	}
	r.states.drop(r.changes, r.rest) // what others asked about, if that is much by now
	return r.states.answer(all[0].of), nil
}

// CheckCluster tells, before they are sent, whether observations can be of a cluster: an
// error that wraps state.ErrOtherCluster when they contradict what is known of it.
func (r *Runner) CheckCluster(ctx context.Context, cluster string, obs ...observe.Observation) error {
	s, err := r.State(ctx, cluster, earliest(obs))
	if err == nil && s != nil {
		err = s.CheckCluster(obs...)
	}
	if err != nil {
		return fmt.Errorf("check state of cluster %s: %w", cluster, err)
	}
	return nil
}

// earliest returns since when observations tell something.
func earliest(obs []observe.Observation) (at time.Time) {
	for i := range obs {
		if i == 0 || obs[i].NotBefore.Before(at) {
			at = obs[i].NotBefore
		}
	}
	return at
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
	var found []change
	size := map[string]int{}
	for i := range records {
		size[records[i].Cluster] += len(records[i].Value)
		c, ok, err := r.apply(ctx, records[i].Cluster, told{partition, records[i].Position.Offset, observations[i]})
		if err != nil {
			return err
		}
		if ok {
			found = append(found, c)
		}
	}
	for cluster, bytes := range size {
		if st, ok := r.states.find(cluster); ok && bytes >= muchPolicy {
			st.Prepare()
		}
	}
	r.changes.add(partition, next, found)
	r.metrics.policy.Add(float64(len(records)))
	r.metrics.backlog.Set(float64(r.changes.size()))
	if _, err := r.retry(ctx, opPolicy, func() error {
		return r.source.CommitPolicy(ctx, map[int32]int64{partition: next})
	}); err != nil {
		return err
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
