package runner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

// lateBinding is ten minutes of requests of four users in three namespaces under a known
// state, and a binding that gave user1 the right to get pods in ns1 half way, which becomes
// known only after all of them are stored.
type lateBinding struct {
	*simWorld
	happened time.Time
	affected map[string]bool // audit IDs
	late     stream.Record
}

func newLateBinding(seed uint64) *lateBinding {
	w := &lateBinding{
		simWorld: &simWorld{plan: simPlan{seed: seed}, log: newSimLog(simPlan{}, 2, 1), rows: newSimRows(""),
			engine: replay.New(replay.Config{}), expected: &simExpected{}},
		happened: simBase.Add(5 * time.Minute), affected: map[string]bool{},
	}
	received := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	snap := observe.Snapshot{Began: simBase.Add(-time.Hour), Ended: simBase.Add(-time.Hour + time.Second), Kinds: kept.Resources(),
		Objects: []observe.Observation{workload.PodRole("role0", 900)}}
	for _, o := range snap.Observations() {
		w.log.append(stream.TopicPolicy, stream.PolicyRecord(stream.KindObservation, "east", "import", received, o.Append(nil)))
	}
	for i := range 120 {
		at := simBase.Add(time.Duration(i) * 5 * time.Second)
		user, ns := i%4, i%3
		e := requestEvent(i, user, ns, event.StageResponseComplete, at, time.Millisecond, false)
		w.log.append(stream.TopicEvents, streamtest.EventRecord("east", "webhook", "", received, e))
		if user == 1 && ns == 1 && at.After(w.happened) {
			w.affected[e.AuditID] = true
		}
	}
	w.late = streamtest.PolicyEventRecord("east", "webhook", "", received, workload.BindRole("b", 1000, 0, 1, w.happened, false))
	return w
}

// drain runs a process until everything is where it belongs, or it crashes.
func (w *lateBinding) drain(t *testing.T, id, crashAt int) (l *life) {
	l, r, done := w.start(id, crashAt, false)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- r.WaitDrained(ctx) }()
	select {
	case err := <-drained:
		if err != nil && !l.dead() {
			t.Errorf("drain: %v", err)
		}
		time.Sleep(20 * simFetchWait)
		l.cancel()
		<-done
	case <-done:
		cancel()
		<-drained
	}
	return l
}

func TestLateBindingChangesExactlyTheAffectedVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateBinding(1)
		w.drain(t, 1, 0)
		w.log.append(stream.TopicPolicy, w.late)
		l := w.drain(t, 2, 0)
		for _, row := range w.rows.standing() {
			changed := row.Revision > 1
			if changed != w.affected[row.Event.AuditID] {
				t.Errorf("%s of %s at %s: changed %v, want %v", row.Event.RequestURI, row.Event.User.Username,
					row.Event.RequestReceivedTimestamp, changed, w.affected[row.Event.AuditID])
			}
			if changed && (row.Verdict.Replayed != verdict.DecisionAllow || len(row.Verdict.Grants) != 1) {
				t.Errorf("%s: %s with %d grants, want allow with one", row.Event.RequestURI, row.Verdict.Replayed, len(row.Verdict.Grants))
			}
		}
		if len(w.affected) < 3 {
			t.Fatalf("only %d requests affected", len(w.affected))
		}
		sum := l.sums(t)
		if got := sum["retrial_runner_corrections_total"]; got != float64(len(w.affected)) {
			t.Errorf("%v corrections, want %d", got, len(w.affected))
		}
		// All of user1 in ns1 from some time before the binding, and nobody else.
		if got := sum["retrial_runner_rejudged_total"]; got > 10 {
			t.Errorf("%v verdicts judged again for %d that changed", got, len(w.affected))
		}
		if v := w.check(); len(v) > 0 {
			t.Error(strings.Join(v, "\n"))
		}
	})
}

