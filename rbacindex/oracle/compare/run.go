package compare

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/retrial-io/retrial/rbacindex"
)

// Config says what to run.
type Config struct {
	// Comparisons is the number of questions put to both sides.
	Comparisons uint64
	// Seed chooses them.
	Seed uint64
	// Workers is the number of goroutines; 0 is one for each processor.
	Workers int
	// Ours is what is held against the real code; the zero value is the index.
	Ours Ours
	// Progress is told now and then how many comparisons were made, by any goroutine. It may
	// be nil.
	Progress func(done uint64)
	// Observe sees questions both sides agree about, with the policy and how it came about,
	// which it must not keep. It is called by any goroutine and may be nil.
	Observe func(p *Policy, writes []rbacindex.Change, q *Question)
}

// Result says what came of a run.
type Result struct {
	// Comparisons were made; fewer than asked for when there was a disagreement.
	Comparisons uint64
	// Asked counts them by kind.
	Asked map[Asked]uint64
	// Yes counts those whose answer is yes: allowed, covered, let through, or some rules.
	Yes map[Asked]uint64
	// Disagreement is nil if there was none. A run ends with the first.
	Disagreement *Disagreement
}

// lotSize is the number of questions about one policy and what becomes of it.
const lotSize = 1000

// Run puts questions to both sides until they disagree.
func Run(cfg Config) Result {
	if cfg.Ours.Authorize == nil {
		cfg.Ours = Index()
	}
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	r := &runner{cfg: cfg, res: Result{Asked: map[Asked]uint64{}, Yes: map[Asked]uint64{}}}
	var wg sync.WaitGroup
	for range cfg.Workers {
		wg.Go(r.work)
	}
	wg.Wait()
	r.res.Comparisons = r.done.Load()
	return r.res
}

type runner struct {
	cfg     Config
	next    atomic.Uint64 // lot
	done    atomic.Uint64
	stopped atomic.Bool
	mu      sync.Mutex // guards res
	res     Result
}

func (r *runner) work() {
	c := &checker{ours: r.cfg.Ours}
	for !r.stopped.Load() {
		n := r.next.Add(1) - 1
		if n*lotSize >= r.cfg.Comparisons {
			return
		}
		l := &lot{generator: newGenerator(r.cfg.Seed, n), checker: c, observe: r.cfg.Observe, asked: map[Asked]uint64{},
			answered: map[Asked]uint64{}}
		found, text := l.run(int(min(lotSize, r.cfg.Comparisons-n*lotSize)))
		total := uint64(0)
		r.mu.Lock()
		for kind, n := range l.asked {
			total += n
			r.res.Asked[kind] += n
			r.res.Yes[kind] += l.answered[kind]
		}
		if found != nil && r.res.Disagreement == nil {
			r.stopped.Store(true)
			r.res.Disagreement = reduce(r.cfg.Ours, *found, text)
		}
		r.mu.Unlock()
		if done := r.done.Add(total); r.cfg.Progress != nil {
			r.cfg.Progress(done)
		}
	}
}

// lot is one policy and what becomes of it.
type lot struct {
	generator
	*checker
	observe         func(*Policy, []rbacindex.Change, *Question)
	asked, answered map[Asked]uint64 // answered with yes

	policy *Policy
	real   *Real
	writes []rbacindex.Change
	now    *rbacindex.Snapshot
	before *version // of a while ago: it goes on giving its answers
}

// version is a snapshot with the policy it is of.
type version struct {
	s      *rbacindex.Snapshot
	real   *Real
	writes []rbacindex.Change
}

// run asks n questions. It returns the case the sides disagree about and how, or nil.
func (l *lot) run(n int) (*Case, string) {
	l.writes = l.generator.policy()
	l.policy = NewPolicy(l.writes...)
	l.real = NewReal(l.policy)
	var err error
	if l.one(2) {
		l.now, err = rbacindex.New(l.policy.Objects()...)
	} else {
		l.now, err = rbacindex.Empty().Apply(l.writes...)
	}
	if err != nil {
		return &Case{Writes: l.writes}, err.Error()
	}
	for step := 0; n > 0; step++ {
		if step > 0 {
			if err := l.change(); err != nil {
				return &Case{Writes: l.writes, Applied: true}, err.Error()
			}
		}
		versions := []*rbacindex.Snapshot{l.now}
		if step%12 == 11 { // built anew, it must be the same
			s, err := rbacindex.New(l.policy.Objects()...)
			if err != nil {
				return &Case{Writes: l.writes}, err.Error()
			}
			versions = append(versions, s)
		}
		for range min(n, 16+l.IntN(24)) {
			n--
			q := l.question(l.policy)
			l.asked[q.Asked]++
			l.yes = false
			if l.before != nil && l.one(8) {
				if text := l.check(l.before.s, l.before.real, q); text != "" {
					return &Case{Writes: l.before.writes, Applied: true, Question: *q}, text
				}
				l.count(q)
				continue
			}
			for _, s := range versions {
				if text := l.check(s, l.real, q); text != "" {
					return &Case{Writes: l.writes, Applied: s == l.now, Question: *q}, text
				}
			}
			l.count(q)
			if l.observe != nil {
				l.observe(l.policy, l.writes, q)
			}
		}
	}
	return nil, ""
}

func (l *lot) count(q *Question) {
	if l.yes {
		l.answered[q.Asked]++
	}
}

// change makes the next version by Apply.
func (l *lot) change() error {
	if l.one(5) {
		l.before = &version{s: l.now, real: NewReal(l.policy.Clone()), writes: l.writes}
	}
	writes := l.generator.writes(l.policy)
	next, err := l.now.Apply(writes...)
	if err != nil {
		return err
	}
	l.now = next
	l.policy.Apply(writes...)
	l.writes = append(l.writes[:len(l.writes):len(l.writes)], writes...)
	return nil
}
