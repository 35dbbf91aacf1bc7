// Package runner is the loop that turns recorded requests into stored verdicts: fetch,
// hold, replay, write, commit, for every partition of audit.events this process owns, and
// the corrections that follow when policy becomes known late.
//
// Door: [New], then [Runner.Run], which blocks. Product: rows in the event store.
//
// Guarantees, each shown by the simulation in this package:
//
//   - An acknowledged record is stored, and visible once, whatever crashes where: the range
//     about to be written stands in the commit metadata before the write, the write carries
//     a token made of that range, and whoever comes next settles the range before anything
//     else.
//   - in = out + dead-lettered + duplicates.
//   - Whatever order policy and events arrive in, the verdicts that stand are the ones a
//     replay from scratch with all the policy would reach.
//
// Several processes may run it in one consumer group: each keeps the state of all clusters
// (the policy topic is read by everybody), judges and corrects only its own partitions, and
// [Config.OwnsPolicy] says which of them writes the policy table. Writing it twice is
// harmless, since saving is idempotent.
//
// Time comes from package time; the tests run in testing/synctest bubbles, which is where
// the clock is injected.
package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// Runner is the loop. Make one with New, run it once.
type Runner struct {
	cfg    Config
	log    *zap.Logger
	engine Engine
	source Source
	store  Store

	metrics *metrics
	states  *states
	lags    replay.Lags
	ages    *ages
	changes *changes
	gate    *gate
	board   *board
	memory  *semaphore.Weighted
	pace    *pace
	// forwards counts the blocks of which records were appended to another partition.
	forwards atomic.Int64

	asking   chan struct{} // held while jobs are read and added
	rejudges *rejudges

	jitter    func() float64                                 // in [0,1); replaced by tests
	misplaced func(l stream.Layout, rec *stream.Record) bool // replaced by tests
}

// New returns a Runner that reads source, judges with engine and writes to store. They must
// outlive Run.
func New(cfg Config, source Source, engine Engine, store Store) (*Runner, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	known := newStates()
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(newBlindness(known))
	}
	return &Runner{
		cfg: cfg, log: cfg.Log, engine: engine, source: source, store: store,
		metrics: newMetrics(cfg.Registerer), states: known, changes: newChanges(cfg.CorrectionLog), ages: newAges(),
		gate: newGate(source), board: newBoard(), memory: semaphore.NewWeighted(cfg.InFlightBytes), jitter: jitter, misplaced: misplaced,
		pace:   newPace(cfg.Linger),
		asking: make(chan struct{}, 1), rejudges: newRejudges(),
	}, nil
}

// Run rebuilds the states from the policy table and then works until ctx ends, when it
// returns nil, or something failed that no repetition helps. Everything it started has ended
// when it returns. Blocks under way are settled or stay announced for the next owner.
func (r *Runner) Run(ctx context.Context) error {
	group, work := errgroup.WithContext(ctx)
	from, err := r.loadPolicy(work)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("load policy: %w", err)
	}
	feed := r.source.Policy(work, from, func(records []stream.Record) error { return r.applyPolicy(work, records) },
		func(partition int32) {
			if r.cfg.OwnsPolicy(partition) {
				r.gate.rest(work, r.cfg.Linger)
			}
		})
	r.gate.open(feed)
	group.Go(func() error {
		<-feed.Done()
		if err := feed.Close(); err != nil {
			return fmt.Errorf("read policy: %w", err)
		}
		if work.Err() != nil {
			return nil
		}
		if err := feed.Err(); err != nil {
			return fmt.Errorf("read policy: %w", err)
		}
		return errors.New("read policy: the reader ended by itself")
	})
	group.Go(func() error { return r.source.Events(work, r.events) })
	group.Go(func() error { return r.source.DeadLetters(work, r.deadLetters) })
	group.Go(func() error { return r.followRejudges(work) })
	err = group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// reserve takes a share of the memory budget; call release when its records are settled.
func (r *Runner) reserve(ctx context.Context, bytes int) (release func(), err error) {
	if err := r.memory.Acquire(ctx, int64(bytes)); err != nil {
		return nil, err
	}
	return func() { r.memory.Release(int64(bytes)) }, nil
}

// observeLag brings the lag of a topic up to date.
func (r *Runner) observeLag(topic string) {
	r.metrics.lag.WithLabelValues(topic).Set(float64(r.board.lag(topic)))
}

// timed observes how long a step takes, from the call to the call of its result.
func (r *Runner) timed(step string) (done func()) {
	began := time.Now()
	return func() { r.metrics.steps.WithLabelValues(step).Observe(time.Since(began).Seconds()) }
}

// Lags returns what was learnt of the cache lags of apiservers since the process began.
func (r *Runner) Lags() []replay.Lag { return r.lags.All() }

// learn notes what a request that was judged for the first time shows of its apiserver's lag.
func (r *Runner) learn(row *verdict.Row) {
	late, ok := r.engine.(interface {
		Behind(e *event.Event, s *state.State, v *verdict.Verdict) (time.Duration, bool)
	})
	if !ok {
		return
	}
	lag, ok := late.Behind(row.Event, r.states.of(row.Cluster), row.Verdict)
	if !ok {
		return
	}
	r.lags.Observe(row.Cluster, row.APIServer, lag)
	longest := time.Duration(0)
	for _, l := range r.lags.All() {
		longest = max(longest, l.Learnt)
	}
	r.metrics.cacheLag.Set(longest.Seconds())
}

// Clusters returns the clusters anything is known of, sorted.
func (r *Runner) Clusters() []string { return r.states.names() }

// State returns what is known of a cluster, false if that is nothing. The State may be
// read from any goroutine and must not be written to.
func (r *Runner) State(cluster string) (*state.State, bool) { return r.states.find(cluster) }

// CheckCluster tells, before they are sent, whether observations can be of a cluster: an
// error that wraps state.ErrOtherCluster when they contradict what is known of it.
func (r *Runner) CheckCluster(cluster string, obs ...observe.Observation) error {
	s, known := r.states.find(cluster)
	if !known {
		return nil
	}
	if err := s.CheckCluster(obs...); err != nil {
		return fmt.Errorf("check state of cluster %s: %w", cluster, err)
	}
	return nil
}

// clusterSteps is the work that the events of one cluster may take in one block, or in one pass
// of corrections: less than a second. Blocks hold events of several clusters, and whoever waits
// for the block waits for all of them.
const clusterSteps = 1 << 24

// allowances are what the events of each cluster may take together. The zero value is ready.
type allowances struct {
	mu       sync.Mutex
	clusters map[string]*replay.Allowance
}

// of returns the allowance of a cluster.
func (a *allowances) of(cluster string) *replay.Allowance {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clusters == nil {
		a.clusters = map[string]*replay.Allowance{}
	}
	one := a.clusters[cluster]
	if one == nil {
		one = replay.NewAllowance(clusterSteps)
		a.clusters[cluster] = one
	}
	return one
}