func TestCrashAtEveryStepOfACorrection(t *testing.T) {
	steps := 1
	for at := 1; at <= steps; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newLateBinding(3)
			w.drain(t, 1, 0)
			w.log.append(stream.TopicPolicy, w.late)
			if at == 1 {
				// Count the steps on a store of its own.
				probe := newLateBinding(3)
				probe.drain(t, 1, 0)
				probe.log.append(stream.TopicPolicy, probe.late)
				steps = probe.drain(t, 2, 0).steps
			}
			w.drain(t, 2, at)
			w.drain(t, 3, 0)
			if v := w.check(); len(v) > 0 {
				t.Fatalf("crash at step %d of %d:\n%s", at, steps, strings.Join(v, "\n"))
			}
		})
	}
	if steps < 20 {
		t.Fatalf("a correction of %d steps", steps)
	}
}

// The policy topic is lost and made anew, with lower offsets, while a binding was on its
// way: the table still holds what was, and what the new topic brings corrects what stands.
func TestPolicyTopicMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateBinding(1)
		w.drain(t, 1, 0)
		at := place{stream.TopicPolicy, 0}
		before := w.log.logs[at]
		w.log.logs[at], w.log.epochs[at] = nil, simEpoch+1
		w.log.append(stream.TopicPolicy, w.late)
		w.drain(t, 2, 0)
		after := w.log.logs[at]
		if next := w.log.commits[place{stream.TopicEvents, 0}].pending.PolicyOffsets[0]; next != 1 {
			t.Errorf("rows are said to reflect offset %d of the new topic, want 1", next)
		}
		w.log.logs[at] = append(before, after...)
		if v := w.check(); len(v) > 0 {
			t.Error(strings.Join(v, "\n"))
		}
	})
}

// stalled is a source whose policy reader does not get on until it is released.
type stalled struct {
	*simSource
	release chan struct{}
}

func (s stalled) Policy(ctx context.Context, from map[int32]int64, apply func([]stream.Record) error,
	rest func(partition int32)) PolicyFeed {
	return s.simSource.Policy(ctx, from, func(recs []stream.Record) error {
		select {
		case <-s.release:
		case <-ctx.Done():
			return ctx.Err()
		}
		return apply(recs)
	}, rest)
}

func TestStalledPolicyReaderHoldsForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateBinding(1)
		w.log.append(stream.TopicPolicy, w.late)
		ctx, cancel := context.WithCancel(context.Background())
		l := &life{world: w.simWorld, cancel: cancel}
		source := stalled{&simSource{w.log, l}, make(chan struct{})}
		r, err := New(Config{Tagger: simTagger{}, HoldLimit: 10 * time.Second}, source, w.engine, &simStore{w.rows, l})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		time.Sleep(9 * time.Second)
		if n := len(w.rows.visible()); n != 0 {
			t.Errorf("%d rows stored while the policy reader stalls and the limit is not reached", n)
		}
		time.Sleep(10 * time.Second)
		for _, row := range w.rows.visible() {
			if row.Verdict.Outcome != verdict.OutcomeIndeterminate {
				t.Fatalf("%s is %s although no policy is known", row.Event.RequestURI, row.Verdict.Outcome)
			}
		}
		close(source.release)
		if err := r.WaitDrained(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * simFetchWait)
		cancel()
		running.Wait()
		if v := w.check(); len(v) > 0 {
			t.Error(strings.Join(v, "\n"))
		}
	})
}

// Two runs of one seed take the same steps: a seed that fails can be run again.
func TestSimulationIsReproducible(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		var first string
		for range 3 {
			var trace string
			synctest.Test(t, func(t *testing.T) {
				w := &simWorld{plan: planOf(seed), log: newSimLog(simPlan{}, 3, 2), rows: newSimRows(""),
					engine: replay.New(replay.Config{})}
				_, steps := w.run(t)
				trace = fmt.Sprintf("%d steps, %d rows, %d tokens", steps, len(w.rows.rows), len(w.rows.tokens))
			})
			if first == "" {
				first = trace
			}
			if trace != first {
				t.Errorf("seed %d: %s, then %s", seed, first, trace)
			}
		}
	}
}
