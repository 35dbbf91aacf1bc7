package workload_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

// lines makes events and checks that each survives being written and read.
func lines(t *testing.T, seed uint64, n int) []*event.Event {
	t.Helper()
	g := workload.New(workload.Config{Seed: seed})
	out := make([]*event.Event, n)
	for i := range out {
		out[i] = g.Next()
		line := event.AppendJSON(nil, out[i])
		e, err := event.Decode(line)
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if again := event.AppendJSON(nil, e); !bytes.Equal(again, line) {
			t.Fatalf("made  %s\nagain %s", line, again)
		}
	}
	return out
}

// TestSameSeedSameEvents also makes sure that another seed gives others.
func TestSameSeedSameEvents(t *testing.T) {
	a, b, c := lines(t, 7, 2000), lines(t, 7, 2000), lines(t, 8, 2000)
	same := 0
	for i := range a {
		if !bytes.Equal(event.AppendJSON(nil, a[i]), event.AppendJSON(nil, b[i])) {
			t.Fatalf("event %d differs between two generators of one seed", i)
		}
		if a[i].AuditID == c[i].AuditID {
			same++
		}
	}
	if same > 0 {
		t.Fatalf("%d audit IDs are those of another seed", same)
	}
}

// TestDistributions holds the package's comment to what is made, with some room.
func TestDistributions(t *testing.T) {
	const n = 40_000
	ids := map[event.Hash128]bool{}
	users := map[string]int{}
	var bodies, answers, watches, refused, size int
	last := time.Time{}
	for _, e := range lines(t, 1, n) {
		key := event.EventKey(event.RequestKey("c", e), e)
		if ids[key] {
			t.Fatalf("two events have one key: %s", e.AuditID)
		}
		ids[key] = true
		users[e.User.Username]++
		if e.RequestObject != nil {
			bodies++
		}
		if e.ResponseObject != nil {
			answers++
		}
		if e.Verb == "watch" {
			watches++
		}
		if e.Code() == 403 {
			refused++
		}
		if e.StageTimestamp.Before(last) {
			t.Fatalf("%s ended before the event that came out before it", e.AuditID)
		}
		last = e.StageTimestamp
		size += len(event.AppendJSON(nil, e))
	}
	for _, c := range []struct {
		what     string
		got      int
		from, to float64
	}{
		{"request bodies", bodies, 0.03, 0.07}, {"answers", answers, 0.0005, 0.01}, {"watches", watches, 0.04, 0.12},
		{"refusals", refused, 0.004, 0.02}, {"bytes", size, 1000, 1500}, {"users", len(users), 300.0 / n, 500.0 / n},
	} {
		if share := float64(c.got) / n; share < c.from || share > c.to {
			t.Errorf("%s: %.4f an event, not between %g and %g", c.what, share, c.from, c.to)
		}
	}
}

// TestPolicyFits replays events against the policy they come with: what is let through is
// granted, for the reason that is noted, and what is refused is not.
func TestPolicyFits(t *testing.T) {
	snap, err := workload.Snapshot(workload.Config{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := state.New("c")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	engine := replay.New(replay.Config{})
	outcomes := map[verdict.Outcome]int{}
	const n = 30_000
	for _, e := range lines(t, 3, n) {
		v := engine.Replay(e, s)
		outcomes[v.Outcome]++
		if len(v.Identity) > 0 {
			t.Fatalf("%s: %v %v", e.AuditID, v.Identity, v.Evidence)
		}
		if reason, _ := e.Annotations.Get(event.AnnotationReason); v.Outcome == verdict.OutcomeDrift && v.Class != "unexplained" &&
			!bytes.Contains([]byte(reason), []byte("temporary")) {
			t.Errorf("%s by %s: %s, %s", e.RequestURI, e.User.Username, v.Class, v.Cause)
		}
	}
	if outcomes[verdict.OutcomeMatch] < n*90/100 || outcomes[verdict.OutcomeDrift] > n/1000 {
		t.Fatalf("outcomes %v", outcomes)
	}
}
