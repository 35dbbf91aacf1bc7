package runner

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

// The simulation runs the real loop, the real engine and the real state against a broker
// and a store that fail, crash and lie about timing as their likes do. Everything in a
// schedule follows from its seed: delays are drawn per actor, the clock of the bubble runs
// only while all of them sleep, so the order of steps is the order of their delays.
//
//	RETRIAL_SIM_SCHEDULES=100000 go test -run TestSimulation ./replay/runner   more of them
//	RETRIAL_SIM_SEED=42 go test -run TestSimulation ./replay/runner            one again

// plan says what happens in a schedule.
type simPlan struct {
	seed    uint64
	mutant  string
	faults  bool
	crashAt []int // steps after which the processes that run first crash, one after the other
	pairs   bool  // two processes at a time
	settled bool  // all policy is there before the first event: no correction covers for anything
	grouped bool  // the events of a cluster are in one partition, and states that nobody needs are soon let go of
	events  int
	layouts int  // changes of the layout
	lingers bool // blocks wait for their turn for long, and somebody asks every now and then
	old     bool // some of what happens did long ago, and questions about that time come; nothing of it is held longer than needed
}

// world is one schedule.
type simWorld struct {
	plan       simPlan
	log        *simLog
	rows       *simRows
	engine     *replay.Engine
	judge      Engine // judges instead of engine, when set
	background sync.WaitGroup
	expected   *simExpected
}

// simTagger marks rows by what corrections change.
type simTagger struct{}

func (simTagger) Tag(cluster string, e *event.Event, v *verdict.Verdict) []verdict.Mark {
	marks := []verdict.Mark{{Name: v.Outcome.String() + "/" + v.Replayed.String(), Key: uint64(len(v.Grants))}}
	if v.Outcome == verdict.OutcomeDrift {
		marks = append(marks, verdict.Mark{Name: "drift", Key: uint64(len(cluster) + len(e.User.Username))})
	}
	return marks
}

// life is one process from start to crash or stop.
type life struct {
	world   *simWorld
	id      int
	crashAt int // 0: never
	faults  bool
	cancel  context.CancelFunc
	reg     *prometheus.Registry

	instant bool // steps take no time

	mu      sync.Mutex
	actors  map[string]*rand.Rand
	steps   int
	crashed bool
}

// step is called wherever a process may crash: it takes a little time, and at the chosen
// step the process ends. Nothing a crashed process does has an effect. Every actor draws its
// delays from a source of its own, or the order in which the scheduler wakes them would
// decide who gets which.
func (l *life) step(ctx context.Context, actor, name string) error {
	if name != "fetch" && name != "read policy" {
		l.mu.Lock()
		l.steps++ // waiting for records is the same state over and over
		if l.steps == l.crashAt {
			l.crashed = true
			l.cancel()
		}
		l.mu.Unlock()
	}
	if l.dead() {
		return errCrashed
	}
	if !l.instant {
		if err := sleep.For(ctx, 10*time.Microsecond+time.Duration(l.intn(actor, 3_000_000))); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if l.dead() {
		return errCrashed
	}
	return nil
}

func (l *life) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.crashed
}

// intn draws from an actor's source.
func (l *life) intn(actor string, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	rng := l.actors[actor]
	if rng == nil {
		h := fnv.New64a()
		fmt.Fprint(h, l.id, actor)
		rng = rand.New(rand.NewPCG(l.world.plan.seed, h.Sum64()))
		if l.actors == nil {
			l.actors = map[string]*rand.Rand{}
		}
		l.actors[actor] = rng
	}
	return rng.IntN(n)
}

// fault decides whether an operation fails, in percent.
func (l *life) fault(actor string, percent int) bool {
	return l.faults && l.intn(actor, 100) < percent
}

// flaky returns a step that may fail without having done anything.
func (l *life) flaky(ctx context.Context, actor, name string) error {
	if err := l.step(ctx, actor, name); err != nil {
		return err
	}
	if l.fault(actor, 4) {
		return fmt.Errorf("%s: %w", name, errFault)
	}
	return nil
}

