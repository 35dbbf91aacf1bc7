package runner

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// A process holds the states of the clusters its partitions have rows of, and for a while those that somebody asked about; of all
// others the policy table has what is known. A state is loaded from the table while the reader of policy goes on:
//
//	registered ─▶ the table is read ─▶ what the reader passed meanwhile is applied ─▶ ready
//	    └── from here on the reader keeps records of the cluster ──┘
//
// The reader saves a record before it applies it: what it passed before the registration is in the table.
//
// A state holds the policy that stored requests and those being judged need, and forgets what was over before them (needs.go, keep.go).
// When somebody asks about an earlier moment, or the reader comes to policy from an earlier one, it is loaded anew, whole, the same way;
// what the table has beyond the reader is left out of that, so that what the reader finds changed is the same as ever.

// restFor is how long a state is kept that nobody needs: partitions come back after a rebalance, and who asks one question asks another.
const restFor = 5 * time.Minute

// maxAsked is how many states are kept at most that were asked for and that no partition has needed.
const maxAsked = 16

// loaders is how many loads read the table at once, and maxLoad how many clusters each: their whole history is in memory for a while, and
// their names travel in a URL.
const (
	loaders = 2
	maxLoad = 32
)

// states holds the state of every cluster that somebody needs.
type states struct {
	applying sync.Mutex // held while what the reader of policy passed is applied

	mu        sync.RWMutex
	byCluster map[string]*held
	queue     []string        // to be loaded
	queued    chan struct{}   // has an element when there is something in the queue
	passed    map[int32]int64 // by partition of audit.policy: the offset after what the reader passed
}

// held is the state of a cluster.
type held struct {
	state   *state.State  // nil until it is loaded
	ready   chan struct{} // closed once it is, or is loaded anew
	known   bool          // the table or the topic said something of the cluster
	pending []told        // what the reader of policy passed while the state is loaded
	users   int           // how many partitions need it
	asked   bool          // no partition ever did
	wanted  time.Time     // when it was last asked for, or let go of

	anew    map[int32]int64 // while a state is loaded anew: where the reader was when that began
	needs   needs
	horizon time.Time // nothing is known of an earlier moment, or soon will be; zero: of any
	deep    time.Time // as of other objects than those of RBAC
	deepest time.Time // the earliest moment that somebody asked about lately,
	askedAt time.Time // and when
}

// ask notes that somebody asks about a moment: what is forgotten for want of need stays a while longer.
func (h *held) ask(about time.Time) {
	if h.askedAt.IsZero() || !about.After(h.deepest) {
		h.deepest, h.askedAt = about, time.Now()
	}
}

// since is a cluster and the earliest moment that somebody asks about; zero: any.
type since struct {
	cluster string
	from    time.Time
}

// noPartition stands for those who ask questions.
const noPartition int32 = -1

// told is what one record of audit.policy says of a cluster.
type told struct {
	partition    int32
	offset       int64
	observations []observe.Observation
}

func newStates() *states {
	return &states{byCluster: map[string]*held{}, queued: make(chan struct{}, 1), passed: map[int32]int64{}}
}

// of returns the state of a cluster that the caller holds.
func (s *states) of(cluster string) *state.State {
	st, ok := s.find(cluster)
	if !ok {
		panic(fmt.Sprintf("the state of cluster %q is not held", cluster))
	}
	return st
}

// find returns the state of a cluster, false unless it is held and loaded.
func (s *states) find(cluster string) (*state.State, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := s.byCluster[cluster]
	if h == nil || h.state == nil {
		return nil, false
	}
	return h.state, true
}

// names returns, sorted, the clusters whose state is loaded and of which anything is known, or that a partition needs.
func (s *states) names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var names []string
	for name, h := range s.byCluster {
		if h.state != nil && (h.known || h.users > 0) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// want notes that somebody wants clusters, queues those that are not held or have forgotten what is asked about, and returns what to wait
// for. A partition holds those it did not until it releases them, and needs what requests it is about to judge need until they are stored.
func (s *states) want(clusters []since, partition int32, has map[string]bool) (all []waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, w := range clusters {
		h := s.byCluster[w.cluster]
		if h == nil {
			h = &held{ready: make(chan struct{}), asked: true}
			s.byCluster[w.cluster] = h
			s.queue = append(s.queue, w.cluster)
		}
		if h.wanted = now; partition != noPartition {
			if !has[w.cluster] {
				h.users, h.asked = h.users+1, false
			}
			h.needs.judge(partition, w.from)
		} else {
			h.ask(back(w.from))
		}
		forgotten := back(w.from).Before(h.horizon)
		if forgotten {
			h.ask(time.Time{}) // older ones may follow
			s.again(w.cluster, h)
		}
		of := waiting{of: h}
		if h.state == nil || forgotten {
			of.ready = h.ready
		}
		all = append(all, of)
	}
	s.signal()
	return all
}

// waiting is a state that somebody wants, and what to wait for until it is as wanted: nil if it is.
type waiting struct {
	of    *held
	ready <-chan struct{}
}

// again has a state loaded anew, whole, unless it is being loaded.
func (s *states) again(cluster string, h *held) {
	if h.state == nil || h.anew != nil {
		return
	}
	h.anew, h.ready = maps.Clone(s.passed), make(chan struct{})
	s.queue = append(s.queue, cluster)
	s.signal()
}

// older returns what to wait for before a record is applied, nil if that is nothing: it tells of what the state has forgotten.
func (s *states) older(cluster string, t *told) *waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byCluster[cluster]
	if h == nil || h.state == nil ||
		!slices.ContainsFunc(t.observations, func(o observe.Observation) bool { return state.Older(&o, h.horizon) }) {
		return nil
	}
	h.ask(time.Time{}) // older ones may follow
	s.again(cluster, h)
	return &waiting{h, h.ready}
}

