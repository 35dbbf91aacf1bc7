package node

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// Config says what to run.
type Config struct {
	// Requests is how many are put to both sides, half of them twice: at once, and in
	// hindsight, when much has changed since.
	Requests uint64
	Seed     uint64 // chooses them
	Ours     Ours
	// Workers is the number of goroutines; 0 is one for each processor.
	Workers int
}

// Result says what came of a run.
type Result struct {
	Requests, Allowed uint64
	Writes            uint64
	Reasons           map[string]uint64 // by reason, node names cut out
	// Disagreement is empty if there was none; a run ends with the first.
	Disagreement string
}

// clusterSize is the number of requests put to one cluster while it changes.
const clusterSize = 2500

// Run puts requests to both sides until they disagree.
func Run(cfg Config) Result {
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	res := Result{Reasons: map[string]uint64{}}
	var (
		next    atomic.Uint64
		stopped atomic.Bool
		mu      sync.Mutex
		wg      sync.WaitGroup
	)
	for range cfg.Workers {
		wg.Go(func() {
			for !stopped.Load() {
				n := next.Add(1) - 1
				if n*clusterSize >= cfg.Requests {
					return
				}
				c := newCluster(cfg.Seed, n, cfg.Ours)
				disagreement := c.run(int(min(clusterSize, cfg.Requests-n*clusterSize)))
				mu.Lock()
				res.Requests += c.res.Requests
				res.Allowed += c.res.Allowed
				res.Writes += c.res.Writes
				for k, v := range c.res.Reasons {
					res.Reasons[k] += v
				}
				if disagreement != "" && res.Disagreement == "" {
					res.Disagreement = fmt.Sprintf("seed %d cluster %d: %s", cfg.Seed, n, disagreement)
					stopped.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return res
}

// asked is a request with the real answer to it.
type asked struct {
	at       int64
	username string
	groups   []string
	a        verdict.Attributes
	allowed  bool
	reason   string
}

func (q *asked) String() string {
	return fmt.Sprintf("%s %v at %d: %s %+v", q.username, q.groups, q.at, q.a.Verb, q.a)
}

// cluster is one generated cluster, on both sides.
type cluster struct {
	generator
	real    *Real
	replica *replica
	past    []asked
	log     []string // writes, for the report
	res     Result
}

func newCluster(seed, n uint64, ours Ours) *cluster {
	c := &cluster{generator: newGenerator(seed, n), real: NewReal(), replica: newReplica(ours), res: Result{Reasons: map[string]uint64{}}}
	c.plausible = ours.State
	return c
}

// run makes changes and n requests in turn; it returns how the sides disagree, or "".
func (c *cluster) run(n int) string {
	for range c.begin {
		if err := c.step(); err != "" {
			return err
		}
	}
	hindsight := n / 3
	for asked := 0; asked < n-hindsight; {
		if err := c.step(); err != "" {
			return err
		}
		for range min(n-hindsight-asked, 1+c.IntN(24)) {
			asked++
			if err := c.ask(); err != "" {
				return err
			}
		}
	}
	return c.lookBack(hindsight)
}

// step makes one write on both sides.
func (c *cluster) step() string {
	before, after := c.change()
	if before == nil && after == nil {
		return ""
	}
	c.now++
	c.res.Writes++
	c.real.Write(before, after)
	shown := after
	if after == nil {
		shown = before
	}
	o, uid := objectOf(shown)
	what := "updated"
	switch {
	case before == nil:
		what = "created"
	case after == nil:
		what = "deleted"
	}
	c.log = append(c.log, fmt.Sprintf("%d: kind %d %s/%s (%s) %s", c.now, o.Kind, o.Namespace, o.Name, uid, what))
	if err := c.replica.write(c.now, before, after); err != nil {
		return err.Error()
	}
	return ""
}

// ask puts one request to both sides.
func (c *cluster) ask() string {
	q := c.request()
	q.at = c.now
	var err error
	if q.allowed, q.reason, err = c.real.Authorize(q.username, q.groups, &q.a); err != nil {
		return fmt.Sprintf("%v: %v", &q, err)
	}
	c.past = append(c.past, q)
	if !q.allowed {
		c.res.Reasons[shape(&q)]++
	}
	return c.compare(&q, c.replica, q.at, "at once")
}

func (c *cluster) compare(q *asked, r *replica, at int64, when string) string {
	c.res.Requests++
	if q.allowed {
		c.res.Allowed++
	}
	allowed, reason, err := r.authorize(at, q.username, q.groups, &q.a)
	if err == nil && allowed == q.allowed && reason == q.reason {
		return ""
	}
	return fmt.Sprintf("%v: %s\nreal: allowed=%v reason=%q\nours: allowed=%v reason=%q err=%v\n%s", q, when, q.allowed, q.reason, allowed,
		reason, err,
		strings.Join(c.log, "\n"))
}

// lookBack asks again what was asked before, of a graph the facts came to in another order,
// with half of the past cut off in between.
func (c *cluster) lookBack(n int) string {
	if c.replica.state != nil {
		return c.lookBackAt(c.replica, n, c.now/2)
	}
	again := newReplica(c.replica.ours)
	keys := slices.SortedFunc(maps.Keys(c.replica.lives), func(a, b graph.Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	c.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, o := range keys {
		again.g.Set(o, c.replica.lives[o])
	}
	return c.lookBackAt(again, n, c.now/2)
}

// lookBackAt asks a replica n requests of the past, the second half of them only since a
// moment, when it has forgotten what was over by then.
func (c *cluster) lookBackAt(again *replica, n int, half int64) string {
	for i := range n {
		if i == n/2 {
			if again.state != nil {
				again.state.Prune(momentOf(half))
			} else {
				again.g.Prune(momentOf(half))
			}
			c.past = slices.DeleteFunc(c.past, func(q asked) bool { return q.at < half })
		}
		if len(c.past) == 0 {
			return ""
		}
		q := &c.past[c.IntN(len(c.past))]
		if err := c.compare(q, again, q.at, fmt.Sprintf("in hindsight from %d", c.now)); err != "" {
			return err
		}
	}
	return ""
}

// shape returns a reason without the names in it.
func shape(q *asked) string {
	s := strings.ReplaceAll(q.reason, "'"+strings.TrimPrefix(q.username, "system:node:")+"'", "'<n>'")
	if i := strings.Index(s, "cannot read '"); i >= 0 {
		return s[:i] + "cannot read '<o>', …"
	}
	if s == "" {
		return "(none)"
	}
	return s
}
