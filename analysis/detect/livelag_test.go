package detect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// slow is a store that takes its time to read marked requests, or fails to.
type slow struct {
	*storage.Store
	wait func() error
}

func (s slow) Marked(ctx context.Context, filters []verdict.MarkFilter, visit func(verdict.Row, []int) error) error {
	if err := s.wait(); err != nil {
		return err
	}
	return s.Store.Marked(ctx, filters, visit)
}

// TestLiveSaysHowFarBehind: AsOf stays at what has been processed, over passes that leave work to
// the next, fail, or rest, and advances once nothing older waits.
func TestLiveSaysHowFarBehind(t *testing.T) {
	h := newHistory(t, 3)
	s := storagetest.Open(t)
	ctx := t.Context()
	clock := t0.Add(100 * time.Hour)
	insert := func(name string, hours ...int) {
		t.Helper()
		var rows []verdict.Row
		for i, hour := range hours {
			r := h.request("prod", len(h.rows)+i)
			at := t0.Add(time.Duration(hour) * time.Hour)
			r.Event.RequestReceivedTimestamp, r.Event.StageTimestamp = at, at
			h.judge(&r)
			rows = append(rows, r)
		}
		h.rows = append(h.rows, rows...)
		if err := s.Insert(ctx, name, rows); err != nil {
			t.Fatal(err)
		}
	}
	var took time.Duration
	var fault error
	var asOf, resting time.Time
	since := clock.Add(-10 * time.Second)
	l, err := NewLive(h.set, slow{s, func() error { clock = clock.Add(took); return fault }}, LiveConfig{
		Now: func() time.Time { return clock }, Since: since,
		AsOf: func(at time.Time) { asOf = at },
		Rest: func(context.Context) error { resting = asOf; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(what string, want time.Time) {
		t.Helper()
		if _, err := l.Pass(ctx); !errors.Is(err, fault) {
			t.Fatal(what, err)
		}
		if !asOf.Equal(want) {
			t.Errorf("%s: worked out up to %s, want %s", what, asOf.Sub(since), want.Sub(since))
		}
	}
	// Three stretches too far apart to be processed together, each longer than a pass accepts.
	insert("three", 1, 15, 30)
	took = 40 * time.Second
	pass("the newest alone", since)
	for i := 0; asOf.Equal(since); i++ {
		if i == 5 {
			t.Fatal("work is never done")
		}
		took = 40 * time.Second
		clock = clock.Add(time.Second)
		began := clock
		if _, err := l.Pass(ctx); err != nil {
			t.Fatal(err)
		}
		if !asOf.Equal(since) && !asOf.Equal(began) {
			t.Errorf("all is worked out up to %s, its last pass began at %s", asOf.Sub(since), began.Sub(since))
		}
	}
	done := asOf

	took, fault = 0, errUnreliable
	insert("one", 2)
	clock = clock.Add(time.Minute)
	pass("a pass that fails", done)
	clock = clock.Add(time.Minute)
	pass("another", done)
	fault = nil
	clock = clock.Add(time.Minute)
	pass("one that does not", clock)

	before := clock
	insert("two", 3, 20)
	clock = clock.Add(time.Minute)
	pass("a pass that rests", clock)
	if !resting.Equal(before) {
		t.Errorf("while it rests, half done, it says %s, want %s", resting.Sub(since), before.Sub(since))
	}
	clock = clock.Add(time.Minute)
	pass("nothing to do", clock)

	insert("late", 40)
	clock = clock.Add(2 * reread)
	fault = errUnreliable
	pass("a pass that reads all and fails", clock.Add(-2*reread))
	fault = nil
	pass("one that reads all", clock)
}

// TestLiveWaitIsNoLag: what waits for time to pass is not behind.
func TestLiveWaitIsNoLag(t *testing.T) {
	h := newHistory(t, 4)
	s := storagetest.Open(t)
	clock := t0.Add(100 * time.Hour)
	var asOf time.Time
	l, err := NewLive(h.set, s, LiveConfig{Lateness: time.Minute, Now: func() time.Time { return clock }, AsOf: func(at time.Time) {
		asOf = at
	}})
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	for i := range 12 {
		if err := s.Insert(t.Context(), fmt.Sprint("block ", i), h.block()); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(20 * time.Second)
		p, err := l.Pass(t.Context())
		if err != nil || !asOf.Equal(clock) {
			t.Fatalf("pass %d: worked out up to %s before its begin, %v", i, clock.Sub(asOf), err)
		}
		waited = waited || p.Left > 0
	}
	if !waited {
		t.Error("nothing ever waited: nothing is shown")
	}
}

// TestUrgent: an urgent pass finds what is critical, leaves the rest to the next pass, and does not say that it was worked out.
func TestUrgent(t *testing.T) {
	h := newHistoryOf(t, 6, strings.Replace(liveRules, "severity: high", "severity: critical", 1))
	s := storagetest.Open(t)
	clock := t0.Add(100 * time.Hour)
	since := clock.Add(-time.Minute)
	asOf := since
	l, err := NewLive(h.set, s, LiveConfig{Now: func() time.Time { return clock }, Since: since, AsOf: func(at time.Time) { asOf = at },
		Rest: func(context.Context) error { return errUnreliable }})
	if err != nil {
		t.Fatal(err)
	}
	var rows []verdict.Row
	for n := range 60 {
		r := h.request("prod", n)
		h.judge(&r)
		rows = append(rows, r)
	}
	if err := s.Insert(t.Context(), "block", rows); err != nil {
		t.Fatal(err)
	}
	p, err := l.Urgent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p.Saved["critical"] == 0 || len(p.Saved) != 1 || p.Left == 0 || !asOf.Equal(since) {
		t.Errorf("an urgent pass: %+v, up to %s; want critical findings alone, and the rest left", p, asOf.Sub(since))
	}
	l.cfg.Rest = nil
	clock = clock.Add(time.Second)
	if p, err = l.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Saved["critical"] != 0 || len(p.Saved) == 0 || !asOf.Equal(clock) {
		t.Errorf("the pass after it: %+v, up to %s; want all others", p, asOf.Sub(since))
	}
}

// TestUrgentMeanwhile: what is critical and stored in the middle of a pass does not wait for its end.
func TestUrgentMeanwhile(t *testing.T) {
	h := newHistoryOf(t, 8, strings.Replace(liveRules, "severity: high", "severity: critical", 1))
	s := storagetest.Open(t)
	clock := t0.Add(100 * time.Hour)
	insert := func(name string, hours ...int) {
		t.Helper()
		var rows []verdict.Row
		for _, hour := range hours {
			for n := range 60 {
				r := h.request("prod", len(h.rows)+n)
				at := t0.Add(time.Duration(hour)*time.Hour + time.Duration(n)*time.Second)
				r.Event.RequestReceivedTimestamp, r.Event.StageTimestamp = at, at
				h.judge(&r)
				rows = append(rows, r)
			}
			h.rows = append(h.rows, rows...)
		}
		if err := s.Insert(t.Context(), name, rows); err != nil {
			t.Fatal(err)
		}
	}
	insert("before", 1, 15, 30)
	late := time.Duration(0)
	l, err := NewLive(h.set, s, LiveConfig{Now: func() time.Time { return clock }, Changes: s.Inserted, Rest: func(context.Context) error {
		clock = clock.Add(late)
		if late > 0 {
			late = 0
			insert("meanwhile", 45)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	late = soonest
	p, err := l.Pass(t.Context())
	if err != nil || p.Left == 0 {
		t.Fatalf("%+v, %v: want the rest of what came meanwhile left", p, err)
	}
	critical := 0
	for _, f := range found(t, s) {
		if f.Severity == urgentSeverity && !f.First.Before(t0.Add(45*time.Hour)) {
			critical++
		}
	}
	if critical == 0 {
		t.Error("what was stored in the middle of the pass waits for its end")
	}
}

// counted counts how often a store is read for what changed.
type counted struct {
	*storage.Store
	sums int
}

func (c *counted) MarkSums(ctx context.Context, clusters []string, since time.Time) ([]verdict.MarkSum, time.Time, error) {
	c.sums++
	return c.Store.MarkSums(ctx, clusters, since)
}

// TestLiveLeavesAnIdleStoreAlone: while nothing is stored, passes read the store only once a
// minute, and report that findings are up to date; what is stored is seen by the next pass.
func TestLiveLeavesAnIdleStoreAlone(t *testing.T) {
	h := newHistory(t, 5)
	s := &counted{Store: storagetest.Open(t)}
	clock := t0.Add(100 * time.Hour)
	var asOf time.Time
	l, err := NewLive(h.set, s, LiveConfig{Now: func() time.Time { return clock }, AsOf: func(at time.Time) { asOf = at },
		Changes: s.Inserted})
	if err != nil {
		t.Fatal(err)
	}
	pass := func() Pass {
		t.Helper()
		clock = clock.Add(5 * time.Second)
		p, err := l.Pass(t.Context())
		if err != nil || !asOf.Equal(clock) {
			t.Fatalf("worked out up to %s before the pass, %v", clock.Sub(asOf), err)
		}
		return p
	}
	for i := range 3 {
		var rows []verdict.Row
		for n := range 20 {
			rows = append(rows, h.request("prod", 20*i+n))
		}
		if err := s.Insert(t.Context(), fmt.Sprint("block ", i), rows); err != nil {
			t.Fatal(err)
		}
		before := s.sums
		if p := pass(); p.Spans == 0 || s.sums != before+1 {
			t.Errorf("of block %d a pass worked out %+v and read %d times", i, p, s.sums-before)
		}
	}
	before := s.sums
	for range 36 { // three minutes
		if p := pass(); p.Spans > 0 {
			t.Errorf("worked out %+v of nothing new", p)
		}
	}
	if n := s.sums - before; n != 3 {
		t.Errorf("the store was read %d times in three idle minutes, want 3", n)
	}
	clock = clock.Add(-time.Hour) // a clock that is set back
	before = s.sums
	if pass(); s.sums != before+1 {
		t.Error("nothing is read after the clock was set back")
	}
}
