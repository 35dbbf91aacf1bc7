// Package workload makes the audit events of a busy cluster that does not exist, and its
// policy: what measurements of storage run on, and tests that need many different events.
// The same Config gives the same events, byte for byte, on every machine.
//
// The cluster: 120 nodes, 60 namespaces, 30 controllers of the control plane, 240 workloads
// with a service account of their own (1 to 12 pods each), 80 people, 12 deployers. What
// they do, as shares of requests:
//
//	31 %  kubelets          leases, pod and node status, events, token requests, config watches
//	20 %  control plane     leader election, garbage collection, endpoints, replica sets, …
//	36 %  workloads         leader election, operators on their objects, readers of configuration
//	 4 %  people            kubectl: reading mostly, logs, exec, some changes; 6 % of it refused
//	 3 %  deployers         apply, secrets, roles and bindings
//	 6 %  probes            /livez, /readyz, /metrics, discovery
//
// Who of a kind acts is drawn from a Zipf distribution (exponent 1.2 for people, 1.1 for the
// rest; nodes evenly), and so are a person's namespaces and the objects that are read.
// Arrivals are a Poisson process whose rate goes by a sine over the day (±40 %). Audit IDs,
// uids, token ids (renewed every 50 minutes) and name suffixes are random;
// resourceVersions grow by one to eight a write. Answers take a log-normal time by verb
// (medians 1 to 12 ms); watches (9 % of events, two stages each) end after 5 to 10 minutes.
// Events come out in the order in which their stages ended, as in a log.
//
// The policy of auditing is a careful one: no RequestReceived, no managedFields; Metadata,
// but Request for changes of workloads (pods, deployments, jobs, services) and
// RequestResponse for RBAC. 5 % of the events have a request body, 1 % also an answer.
//
// Refusals are 1 %: workloads that ask for what nobody granted, people, scanners without a
// user. One in a hundred of them is let through though nothing in the policy grants it: drift.
package workload

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// Config says which events are made. The zero value works.
type Config struct {
	// Seed of all choices.
	Seed uint64
	// Start is when the first request is received; zero: 2026-11-02T06:00:00Z, a Monday.
	Start time.Time
	// Rate is the mean of requests a second; 0: 250.
	Rate float64
}

// Generator makes events, one after the other; it is not safe for concurrent use.
type Generator struct {
	cfg  Config
	rng  *rand.Rand
	now  time.Time // of the request to come
	wait pending   // stages that have not ended
	turn int

	cluster
	revision uint64 // resourceVersion of the last write
}

// New returns a Generator whose first event is that of the first request.
func New(cfg Config) *Generator {
	if cfg.Start.IsZero() {
		cfg.Start = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	}
	if cfg.Rate <= 0 {
		cfg.Rate = 250
	}
	g := &Generator{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x9E3779B97F4A7C15)), now: cfg.Start.UTC().Truncate(time.Microsecond),
		revision: 81_204_377}
	g.populate()
	g.advance()
	return g
}

// Next returns the next event. It belongs to the caller; strings are shared with later ones.
func (g *Generator) Next() *event.Event {
	for len(g.wait) == 0 || g.now.Before(g.wait[0].event.StageTimestamp) {
		g.request()
		g.advance()
	}
	return heap.Pop(&g.wait).(ended).event
}

// advance moves the clock to the next arrival.
func (g *Generator) advance() {
	hour := float64(g.now.Hour()) + float64(g.now.Minute())/60
	rate := g.cfg.Rate * (1 + 0.4*math.Sin((hour-8)/24*2*math.Pi))
	g.now = g.now.Add(max(time.Duration(g.rng.ExpFloat64()/rate*1e6), 1) * time.Microsecond)
}

// push queues an event until its stage ends.
func (g *Generator) push(e *event.Event) {
	g.turn++
	heap.Push(&g.wait, ended{e, g.turn})
}

// ended is an event that comes out when its stage has ended.
type ended struct {
	event *event.Event
	turn  int
}

// pending is a heap of events by the end of their stages.
type pending []ended

func (p pending) Len() int      { return len(p) }
func (p pending) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(x any)   { *p = append(*p, x.(ended)) }

func (p pending) Less(i, j int) bool {
	if a, b := p[i].event.StageTimestamp, p[j].event.StageTimestamp; !a.Equal(b) {
		return a.Before(b)
	}
	return p[i].turn < p[j].turn
}

func (p *pending) Pop() any {
	last := (*p)[len(*p)-1]
	(*p)[len(*p)-1] = ended{}
	*p = (*p)[:len(*p)-1]
	return last
}

// uuid returns a random (version 4) UUID.
func (g *Generator) uuid() string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 36)
	hi, lo := g.rng.Uint64(), g.rng.Uint64()
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 2<<62
	for i, word := range [...]uint64{hi, lo} {
		for n := 60; n >= 0; n -= 4 {
			if i == 0 && (n == 28 || n == 12) || i == 1 && (n == 60 || n == 44) {
				b = append(b, '-')
			}
			b = append(b, digits[word>>n&15])
		}
	}
	return string(b)
}

// suffix returns random characters as Kubernetes generates names from.
func (g *Generator) suffix(n int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[g.rng.IntN(len(alphabet))]
	}
	return string(b)
}

func (g *Generator) hex(n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[g.rng.IntN(16)]
	}
	return string(b)
}

// takes draws how long an answer takes: log-normal around a median.
func (g *Generator) takes(median time.Duration) time.Duration {
	d := time.Duration(float64(median) * math.Exp(g.rng.NormFloat64()*0.7))
	return max(d.Truncate(time.Microsecond), 150*time.Microsecond)
}

// pick returns an index by weights.
func (g *Generator) pick(weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	x := g.rng.Float64() * sum
	for i, w := range weights {
		if x -= w; x < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// zipf draws from 0..n-1, small numbers most.
func (g *Generator) zipf(s float64, n int) int {
	return int(rand.NewZipf(g.rng, s, 2, uint64(n-1)).Uint64())
}
