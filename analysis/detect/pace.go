package detect

import (
	"context"
	"time"
)

const (
	// restFor is how much longer than it works the upkeep of findings rests: a fortieth of a
	// core goes into it, unless that would make findings late.
	restFor = 39
	// longestRest bounds the rest between two passes, and all rests within one.
	longestRest = 30 * time.Second
)

// Pace spreads the upkeep of findings over time. It counts the processor time work takes, not
// how long it took: a process that was stopped or starved has rested enough. It is not safe
// for concurrent use.
type Pace struct {
	cfg PaceConfig

	began time.Time
	cpu   time.Duration // used before the work began
	left  time.Duration // of the rests within the pass
}

// PaceConfig says what Pace measures and waits with; all but CPU is required.
type PaceConfig struct {
	// Every is the least time between two passes.
	Every time.Duration
	// Now is a clock that goes on while the process is stopped.
	Now func() time.Time
	// CPU is the processor time the process has used. Nil where the work is mostly another
	// process's: then the time it took counts.
	CPU func() time.Duration
	// Sleep waits, or returns the context's error.
	Sleep func(ctx context.Context, d time.Duration) error
}

// NewPace returns a pace whose work begins now.
func NewPace(cfg PaceConfig) *Pace {
	p := &Pace{cfg: cfg, left: longestRest}
	p.begin()
	return p
}

// Rest waits within a pass, after some of its work.
func (p *Pace) Rest(ctx context.Context) error {
	d := min(restFor*p.worked(), p.left)
	p.left -= d
	return p.sleep(ctx, d)
}

// Between waits after a pass, before the next.
func (p *Pace) Between(ctx context.Context) error {
	p.left = longestRest
	return p.sleep(ctx, max(p.cfg.Every, min(restFor*p.worked(), longestRest)))
}

func (p *Pace) sleep(ctx context.Context, d time.Duration) error {
	err := p.cfg.Sleep(ctx, d)
	p.begin()
	return err
}

func (p *Pace) begin() {
	p.began = p.cfg.Now()
	if p.cfg.CPU != nil {
		p.cpu = p.cfg.CPU()
	}
}

// worked is what the work since the last rest cost at most: others in the process use the
// processor meanwhile, so that neither measure is exact.
func (p *Pace) worked() time.Duration {
	took := p.cfg.Now().Sub(p.began)
	if p.cfg.CPU != nil {
		took = min(took, p.cfg.CPU()-p.cpu)
	}
	return max(took, 0)
}
