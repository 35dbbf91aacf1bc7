package runner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// mistaken is an engine of an earlier release: it takes everything user1 asks in ns1 for
// drift.
type mistaken struct{ *replay.Engine }

func (m mistaken) ReplayWithin(a *replay.Allowance, e *event.Event, s *state.State) *verdict.Verdict {
	v := m.Engine.ReplayWithin(a, e, s)
	if e.User.Username == "user1" && v.Attributes.Namespace == "ns1" {
		v.Outcome, v.Class, v.Replayed, v.Grants = verdict.OutcomeDrift, verdict.ClassAllowForbid, verdict.DecisionForbid, nil
	}
	return v
}

// mended returns a world whose requests were judged by a mistaken engine; the processes that come
// now have the right one. Of user1 in ns1 there are ten requests.
func mended(t *testing.T, seed uint64) *lateBinding {
	t.Helper()
	w := newLateBinding(seed)
	w.log.append(stream.TopicPolicy, w.late)
	w.judge = mistaken{w.engine}
	w.drain(t, 1, 0)
	w.judge = nil
	if v := w.check(); len(v) == 0 {
		t.Fatal("the mistaken engine made no mistake")
	}
	return w
}

// all selects every request of the world.
func all() verdict.Rejudge {
	return verdict.Rejudge{Cluster: "east", From: simBase.Add(-time.Hour), To: simBase.Add(24 * time.Hour)}
}

// again runs a process, asks it to judge again, and returns the job as it stands when it is
// done, or when the process has crashed.
func (w *lateBinding) again(t *testing.T, id, crashAt int, want verdict.Rejudge) (job verdict.RejudgeJob, l *life) {
	t.Helper()
	l, r, done := w.start(id, crashAt, false)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	job, err := r.Rejudge(ctx, want)
	if err != nil && !l.dead() {
		t.Errorf("rejudge: %v", err)
	}
	for err == nil && !l.dead() && !job.Done() {
		if ctx.Err() != nil {
			t.Fatalf("job %+v is not done", job)
		}
		time.Sleep(time.Second)
		job = w.job(job.ID)
	}
	l.cancel()
	<-done
	return job, l
}

// job returns a job as the store has it.
func (w *lateBinding) job(id string) verdict.RejudgeJob {
	w.rows.mu.Lock()
	defer w.rows.mu.Unlock()
	for _, j := range w.rows.jobs {
		if j.ID == id {
			return j
		}
	}
	return verdict.RejudgeJob{}
}

func TestRejudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mended(t, 1)
		wrong := map[string]bool{}
		for _, row := range w.rows.standing() {
			if row.Verdict.Class == verdict.ClassAllowForbid {
				wrong[row.Event.AuditID] = true
			}
		}
		before := len(w.rows.rows)
		dry := all()
		dry.DryRun = true
		job, _ := w.again(t, 2, 0, dry)
		report := job.Report()
		if len(w.rows.rows) != before || report.Changed != int64(len(wrong)) || report.Visited != 120 {
			t.Fatalf("a dry run wrote %d rows and reports %+v; want %d changes", len(w.rows.rows)-before, report, len(wrong))
		}
		job, l := w.again(t, 3, 0, all())
		if got := job.Report(); got.Changed != report.Changed || got.Visited != report.Visited ||
			len(got.Transitions) != len(report.Transitions) {
			t.Errorf("report %+v, the dry run said %+v", got, report)
		}
		for _, tr := range job.Report().Transitions {
			if tr.From != (verdict.Judgement{Outcome: "drift", Verdict: "drift", Class: verdict.ClassAllowForbid}) ||
				len(tr.Examples) == 0 ||
				!wrong[tr.Examples[0].AuditID] {
				t.Errorf("transition %+v", tr)
			}
		}
		for _, row := range w.rows.standing() {
			if (row.Revision > 1) != wrong[row.Event.AuditID] {
				t.Errorf("%s of %s has revision %d; wrong before: %v", row.Event.RequestURI, row.Event.User.Username, row.Revision,
					wrong[row.Event.AuditID])
			}
		}
		if got := l.sums(t)["retrial_runner_corrections_total"]; got != float64(len(wrong)) {
			t.Errorf("%v corrections, want %d", got, len(wrong))
		}
		if v := w.check(); len(v) > 0 {
			t.Error(strings.Join(v, "\n"))
		}
		rows := len(w.rows.rows)
		twice := all()
		twice.To = twice.To.Add(time.Hour) // another job
		job, _ = w.again(t, 4, 0, twice)
		if got := job.Report(); got.Changed != 0 || got.Visited != 120 || len(w.rows.rows) != rows {
			t.Errorf("judged again twice: %+v, %d rows written", got, len(w.rows.rows)-rows)
		}
	})
}

