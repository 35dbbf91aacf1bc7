package runner

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// ages are the times of the requests that were judged for the first time, by cluster.
type ages struct {
	mu     sync.Mutex
	oldest map[string]time.Time // since they were taken
	told   map[string]bool      // whose requests came from before the kept policy
	full   map[string]bool      // whose objects had too many large versions
}

func newAges() *ages {
	return &ages{oldest: map[string]time.Time{}, told: map[string]bool{}, full: map[string]bool{}}
}

// tell reports the first time that a cluster had too many large versions of objects.
func (a *ages) tell(cluster string) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first = !a.full[cluster]
	a.full[cluster] = true
	return first
}

// note takes in a request; kept reports whether its policy is.
func (a *ages) note(cluster string, received time.Time, kept bool) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !kept {
		first = !a.told[cluster]
		a.told[cluster] = true
		return first
	}
	if was, ok := a.oldest[cluster]; !ok || received.Before(was) {
		a.oldest[cluster] = received
	}
	return false
}

// take returns the oldest requests there were since it was last called.
func (a *ages) take() map[string]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.oldest
	a.oldest = map[string]time.Time{}
	return out
}

// noteAge remembers when a request that was judged came. Were one judged without the policy of
// its time, which should not be, it would be told once.
func (r *Runner) noteAge(row *verdict.Row) {
	s, known := r.states.find(row.Cluster)
	if !known {
		return
	}
	received := row.Event.RequestReceivedTimestamp
	kept := replay.Kept(s, received)
	if !kept {
		r.metrics.forgotten.Inc()
	}
	if r.ages.note(row.Cluster, received, kept) {
		r.log.Warn("requests come from before the kept policy history: they are stored, and what depends on policy is judged as unknown; "+
			"to judge them, stop the server and run retrial rejudge, which reads the whole history, or import them as a "+
			"cluster of their own",
			zap.String("cluster", row.Cluster), zap.Time("received", received), zap.Time("kept_since", s.Horizon()))
	}
}

// ForgetPolicy lets the states forget everything that was over for so long before the requests of
// their clusters: before the oldest of those that were judged since the last call, so that
// neither an apiserver whose clock is ahead nor a log that comes late costs a verdict. The
// policy table keeps everything. Verdicts that stand on what is forgotten stand. Call it now
// and then; keep must be as long as rollups stay. Zero or less keeps everything but roles and
// bindings, of which the states hold what stored requests need.
func (r *Runner) ForgetPolicy(keep time.Duration) {
	r.noteContents()
	if keep <= 0 {
		return
	}
	for cluster, oldest := range r.ages.take() {
		if s, at, ok := r.states.limit(cluster, oldest.Add(-keep), r.rest); ok {
			r.forget(s, at, s.Prune)
		}
	}
	r.noteHorizon()
}

// forgetOld lets the state of a cluster forget the roles and bindings that no stored request needs.
func (r *Runner) forgetOld(cluster string) {
	if s, at, ok := r.states.forget(cluster, r.rest); ok {
		r.forget(s, at, s.PrunePolicy)
		r.noteHorizon()
	}
}

func (r *Runner) forget(s *state.State, before time.Time, prune func(time.Time) int) {
	began := time.Now()
	n := prune(before)
	r.metrics.pruned.Add(float64(n))
	if n > 0 {
		r.log.Info("policy history forgotten", zap.String("cluster", s.Cluster()), zap.Time("before", before), zap.Int("versions", n),
			zap.Duration("took", time.Since(began)))
	}
}

// noteHorizon tells the latest moment before which policy is forgotten.
func (r *Runner) noteHorizon() {
	if at := r.states.horizon(); !at.IsZero() {
		r.metrics.horizon.Set(float64(at.Unix()))
	}
}

// noteContents tells how many contents of policy objects the states had no room for.
func (r *Runner) noteContents() {
	all := 0
	for _, cluster := range r.states.names() {
		s, known := r.states.find(cluster)
		if !known {
			continue
		}
		n := s.Stats().Forgotten
		all += n
		if n > 0 && r.ages.tell(cluster) {
			r.log.Warn("policy objects of many kilobytes are written again and again: what the oldest of their versions held is "+
				"forgotten, and what depends on it at their time is judged as unknown",
				zap.String("cluster", cluster), zap.Int("contents", n))
		}
	}
	r.metrics.contents.Set(float64(all))
}
