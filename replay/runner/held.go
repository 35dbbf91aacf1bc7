package runner

import (
	"fmt"
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

// restFor is how long a state is kept that nobody needs: partitions come back after a rebalance, and who asks one question asks another.
const restFor = 5 * time.Minute

// maxAsked is how many states are kept at most that were asked for and that no partition has needed.
const maxAsked = 16

// loaders is how many loads read the table at once, and maxLoad how many clusters each: their names travel in a URL.
const (
	loaders = 2
	maxLoad = 128
)

// states holds the state of every cluster that somebody needs.
type states struct {
	applying sync.Mutex // held while what the reader of policy passed is applied

	mu        sync.RWMutex
	byCluster map[string]*held
	queue     []string      // to be loaded
	queued    chan struct{} // has an element when there is something in the queue
}

// held is the state of a cluster.
type held struct {
	state   *state.State  // nil until it is loaded
	ready   chan struct{} // closed once it is
	known   bool          // the table or the topic said something of the cluster
	pending []told        // what the reader of policy passed while the state is loaded
	users   int           // how many partitions need it
	asked   bool          // no partition ever did
	wanted  time.Time     // when it was last asked for, or let go of
}

// told is what one record of audit.policy says of a cluster.
type told struct {
	partition    int32
	offset       int64
	observations []observe.Observation
}

func newStates() *states {
	return &states{byCluster: map[string]*held{}, queued: make(chan struct{}, 1)}
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

// want notes that somebody wants clusters, queues those that are not held, and returns what to wait for. Partitions hold them until
// release.
func (s *states) want(clusters []string, partition bool) (all []*held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, name := range clusters {
		h := s.byCluster[name]
		if h == nil {
			h = &held{ready: make(chan struct{}), asked: true}
			s.byCluster[name] = h
			s.queue = append(s.queue, name)
		}
		if h.wanted = now; partition {
			h.users, h.asked = h.users+1, false
		}
		all = append(all, h)
	}
	s.signal()
	return all
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
func (s *states) release(clusters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range clusters {
		h := s.byCluster[name]
		h.users--
		h.wanted = time.Now()
	}
}

// drop forgets the states that nobody needs any more, and what the log of changes has of them, and returns how many.
func (s *states) drop(log *changes, rest time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var resting []string
	for name, h := range s.byCluster {
		if h.users == 0 && h.state != nil {
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

// note returns the state that a record is to be applied to, nil if there is none, or none yet.
func (s *states) note(cluster string, t told) *state.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byCluster[cluster]
	if h == nil {
		return nil
	}
	if h.known = true; h.state == nil {
		h.pending = append(h.pending, t)
	}
	return h.state
}
