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
// Several processes may run it in one consumer group: each judges and corrects only its own
// partitions, and holds the state of the clusters that these have (held.go). The policy topic
// is read by everybody, and the policy table written: saving is idempotent, and a state is
// loaded from what its process has saved.
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

	ended    chan struct{} // closed when Run returns
	asking   chan struct{} // held while jobs are read and added
	rejudges *rejudges

	rest      time.Duration                                  // restFor; replaced by tests
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
		cfg.Registerer.MustRegister(newBlindness(known), newHeldClusters(known))
	}
	return &Runner{
		cfg: cfg, log: cfg.Log, engine: engine, source: source, store: store,
		metrics: newMetrics(cfg.Registerer), states: known, changes: newChanges(cfg.CorrectionLog), ages: newAges(),
		gate: newGate(source), board: newBoard(), memory: semaphore.NewWeighted(cfg.InFlightBytes),
		rest: restFor, jitter: jitter, misplaced: misplaced,
		pace: newPace(cfg.Linger), ended: make(chan struct{}),
		asking: make(chan struct{}, 1), rejudges: newRejudges(),
	}, nil
}

// Run works until ctx ends, when it returns nil, or something failed that no repetition helps.
// Everything it started has ended when it returns. Blocks under way are settled or stay announced
// for the next owner. It is called once.
func (r *Runner) Run(ctx context.Context) error {
	defer close(r.ended)
	group, work := errgroup.WithContext(ctx)
	from, err := r.startPolicy(work)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("begin with policy: %w", err)
	}
	for range loaders {
		group.Go(func() error { return r.loadStates(work) })
	}
	group.Go(func() error { return r.dropStates(work) })
	feed := r.source.Policy(work, from, func(records []stream.Record) error { return r.applyPolicy(work, records) },
		func(int32) { r.gate.rest(work, r.cfg.Linger) })
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
