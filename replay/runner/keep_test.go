package runner

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

// A running process forgets policy that no kept request needs: what stands, stands; for a request from before, and for a job, it is loaded
// again; late policy corrects what is kept and nothing else.
func TestForgetPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateBinding(1)
		received := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
		send := func(i int, at time.Time) string {
			e := requestEvent(i, 1, 1, event.StageResponseComplete, at, time.Millisecond, false)
			w.log.append(stream.TopicEvents, streamtest.EventRecord("east", "webhook", "", received, e))
			return e.AuditID
		}
		// A binding that was there for a day, long before everything else.
		for i, deleted := range []bool{false, true} {
			w.log.append(stream.TopicPolicy, streamtest.PolicyEventRecord("east", "webhook", "", received,
				workload.BindRole("old", 950, 0, 1, simBase.Add(-time.Duration(10-i)*24*time.Hour), deleted)))
		}
		old := send(1001, simBase.Add(-9*24*time.Hour-12*time.Hour))
		l, r, done := w.start(1, 0, false)
		settle := func() {
			t.Helper()
			if err := r.WaitDrained(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * simFetchWait)
		}
		rest := func() { time.Sleep(2 * r.rest) } // until nobody has asked about old times for a while
		standing := func(id string) *verdict.Verdict {
			t.Helper()
			for _, row := range w.rows.standing() {
				if row.Event.AuditID == id {
					return row.Verdict
				}
			}
			t.Fatalf("%s is not stored", id)
			return nil
		}
		settle()
		rest()
		s, err := r.State(t.Context(), "east", latest)
		if err != nil {
			t.Fatal(err)
		}
		stood := standing(old)

		r.ForgetPolicy(0)
		if h := s.History(kept.RoleBindings, "ns1", "old"); len(h) < 2 || !s.Horizon().Equal(simBase.Add(-10*24*time.Hour-12*time.Hour)) {
			t.Errorf("what a stored request needs was forgotten: horizon %s, %d versions", s.Horizon(), len(h))
		}
		// The oldest request of the last while was ten days old: keeping a day keeps what it needs.
		r.ForgetPolicy(24 * time.Hour)
		if want := simBase.Add(-10*24*time.Hour - 12*time.Hour); !s.Horizon().Equal(want) {
			t.Errorf("horizon %s, want %s", s.Horizon(), want)
		}
		sums := l.sums(t)
		before := sums["retrial_runner_policy_pruned_versions_total"]
		// Of an apiserver whose clock is years ahead one request comes, among others.
		send(1002, simBase.AddDate(7, 0, 0))
		send(1003, simBase.Add(time.Hour))
		settle()
		rest()
		r.ForgetPolicy(24 * time.Hour)
		if want := simBase.Add(-23 * time.Hour); !s.Horizon().Equal(want) {
			t.Errorf("horizon %s, want %s", s.Horizon(), want)
		}
		if sums = l.sums(t); sums["retrial_runner_policy_pruned_versions_total"] <= before ||
			sums["retrial_runner_policy_horizon_timestamp_seconds"] != float64(s.Horizon().Unix()) {
			t.Errorf("%v versions dropped, horizon %v", sums["retrial_runner_policy_pruned_versions_total"],
				sums["retrial_runner_policy_horizon_timestamp_seconds"])
		}
		if h := s.History(kept.RoleBindings, "ns1", "old"); len(h) > 1 {
			t.Errorf("%d versions are left of a binding that is long gone", len(h))
		}

		late := send(1004, simBase.Add(-9*24*time.Hour-11*time.Hour))
		settle()
		if v := standing(late); v.Outcome != stood.Outcome || v.Class != stood.Class || v.Replayed != stood.Replayed {
			t.Errorf("a request from before the horizon is %s (%s, %s)", v.Outcome, v.Class, v.Cause)
		}
		if n := l.sums(t)["retrial_runner_forgotten_requests_total"]; n != 0 {
			t.Errorf("%v requests from before the horizon were judged without their policy", n)
		}
		if s, err = r.State(t.Context(), "east", latest); err != nil || !s.Horizon().IsZero() {
			t.Errorf("%v, horizon %s: it was loaded for that", err, s.Horizon())
		}

		// The late binding, and a gap that puts everything in doubt: everybody is judged again.
		w.log.append(stream.TopicPolicy, w.late)
		settle()
		if v := standing(old); v != stood && fmt.Sprintf("%+v", *v) != fmt.Sprintf("%+v", *stood) {
			t.Errorf("a verdict whose policy is forgotten was replaced: %+v, was %+v", v, stood)
		}
		corrected := 0
		for _, row := range w.rows.standing() {
			if w.affected[row.Event.AuditID] && row.Verdict.Replayed == verdict.DecisionAllow {
				corrected++
			}
		}
		if corrected != len(w.affected) {
			t.Errorf("%d of %d verdicts corrected", corrected, len(w.affected))
		}
		job, err := r.Rejudge(t.Context(), verdict.Rejudge{Cluster: "east", From: simBase.AddDate(0, -1, 0),
			To: simBase.Add(2 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		jobs, err := r.Rejudges(t.Context())
		if err != nil || len(jobs) != 1 || jobs[0].ID != job.ID || !jobs[0].Done() {
			t.Fatalf("%v, %+v", err, jobs)
		}
		if report := jobs[0].Report(); report.Failed != 0 || report.Changed != 0 || report.Visited < 100 {
			t.Errorf("judged again: %+v, want all, and none that changes", report)
		}
		if v := standing(old); v.Outcome != stood.Outcome || v.Class != stood.Class {
			t.Errorf("judging again replaced a verdict whose policy is forgotten: %s (%s)", v.Outcome, v.Class)
		}
		l.cancel()
		<-done
	})
}