// stored notes of what a partition was about to judge that it is stored.
func (s *states) stored(partition int32, spans map[string]span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cluster, of := range spans {
		s.byCluster[cluster].needs.store(partition, of.from)
	}
}

// judged notes that a partition judges no stored requests of a cluster any more.
func (s *states) judged(partition int32, cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byCluster[cluster]
	delete(h.needs.under, partition)
}

// rows notes which clusters a partition has rows of, and since when.
func (s *states) rows(partition int32, has map[string]bool, spans map[string]span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cluster := range has {
		h := s.byCluster[cluster]
		h.needs.leave(partition)
		if of, ok := spans[cluster]; ok {
			h.needs.set(partition, of.from)
		}
	}
}

// take takes what is loaded at once from the queue.
func (s *states) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), maxLoad)
	taken := s.queue[:n:n]
	s.queue = s.queue[n:]
	s.signal()
	return taken
}

// signal wakes a loader if something is queued.
func (s *states) signal() {
	if len(s.queue) == 0 {
		return
	}
	select {
	case s.queued <- struct{}{}:
	default:
	}
}

// release lets go of clusters that a partition held.
func (s *states) release(partition int32, clusters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range clusters {
		h := s.byCluster[name]
		h.users--
		h.needs.leave(partition)
		h.wanted = time.Now()
	}
}

// drop forgets the states that nobody needs any more, and what the log of changes has of them, and returns how many.
func (s *states) drop(log *changes, rest time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var resting []string
	for name, h := range s.byCluster {
		if h.users == 0 && h.state != nil && h.anew == nil {
			resting = append(resting, name)
		}
	}
	slices.SortFunc(resting, func(a, b string) int { return s.byCluster[b].wanted.Compare(s.byCluster[a].wanted) })
	asked, dropped := 0, map[string]bool{}
	for _, name := range resting {
		h := s.byCluster[name]
		if h.asked {
			asked++
		}
		if time.Since(h.wanted) >= rest || h.asked && asked > maxAsked {
			delete(s.byCluster, name)
			dropped[name] = true
		}
	}
	log.drop(dropped)
	return len(dropped)
}

// idle returns the states that nobody has wanted for a while.
func (s *states) idle(rest time.Duration) (all []*state.State) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, h := range s.byCluster {
		if h.state != nil && time.Since(h.wanted) >= rest {
			all = append(all, h.state)
		}
	}
	return all
}

// note returns the state that a record is to be applied to, nil if there is none, or none yet.
func (s *states) note(cluster string, t told) *state.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed[t.partition] = t.offset + 1
	h := s.byCluster[cluster]
	if h == nil {
		return nil
	}
	if h.known = true; h.state == nil || h.anew != nil {
		h.pending = append(h.pending, t)
	}
	return h.state
}

// begin notes where the reader of policy begins.
func (s *states) begin(partition int32, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed[partition] = offset
}

// loadedAnew returns where the reader of policy was when it was decided to load a state anew, nil if it was not.
func (s *states) loadedAnew(cluster string) map[int32]int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byCluster[cluster].anew
}

// answer returns the state of a cluster that somebody asked about, nil if nothing is known.
func (s *states) answer(h *held) *state.State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if h.known || h.users > 0 {
		return h.state
	}
	return nil
}

// forget returns a state that is to forget policy, and before which moment; false if there is nothing to do. Who calls it does so: the
// moment counts from now on.
func (s *states) forget(cluster string, rest time.Duration) (*state.State, time.Time, bool) {
	s.applying.Lock() // what the reader applies is not older
	defer s.applying.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byCluster[cluster]
	if h == nil {
		return nil, time.Time{}, false
	}
	at := h.needs.horizon()
	if at.IsZero() || !h.settled(at, rest) || !h.horizon.IsZero() && at.Sub(h.horizon) < forgetStep {
		return nil, time.Time{}, false
	}
	h.horizon = at
	return h.state, at, true
}

// limit notes before which moment stored requests are not judged again, and returns what forget does, for everything.
func (s *states) limit(cluster string, at time.Time, rest time.Duration) (*state.State, time.Time, bool) {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byCluster[cluster]
	if h == nil {
		return nil, time.Time{}, false
	}
	if at = h.needs.bound(at); !h.settled(at, rest) || !h.deep.IsZero() && at.Sub(h.deep) < forgetStep {
		return nil, time.Time{}, false
	}
	h.needs.limit, h.deep = at, at
	if h.horizon.Before(at) {
		h.horizon = at
	}
	return h.state, at, true
}

// settled reports whether a state is loaded, held by a partition, and nobody asked lately about what was before a moment.
func (h *held) settled(at time.Time, rest time.Duration) bool {
	if time.Since(h.askedAt) >= rest {
		h.askedAt = time.Time{}
	}
	return h.state != nil && h.anew == nil && h.users > 0 && (h.askedAt.IsZero() || !h.deepest.Before(at))
}

// horizon returns the latest moment before which some cluster's policy is forgotten.
func (s *states) horizon() (latest time.Time) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, h := range s.byCluster {
		if h.horizon.After(latest) {
			latest = h.horizon
		}
	}
	return latest
}