// start runs a process; wait for the channel after cancel or a crash.
func (w *simWorld) start(id, crashAt int, faults bool) (*life, *Runner, <-chan error) {
	engine := w.judge
	if engine == nil {
		engine = w.engine
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{world: w, id: id, crashAt: crashAt, faults: faults, cancel: cancel, reg: prometheus.NewRegistry()}
	linger := 30 * time.Millisecond
	if w.plan.lingers {
		linger = time.Minute
	}
	r, err := New(Config{
		Hold: 100 * time.Millisecond, HoldLimit: 2 * time.Second, Linger: linger,
		BatchRecords: 12, CorrectionRows: 5, CorrectionLog: 40, Parallel: 1, Registerer: l.reg,
		RetryMin: 5 * time.Millisecond, RetryMax: 100 * time.Millisecond, LongestRequest: time.Minute, Tagger: simTagger{},
	}, &simSource{w.log, l}, engine, &simStore{w.rows, l})
	if err != nil {
		panic(err)
	}
	r.jitter = func() float64 { return 0.5 }
	if w.plan.mutant == mutantStoresAll {
		r.misplaced = func(stream.Layout, *stream.Record) bool { return false }
	}
	if w.plan.grouped || w.plan.old {
		r.rest = 500 * time.Millisecond
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	if w.plan.lingers {
		w.background.Go(func() {
			for sleep.For(ctx, time.Duration(1+l.intn("asker", 3000))*time.Millisecond) == nil {
				r.CatchUp(ctx)
			}
		})
	}
	return l, r, done
}

// run plays the schedule and returns what is wrong at its end, and how many steps the first
// process took.
func (w *simWorld) run(t testing.TB) (violations []string, steps int) {
	rng := rand.New(rand.NewPCG(w.plan.seed, 1))
	w.expected = generate(rng, w.plan.events, w.plan.settled, w.plan.old)
	var producing sync.WaitGroup
	w.changeLayouts(&producing)
	producing.Go(func() { w.expected.produce(w.log) })

	var lives []*life
	for i, crashAt := range w.plan.crashAt {
		l, _, done := w.start(2*i, crashAt, w.plan.faults)
		lives = append(lives, l)
		if w.plan.pairs {
			// The second one joins while the first one works, and outlives it for a while.
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			second, _, secondDone := w.start(2*i+1, 0, w.plan.faults)
			lives = append(lives, second)
			limit := time.After(20 * time.Second)
			select {
			case <-done:
			case <-limit:
				l.cancel()
				<-done
			}
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			second.cancel()
			<-secondDone
			continue
		}
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			l.cancel()
			<-done
		}
	}
	producing.Wait()
	last, r, done := w.start(1000, 0, false)
	lives = append(lives, last)
	asking := w.ask(r)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	if err := r.WaitDrained(ctx); err != nil {
		violations = append(violations, fmt.Sprintf("not drained: %v, lag %+v", err, r.Lag()))
	}
	cancel()
	time.Sleep(20 * simFetchWait) // the idle commit
	if lag := r.Lag(); lag != (verdict.Backlog{}) {
		violations = append(violations, fmt.Sprintf("drained with lag %+v", lag))
	}
	violations = append(violations, asking()...)
	last.cancel()
	if err := <-done; err != nil {
		violations = append(violations, fmt.Sprintf("last run: %v", err))
	}
	w.background.Wait()
	for _, l := range lives {
		violations = append(violations, l.identity(t)...)
	}
	return append(violations, w.check()...), lives[0].steps
}

// sums returns the process's counters, summed over their labels.
func (l *life) sums(t testing.TB) map[string]float64 {
	t.Helper()
	families, err := l.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sum[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// identity checks in = out + dead-lettered + duplicates.
func (l *life) identity(t testing.TB) []string {
	t.Helper()
	sum := l.sums(t)
	in, out := sum["retrial_runner_in_total"], sum["retrial_runner_out_total"]
	dead, duplicates := sum["retrial_runner_deadletters_total"], sum["retrial_runner_duplicates_total"]
	if n := sum["retrial_runner_forgotten_requests_total"]; n > 0 {
		return []string{fmt.Sprintf("process %d: %v requests were judged without their policy", l.id, n)}
	}
	if in != out+dead+duplicates {
		return []string{fmt.Sprintf("process %d: in %v != out %v + dead-lettered %v + duplicates %v", l.id, in, out, dead, duplicates)}
	}
	return nil
}

// check compares what stands with a replay from scratch of everything acknowledged.
func (w *simWorld) check() (violations []string) {
	report := func(format string, args ...any) {
		if len(violations) < 20 {
			violations = append(violations, fmt.Sprintf(format, args...))
		}
	}
	states := w.states()
	// Per event: the place of its first record, its fullest content, and the verdict when it
	// is the first of its request that can carry one.
	type want struct {
		at      event.Position
		content event.Hash128
		size    int
		verdict *verdict.Verdict
	}
	wants := map[event.Hash128]*want{}
	poison := 0
	carried := map[event.Hash128]bool{}
	kept, lost := w.kept()
	violations = append(violations, lost...)
	for _, rec := range kept {
		row, err := decodeRecord(new(event.Decoder), &rec, simEpoch)
		if err != nil {
			poison++
			continue
		}
		e := wants[row.EventKey]
		if e == nil {
			e = &want{at: row.Position, content: row.Content, size: row.Size}
			wants[row.EventKey] = e
			if row.Event.Stage != event.StageRequestReceived && !carried[row.Request] {
				carried[row.Request] = true
				s := states[row.Cluster]
				if s == nil {
					s = state.New(row.Cluster)
				}
				e.verdict = w.engine.Replay(row.Event, s)
			}
		} else if row.Size > e.size && row.Position.Partition == e.at.Partition {
			e.content, e.size = row.Content, row.Size
		}
	}
	seen := map[event.Hash128]int{}
	for _, row := range w.rows.standing() {
		seen[row.EventKey]++
		e := wants[row.EventKey]
		switch {
		case e == nil:
			report("a row stands at %v that nobody sent", row.Position)
		case row.Position != e.at:
			report("row at %v, its event was first sent at %v", row.Position, e.at)
		case row.Content != e.content:
			report("row at %v does not have its event's fullest content", row.Position)
		case (row.Verdict == nil) != (e.verdict == nil):
			report("row at %v carries a verdict: %v, want %v", row.Position, row.Verdict != nil, e.verdict != nil)
		case row.Verdict == nil && row.Marks != nil || row.Verdict != nil && !slices.Equal(row.Marks, simTagger{}.Tag(row.Cluster,
			row.Event, e.verdict)):
			report("row at %v has the marks %v, its verdict is %s", row.Position, row.Marks, e.verdict.Outcome)
		case row.Verdict != nil && !codec.SameVerdict(row.Verdict, e.verdict):
			report("row at %v (%s, %s): %s %s %q, from scratch %s %s %q", row.Position, row.Event.User.Username, row.Event.RequestURI,
				row.Verdict.Outcome, row.Verdict.Replayed, row.Verdict.Cause, e.verdict.Outcome, e.verdict.Replayed, e.verdict.Cause)
		}
	}
	for key, e := range wants {
		if seen[key] != 1 {
			report("the event first sent at %v is visible %d times", e.at, seen[key])
		}
	}
	letters := 0
	for at := range w.rows.letters {
		if at.Partition < 0 && at.Partition%2 != 0 {
			letters++
		}
	}
	if letters != poison {
		report("%d dead letters of audit.events for %d records that cannot be decoded", letters, poison)
	}
	if sent := len(w.log.logs[place{stream.TopicDeadLetter, 0}]); len(w.rows.letters)-letters != sent+w.expected.policyPoison {
		report("%d dead letters, sent %d, of audit.policy %d", len(w.rows.letters)-letters, sent, w.expected.policyPoison)
	}
	scratch := rollupOf(w.rows.standing())
	for k, n := range scratch {
		if w.rows.rollup[k] != n {
			report("rollup %+v is %d, from scratch %d", k, w.rows.rollup[k], n)
		}
	}
	for k, n := range w.rows.rollup {
		if n != 0 && scratch[k] == 0 {
			report("rollup %+v is %d, from scratch 0", k, n)
		}
	}
	for _, p := range w.log.partitions(stream.TopicEvents) {
		at := place{stream.TopicEvents, p}
		if c, end := w.log.commits[at], int64(len(w.log.logs[at])); end > 0 && (c.next != end || c.pending.Has()) {
			report("partition %d is committed at %d (pending %d-%d), its end is %d", p, c.next, c.pending.First, c.pending.Last, end)
		}
	}
	return violations
}

// simulate plays one schedule in a bubble of its own.
func simulate(t *testing.T, plan simPlan) (violations []string, steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &simWorld{plan: plan, log: newSimLog(plan, 3, 2), rows: newSimRows(plan.mutant), engine: replay.New(replay.Config{})}
		violations, steps = w.run(t)
	})
	return violations, steps
}

// planOf draws a schedule from a seed.
func planOf(seed uint64) simPlan {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := simPlan{seed: seed, faults: rng.IntN(4) > 0, pairs: rng.IntN(3) == 0, settled: rng.IntN(3) == 0, events: 10 + rng.IntN(60)}
	for range rng.IntN(5) {
		p.crashAt = append(p.crashAt, 1+rng.IntN(250))
	}
	p.layouts = max(0, rng.IntN(5)-2)
	p.grouped = rng.IntN(2) == 0
	p.lingers = rng.IntN(3) == 0
	p.old = rng.IntN(2) == 0
	return p
}

func TestSimulation(t *testing.T) {
	first, n := uint64(1), uint64(150)
	if s := os.Getenv("RETRIAL_SIM_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, n = seed, 1
	}
	if s := os.Getenv("RETRIAL_SIM_SCHEDULES"); s != "" {
		more, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n = more
	}
	for seed := first; seed < first+n; seed++ {
		if violations, _ := simulate(t, planOf(seed)); len(violations) > 0 {
			t.Fatalf("seed %d, plan %+v:\n%s", seed, planOf(seed), strings.Join(violations, "\n"))
		}
	}
}

// A small schedule is repeated with a crash after every single step of its first process,
// with and without further faults.
func TestCrashAtEveryStep(t *testing.T) {
	for _, faults := range []bool{false, true} {
		plan := simPlan{seed: 11, faults: faults, events: 8, crashAt: []int{1 << 30}}
		_, steps := simulate(t, plan)
		t.Logf("faults %v: %d steps", faults, steps)
		if steps < 50 {
			t.Fatalf("the schedule has %d steps: nothing to crash in", steps)
		}
		for at := 1; at <= steps; at++ {
			plan.crashAt = []int{at}
			if violations, _ := simulate(t, plan); len(violations) > 0 {
				t.Fatalf("faults %v, crash at step %d of %d:\n%s", faults, at, steps, strings.Join(violations, "\n"))
			}
		}
	}
}

// mutantSchedules bounds the schedules a mutant gets to survive in.
const mutantSchedules = 200

// Every safeguard taken away must be noticed; otherwise the simulation shows nothing.
func TestSimulationNoticesMutants(t *testing.T) {
	for _, mutant := range []string{mutantNoToken, mutantNoPending, mutantAckFirst, mutantNoKnown, mutantNoRecover, mutantNoCorrection,
		mutantCorrectedAll, mutantNoWait, mutantStoresAll, mutantStaleTable} {
		t.Run(strings.ReplaceAll(mutant, " ", "-"), func(t *testing.T) {
			for seed := uint64(1); seed <= mutantSchedules; seed++ {
				plan := planOf(seed)
				plan.mutant = mutant
				if violations, _ := simulate(t, plan); len(violations) > 0 {
					t.Logf("noticed at seed %d: %s", seed, violations[0])
					return
				}
			}
			t.Fatalf("a runner with %s passes %d schedules", mutant, mutantSchedules)
		})
	}
}
