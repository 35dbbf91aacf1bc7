package detect

import (
	"context"
	"errors"
	"testing"
	"time"
)

// bench is a process with its own clock.
type bench struct {
	now time.Time
	cpu time.Duration
	// rested since the last check
	rested time.Duration
}

// work takes so long, and so much of the processor.
func (b *bench) work(took, cpu time.Duration) {
	b.now = b.now.Add(took)
	b.cpu += cpu
}

func (b *bench) sleep(ctx context.Context, d time.Duration) error {
	b.now = b.now.Add(d)
	b.rested += d
	return ctx.Err()
}

func (b *bench) pace(counted bool) *Pace {
	c := PaceConfig{Every: 5 * time.Second, Now: func() time.Time { return b.now }, Sleep: b.sleep}
	if counted {
		c.CPU = func() time.Duration { return b.cpu }
	}
	return NewPace(c)
}

func nothing(context.Context) {}

// TestPace: the rest after a pass follows from what it cost, and never makes findings late.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		took, cpu, want time.Duration
		server          bool // the store is one
	}{
		"nothing to do":            {time.Millisecond, time.Millisecond, 5 * time.Second, false},
		"a little":                 {time.Second, 200 * time.Millisecond, 39 * 200 * time.Millisecond, false},
		"stopped for a minute":     {time.Minute, 10 * time.Millisecond, 5 * time.Second, false},
		"5% of a core":             {20 * time.Second, time.Second, 30 * time.Second, false},
		"others beside it":         {time.Second / 2, 2 * time.Second, 39 * time.Second / 2, false},
		"much":                     {time.Minute, time.Minute, 30 * time.Second, false},
		"a clock that is set back": {-time.Hour, time.Second, 5 * time.Second, false},
		"work of a server":         {time.Second / 2, time.Millisecond, 39 * time.Second / 2, true},
		"much work of a server":    {time.Minute, time.Millisecond, 30 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{now: t0}
			p := b.pace(!tc.server)
			b.work(tc.took, tc.cpu)
			urgent := 0
			err := p.Between(t.Context(), func(context.Context) {
				urgent++
				b.work(time.Second, time.Second) // is no part of the pass
			})
			if err != nil || b.rested != tc.want {
				t.Errorf("rests for %s, %v; want %s", b.rested, err, tc.want)
			}
			if want := int((tc.want - 1) / (5 * time.Second)); urgent != want {
				t.Errorf("%d urgent passes meanwhile, want %d", urgent, want)
			}
		})
	}
}

// TestPaceWithinPass: however many pieces a pass has, its rests together are bounded, what is left of
// them follows it, bounded too, and the next pass has its own.
func TestPaceWithinPass(t *testing.T) {
	b := &bench{now: t0}
	p := b.pace(true)
	for pass := range 3 {
		b.rested = 0
		for range 20 {
			b.work(time.Second, time.Second/4)
			if err := p.Rest(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if b.rested != longestWithin {
			t.Errorf("pass %d rests for %s in all, want %s", pass, b.rested, longestWithin)
		}
		if err := p.Between(t.Context(), nothing); err != nil || b.rested != longestWithin+longestRest {
			t.Errorf("pass %d: with the rest it owes it rests for %s, %v", pass, b.rested, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Rest(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPaceShare: ordinary passes take a fortieth of a core.
func TestPaceShare(t *testing.T) {
	b := &bench{now: t0}
	p := b.pace(true)
	for range 100 {
		b.work(300*time.Millisecond, 200*time.Millisecond)
		if err := p.Rest(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.work(500*time.Millisecond, 400*time.Millisecond)
		if err := p.Between(t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
	}
	if share := float64(b.cpu) / float64(b.now.Sub(t0)); share > 1./40 || share < 1./45 {
		t.Errorf("passes take %.4f of a core", share)
	}
}