// TestRejudgeSelects: only what is selected is looked at.
func TestRejudgeSelects(t *testing.T) {
	for _, tc := range []struct {
		name             string
		change           func(*verdict.Rejudge)
		visited, changed int64
	}{
		{"everything", func(*verdict.Rejudge) {}, 120, 10},
		{"a user", func(r *verdict.Rejudge) { r.Users = []string{"user1"} }, 30, 10},
		{"a user without mistakes", func(r *verdict.Rejudge) { r.Users = []string{"user2"} }, 30, 0},
		{"a namespace", func(r *verdict.Rejudge) { r.Only.Namespaces = []string{"ns1"} }, 40, 10},
		{"a class", func(r *verdict.Rejudge) { r.Only.Classes = []string{verdict.ClassAllowForbid} }, 10, 10},
		{"an outcome", func(r *verdict.Rejudge) { r.Only.Outcomes = []string{"drift"} }, 10, 10},
		{"another verb", func(r *verdict.Rejudge) { r.Only.Verbs = []string{"delete"} }, 0, 0},
		{"a resource", func(r *verdict.Rejudge) { r.Only.Resources = []string{"pods"} }, 120, 10},
		{"a range", func(r *verdict.Rejudge) { r.From, r.To = simBase, simBase.Add(5*time.Minute) }, 60, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := mended(t, 1)
				want := all()
				tc.change(&want)
				job, _ := w.again(t, 2, 0, want)
				if got := job.Report(); got.Visited != tc.visited || got.Changed != tc.changed {
					t.Errorf("%d visited, %d changed; want %d, %d", got.Visited, got.Changed, tc.visited, tc.changed)
				}
			})
		})
	}
}

// A process that ends at any step of a job leaves what the next one finishes.
func TestCrashAtEveryStepOfARejudge(t *testing.T) {
	steps := 1
	for at := 1; at <= steps; at++ {
		synctest.Test(t, func(t *testing.T) {
			want := all()
			want.From, want.To = simBase, simBase.Add(3*time.Hour) // three steps a partition
			if at == 1 {
				_, l := mended(t, 3).again(t, 2, 0, want)
				steps = l.steps
			}
			w := mended(t, 3)
			w.again(t, 2, at, want)
			job, _ := w.again(t, 3, 0, want)
			if n := len(w.rows.jobs); !job.Done() || n > 2 || n == 2 && !w.rows.jobs[0].Done() {
				t.Fatalf("crash at step %d of %d: jobs %+v", at, steps, w.rows.jobs)
			}
			if v := w.check(); len(v) > 0 {
				t.Fatalf("crash at step %d of %d:\n%s", at, steps, strings.Join(v, "\n"))
			}
		})
	}
	if steps < 20 {
		t.Fatalf("a job of %d steps", steps)
	}
}

// Two processes share the partitions: the one that was not asked does its share too.
func TestRejudgeByTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mended(t, 1)
		other, _, otherDone := w.start(2, 0, false)
		time.Sleep(30 * time.Second)
		job, l := w.again(t, 3, 0, all())
		other.cancel()
		<-otherDone
		if got := job.Report(); got.Changed != 10 || got.Visited != 120 {
			t.Errorf("report %+v", got)
		}
		a, b := l.sums(t)["retrial_runner_corrections_total"], other.sums(t)["retrial_runner_corrections_total"]
		if a+b != 10 || a == 0 || b == 0 {
			t.Errorf("%v corrections by one, %v by the other; want ten shared", a, b)
		}
		if v := w.check(); len(v) > 0 {
			t.Error(strings.Join(v, "\n"))
		}
	})
}

func TestOneRejudgeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mended(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		l := &life{world: w.simWorld, cancel: cancel, instant: true}
		r, err := New(Config{}, &simSource{w.log, l}, w.engine, &simStore{w.rows, l})
		if err != nil {
			t.Fatal(err)
		}
		first, err := r.Rejudge(ctx, all()) // nobody works on it: Run has not been called
		if err != nil {
			t.Fatal(err)
		}
		var same sync.WaitGroup
		for range 3 {
			same.Go(func() {
				if again, err := r.Rejudge(ctx, all()); err != nil || again.ID != first.ID {
					t.Errorf("the same asked again: job %s, %v; want %s", again.ID, err, first.ID)
				}
			})
		}
		same.Wait()
		other := all()
		other.DryRun = true
		if _, err := r.Rejudge(ctx, other); !errors.Is(err, verdict.ErrRejudging) {
			t.Errorf("something else: %v, want %v", err, verdict.ErrRejudging)
		}
		elsewhere := all()
		elsewhere.Cluster = "west"
		if _, err := r.Rejudge(ctx, elsewhere); err != nil {
			t.Errorf("another cluster: %v", err)
		}
		empty := all()
		empty.To = empty.From
		if _, err := r.Rejudge(ctx, empty); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("an empty range: %v", err)
		}
		cancel()
	})
}
