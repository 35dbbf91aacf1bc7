package detect

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// bench is a process with its own clock.
type bench struct {
	now time.Time
	cpu time.Duration
	// rested since the last check
	rested time.Duration
	stored []time.Duration // how long after it is waited for something is stored
}

// work takes so long, and so much of the processor.
func (b *bench) work(took, cpu time.Duration) {
	b.now = b.now.Add(took)
	b.cpu += cpu
}

func (b *bench) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	if early != nil && len(b.stored) > 0 {
		d, b.stored = min(d, b.stored[0]), b.stored[1:]
	}
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
		"a little":                 {time.Second, 200 * time.Millisecond, 99 * 200 * time.Millisecond, false},
		"stopped for a minute":     {time.Minute, 10 * time.Millisecond, 5 * time.Second, false},
		"5% of a core":             {20 * time.Second, time.Second, 30 * time.Second, false},
		"others beside it":         {time.Second / 4, 2 * time.Second, 99 * time.Second / 4, false},
		"much":                     {time.Minute, time.Minute, 30 * time.Second, false},
		"a clock that is set back": {-time.Hour, time.Second, 5 * time.Second, false},
		"work of a server":         {time.Second / 4, time.Millisecond, 99 * time.Second / 4, true},
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

// TestPaceChanged: urgent passes follow what is stored, and not each other; where nothing is, there are none.
func TestPaceChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		stored []time.Duration
		want   []time.Duration // since the pass
	}{
		"nothing":          {nil, nil},
		"soon":             {[]time.Duration{0, 0}, []time.Duration{2 * time.Second, 4 * time.Second}},
		"now and then":     {[]time.Duration{2 * time.Second, 7 * time.Second}, []time.Duration{4 * time.Second, 13 * time.Second}},
		"after the rest":   {[]time.Duration{time.Hour}, nil},
		"when it is over":  {[]time.Duration{28 * time.Second}, nil},
		"just before that": {[]time.Duration{28*time.Second - 1}, []time.Duration{30*time.Second - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{now: t0, stored: tc.stored}
			p := NewPace(PaceConfig{Every: 5 * time.Second, Now: func() time.Time { return b.now }, Sleep: b.sleep,
				Changed: make(chan struct{})})
			b.work(time.Second, time.Second)
			began := b.now
			var got []time.Duration
			if err := p.Between(t.Context(), func(context.Context) { got = append(got, b.now.Sub(began)) }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("urgent passes after %v, want %v", got, tc.want)
			}
			if rest := b.now.Sub(began); rest != longestRest {
				t.Errorf("rests for %s, want %s", rest, longestRest)
			}
		})
	}
}

// TestPaceShare: ordinary passes take a hundredth of a core.
func TestPaceShare(t *testing.T) {
	b := &bench{now: t0}
	p := b.pace(true)
	for range 100 {
		b.work(150*time.Millisecond, 100*time.Millisecond)
		if err := p.Rest(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.work(250*time.Millisecond, 200*time.Millisecond)
		if err := p.Between(t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
	}
	if share := float64(b.cpu) / float64(b.now.Sub(t0)); share > 1./100 || share < 1./105 {
		t.Errorf("passes take %.4f of a core", share)
	}
}
