package workload_test

import (
	"testing"

	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

// TestWeeks replays the weeks of a seed: the same ones each time, in order, and everything in them is allowed by the policy.
func TestWeeks(t *testing.T) {
	snap, events, err := workload.Weeks{Seed: 5}.Make()
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := workload.Weeks{Seed: 5}.Make()
	if err != nil || len(again) != len(events) {
		t.Fatalf("%d events, then %d, %v", len(events), len(again), err)
	}
	s := state.New("c")
	if _, err := s.LoadSnapshot(*snap); err != nil {
		t.Fatal(err)
	}
	engine := replay.New(replay.Config{})
	for i, e := range events {
		if again[i].AuditID != e.AuditID || i > 0 && e.StageTimestamp.Before(events[i-1].StageTimestamp) {
			t.Fatalf("event %d is another one the second time, or out of order", i)
		}
		if v := engine.Replay(e, s); v.Outcome != verdict.OutcomeMatch {
			t.Fatalf("%s of %s by %s: %s %s %s", e.Verb, e.RequestURI, e.User.Username, v.Outcome, v.Class, v.Cause)
		}
	}
	if len(events) < 5_000 {
		t.Fatalf("%d events", len(events))
	}
	t.Logf("%d events", len(events))
}
