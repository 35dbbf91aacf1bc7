package detect

import (
	"context"
	"time"
)

const (
	// restFor is how many times longer than it works the upkeep of findings rests: it takes a
	// hundredth of a core, unless that would make findings late.
	restFor = 99
	// longestRest bounds the rest between two passes, and what a pass leaves of its own for it.
	longestRest = 30 * time.Second
	// longestWithin bounds the sum of rests within a pass: nothing urgent is done meanwhile. What it
	// would rest longer is added to the rest after it.
	longestWithin = 2 * time.Second
	// soonest is the least time between two urgent passes that follow what was stored.
	soonest = 2 * time.Second
)

// Pace spreads the upkeep of findings over time. It counts the CPU time that work takes, not its
// elapsed time: a process that was stopped or starved has rested enough. It is not safe for
// concurrent use.
type Pace struct {
	cfg PaceConfig

	began time.Time
	cpu   time.Duration // used before the work began
	left  time.Duration // of the rests within the pass
	owed  time.Duration // of them, after the pass
}

// PaceConfig configures a Pace; all except CPU is required.
type PaceConfig struct {
	// Every is the least time between two passes.
	Every time.Duration
	// Now is a clock that keeps running while the process is stopped.
	Now func() time.Time
	// CPU returns the processor time that the process has used. Nil if another process does most of
	// the work: then elapsed time counts.
	CPU func() time.Duration
	// Sleep waits, or until something can be received from early, or returns the context's error.
	Sleep func(ctx context.Context, d time.Duration, early <-chan struct{}) error
	// Changed has an element when requests were stored since it was last taken: urgent passes follow them. Nil: they come every Every.
	Changed <-chan struct{}
}

// NewPace returns a Pace whose work begins now.
func NewPace(cfg PaceConfig) *Pace {
	p := &Pace{cfg: cfg, left: longestWithin}
	p.begin()
	return p
}

// Rest waits within a pass, after some of its work.
func (p *Pace) Rest(ctx context.Context) error {
	want := restFor * p.worked()
	d := min(want, p.left)
	p.left -= d
	p.owed = min(p.owed+want-d, longestRest)
	return p.sleep(ctx, d, nil)
}

// Between waits after a pass, before the next, and calls urgent meanwhile: once in Every, or, where it is known when something is stored,
// as soon as something is, and not twice in two seconds.
func (p *Pace) Between(ctx context.Context, urgent func(context.Context)) error {
	rest := max(p.cfg.Every, min(restFor*p.worked(), longestRest)+p.owed)
	for p.left, p.owed = longestWithin, 0; ; urgent(ctx) {
		d := min(rest, max(p.cfg.Every, time.Second))
		if p.cfg.Changed != nil {
			d = min(d, soonest)
		}
		err := p.sleep(ctx, d, nil)
		if rest -= d; err == nil && p.cfg.Changed != nil {
			began := p.cfg.Now()
			err = p.sleep(ctx, rest, p.cfg.Changed)
			rest -= max(p.cfg.Now().Sub(began), 0)
		}
		if err != nil || rest <= 0 {
			return err
		}
	}
}

func (p *Pace) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	err := p.cfg.Sleep(ctx, d, early)
	p.begin()
	return err
}

func (p *Pace) begin() {
	p.began = p.cfg.Now()
	if p.cfg.CPU != nil {
		p.cpu = p.cfg.CPU()
	}
}

// worked returns what the work since the last rest cost at most: other work in the process uses the
// processor meanwhile, so neither measure is exact.
func (p *Pace) worked() time.Duration {
	took := p.cfg.Now().Sub(p.began)
	if p.cfg.CPU != nil {
		took = min(took, p.cfg.CPU()-p.cpu)
	}
	return max(took, 0)
}
