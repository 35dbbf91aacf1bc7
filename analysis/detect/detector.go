package detect

import (
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
)

// Config says how far a detector goes.
type Config struct {
	// Lateness is how long after the end of a window requests of it are waited for, in event
	// time. Default: a minute.
	Lateness time.Duration
	// Since is the time from which on the history is whole, for first-seen rules. Zero: each
	// cluster's earliest request.
	Since time.Time
	// MaxPanes bounds the memory of each rule: groups and windows under way. Default: one
	// million. Beyond it new ones are dropped and counted.
	MaxPanes int
}

// Stats counts what a detector did.
type Stats struct {
	Requests int64
	// Hits are requests a rule's expression selected, by rule.
	Hits map[string]int64
	// Errors are expressions that failed on a request, by rule; the rule then does not hold
	// for it. FirstError is an example.
	Errors     map[string]int64
	FirstError map[string]string
	Late       int64 // requests of windows that were over
	Dropped    int64 // requests beyond MaxPanes
}

// Detector runs a set of rules over requests. It is not safe for concurrent use.
type Detector struct {
	cfg   Config
	set   *Set
	in    input
	rules map[string]*ruleState // by rule id
	start map[string]time.Time  // earliest request, by cluster
	stats Stats
	group []byte // scratch
}

// New returns a detector.
func New(set *Set, cfg Config) *Detector {
	if cfg.Lateness <= 0 {
		cfg.Lateness = time.Minute
	}
	if cfg.MaxPanes <= 0 {
		cfg.MaxPanes = 1_000_000
	}
	d := &Detector{
		cfg: cfg, set: set, rules: map[string]*ruleState{}, start: map[string]time.Time{},
		stats: Stats{Hits: map[string]int64{}, Errors: map[string]int64{}, FirstError: map[string]string{}},
	}
	for _, p := range set.rules {
		d.rules[p.rule.ID] = &ruleState{program: p, panes: map[paneKey]*pane{}, said: map[string]said{}}
	}
	return d
}

// Stats returns what was counted so far. The maps are the detector's own.
func (d *Detector) Stats() Stats { return d.stats }

// Observe takes one request: the event of its first judged stage and the verdict on it. Pass
// each request once; v may be nil when there is none. Both are only read, and not kept.
func (d *Detector) Observe(cluster string, e *event.Event, v *replay.Verdict) {
	d.stats.Requests++
	d.in.reset(cluster, e, v)
	if t, ok := d.start[cluster]; !ok || e.RequestReceivedTimestamp.Before(t) {
		d.start[strings.Clone(cluster)] = e.RequestReceivedTimestamp
	}
	for _, p := range d.set.any {
		d.apply(p)
	}
	if a := d.in.attrs; a.ResourceRequest {
		for _, p := range d.set.byRes[resourceKey{a.APIGroup, a.Resource, a.Subresource}] {
			d.apply(p)
		}
	}
}

func (d *Detector) apply(p *program) {
	in := &d.in
	if !p.matches(in) {
		return
	}
	if p.expr != nil {
		ok, err := p.expr.bool(in)
		if err != nil {
			d.failed(p, err)
			return
		}
		if !ok {
			return
		}
	}
	d.stats.Hits[p.rule.ID]++
	d.group = d.group[:0]
	for i, g := range p.group {
		s, err := g.string(in)
		if err != nil {
			d.failed(p, err)
			return
		}
		if i > 0 {
			d.group = append(d.group, 0)
		}
		d.group = append(d.group, s...)
	}
	d.enter(d.rules[p.rule.ID])
}

func (d *Detector) failed(p *program, err error) {
	d.stats.Errors[p.rule.ID]++
	if d.stats.FirstError[p.rule.ID] == "" {
		d.stats.FirstError[p.rule.ID] = err.Error()
	}
}

// ruleState is what is remembered for a rule.
type ruleState struct {
	*program
	panes map[paneKey]*pane
	said  map[string]said // findings handed out, by id
	until time.Time       // the last watermark
}

// said remembers a finding handed out, until its panes are forgotten.
type said struct {
	count   int64
	expires time.Time
}

// paneKey tells panes apart. A pane is the part of a window between two starts of windows;
// start is in nanoseconds since 1970, 0 for first-seen rules, which have one pane a key.
type paneKey struct {
	cluster, group string
	start          int64
}

// pane counts requests of one group. It is the same whatever the order they came in.
type pane struct {
	tally
	evidence []Evidence // the earliest, sorted
	counts   []tally
}

type tally struct {
	n           int64
	first, last time.Time
	distinct    map[uint64]struct{}
}

// see notes that something happened at t.
func (c *tally) see(t time.Time) {
	if c.n == 0 || t.Before(c.first) {
		c.first = t
	}
	if c.n == 0 || t.After(c.last) {
		c.last = t
	}
	c.n++
}

// add joins what two panes saw; distinct values are not joined.
func (c *tally) add(o *tally) {
	if o.n == 0 {
		return
	}
	if c.n == 0 || o.first.Before(c.first) {
		c.first = o.first
	}
	if c.n == 0 || o.last.After(c.last) {
		c.last = o.last
	}
	c.n += o.n
}

// maxDistinct bounds the values a pane remembers; thresholds stay below it.
const maxDistinct = 4096

// enter counts the request at hand in its pane.
func (d *Detector) enter(s *ruleState) {
	t := d.in.event.RequestReceivedTimestamp
	key := int64(0)
	if s.rule.Kind != KindFirstSeen {
		key = floor(nanos(t), int64(s.rule.Window.Every))
		if !s.until.IsZero() && s.forgets(key, d.cfg.Lateness).Compare(s.until) <= 0 {
			d.stats.Late++
			return
		}
	}
	p := s.panes[paneKey{d.in.cluster, string(d.group), key}]
	if p == nil {
		if len(s.panes) >= d.cfg.MaxPanes {
			d.stats.Dropped++
			return
		}
		p = &pane{counts: make([]tally, len(s.counts))}
		s.panes[paneKey{strings.Clone(d.in.cluster), string(d.group), key}] = p
	}
	p.see(t)
	shown := true
	for i, c := range s.counts {
		if c.where != nil {
			ok, err := c.where.bool(&d.in)
			if err != nil {
				d.failed(s.program, err)
			}
			if !ok || err != nil {
				// The first threshold says what the rule is about, so that is what it shows.
				shown = shown && i > 0
				continue
			}
		}
		p.counts[i].see(t)
		if c.distinct == nil {
			continue
		}
		v, err := c.distinct.string(&d.in)
		if err != nil {
			d.failed(s.program, err)
			continue
		}
		if p.counts[i].distinct == nil {
			p.counts[i].distinct = map[uint64]struct{}{}
		}
		if set := p.counts[i].distinct; len(set) < maxDistinct {
			set[xxhash.Sum64String(v)] = struct{}{}
		}
	}
	if shown && (len(p.evidence) < maxEvidence || !t.After(p.evidence[maxEvidence-1].Time)) {
		p.evidence = earliest(append(p.evidence, d.in.evidence()))
	}
}

// earliest sorts evidence and keeps what a finding names.
func earliest(e []Evidence) []Evidence {
	slices.SortFunc(e, compareEvidence)
	return e[:min(len(e), maxEvidence)]
}

// nanos returns a time in nanoseconds since 1970, held within what they can say with room
// for windows around it: timestamps of a log need not be true.
func nanos(t time.Time) int64 {
	const least, most = -8_000_000_000, 8_000_000_000 // seconds: 1716 to 2223
	switch sec := t.Unix(); {
	case sec < least:
		return least * int64(time.Second)
	case sec > most:
		return most * int64(time.Second)
	}
	return t.UnixNano()
}

// floor rounds down to a multiple of step, below zero too.
func floor(v, step int64) int64 {
	m := v % step
	if m < 0 {
		m += step
	}
	return v - m
}

// Take returns the findings that are new, or know more, now that no request before the
// watermark is expected any more, save those Config.Lateness allows for: of event rules at
// once, of the others when their window is over. It forgets what no later finding needs.
// The watermark is event time and never moves back. The order is deterministic.
func (d *Detector) Take(watermark time.Time) []Finding {
	var out []Finding
	for _, p := range d.set.rules {
		out = append(out, d.take(d.rules[p.rule.ID], watermark, false)...)
	}
	order(out)
	return out
}

// Flush returns what is left, as if all windows were over: the end of a log.
func (d *Detector) Flush() []Finding {
	var out []Finding
	for _, p := range d.set.rules {
		out = append(out, d.take(d.rules[p.rule.ID], time.Time{}, true)...)
	}
	order(out)
	return out
}

func (d *Detector) take(s *ruleState, watermark time.Time, all bool) []Finding {
	groups := map[paneKey][]int64{} // start 0 → starts of its panes
	for k := range s.panes {
		g := paneKey{cluster: k.cluster, group: k.group}
		groups[g] = append(groups[g], k.start)
	}
	var out []Finding
	for g, starts := range groups {
		slices.Sort(starts)
		if s.rule.Kind == KindFirstSeen {
			out = append(out, d.firstSeen(s, g, watermark, all)...)
			continue
		}
		for _, w := range s.windows(g, starts) {
			over := time.Unix(0, w.bucket).Add(time.Duration(s.rule.Window.Fold+s.rule.Window.Length) + d.cfg.Lateness)
			ready := all || s.rule.Kind == KindEvent || w.end.Add(d.cfg.Lateness).Compare(watermark) <= 0
			if !ready || !s.until.IsZero() && over.Compare(s.until) <= 0 {
				continue
			}
			f := s.finding(g, w)
			if s.said[f.ID].count == f.Count {
				continue
			}
			s.said[f.ID] = said{f.Count, over.Add(2 * time.Duration(s.rule.Window.Length))}
			out = append(out, f)
		}
	}
	if all {
		return out
	}
	s.until = watermark
	for k := range s.panes {
		if s.rule.Kind != KindFirstSeen && s.forgets(k.start, d.cfg.Lateness).Compare(watermark) <= 0 {
			delete(s.panes, k)
		}
	}
	for id, v := range s.said {
		if s.rule.Kind != KindFirstSeen && v.expires.Compare(watermark) <= 0 {
			delete(s.said, id)
		}
	}
	return out
}

// forgets returns the watermark at which a pane is needed no more: its windows are over, and
// so are those that overlap them, which are silent where they tell nothing new.
func (s *ruleState) forgets(start int64, lateness time.Duration) time.Time {
	w := s.rule.Window
	return time.Unix(0, floor(start, int64(w.Fold))).Add(time.Duration(w.Fold+2*w.Length) + lateness)
}

// firing is what the windows of one group that begin between two multiples of the rule's
// fold found together.
type firing struct {
	bucket int64     // that multiple
	end    time.Time // of the earliest of these windows
	panes  []int64
}

// windows returns where the thresholds hold. Overlapping windows see a burst again and
// again: one that holds nothing its predecessor did not hold is silent.
func (s *ruleState) windows(g paneKey, starts []int64) []firing {
	length, every := int64(s.rule.Window.Length), int64(s.rule.Window.Every)
	var out []firing
	lastPane, fired := int64(0), false
	tried, last := int64(0), false
	for _, at := range starts {
		for w := at - length + every; w <= at; w += every {
			if last && w <= tried {
				continue
			}
			tried, last = w, true
			from, _ := slices.BinarySearch(starts, w)
			to, _ := slices.BinarySearch(starts, w+length)
			in := starts[from:to] // at least at
			newest := in[len(in)-1]
			if fired && newest <= lastPane || !s.holds(g, in) {
				continue
			}
			lastPane, fired = newest, true
			b := floor(w, int64(s.rule.Window.Fold))
			if n := len(out); n > 0 && out[n-1].bucket == b {
				out[n-1].panes = union(out[n-1].panes, in)
				continue
			}
			out = append(out, firing{b, time.Unix(0, w+length), slices.Clone(in)})
		}
	}
	return out
}

func union(a, b []int64) []int64 {
	a = append(a, b...)
	slices.Sort(a)
	return slices.Compact(a)
}

// holds says whether all thresholds hold over some panes together.
func (s *ruleState) holds(g paneKey, starts []int64) bool {
	var before tally
	for i, c := range s.counts {
		var sum tally
		var seen map[uint64]struct{}
		for _, at := range starts {
			t := s.panes[paneKey{g.cluster, g.group, at}].counts[i]
			sum.add(&t)
			if c.distinct == nil {
				continue
			}
			if seen == nil {
				seen = make(map[uint64]struct{}, len(t.distinct))
			}
			for v := range t.distinct {
				seen[v] = struct{}{}
			}
		}
		n := sum.n
		if c.distinct != nil {
			n = int64(len(seen))
		}
		if n < int64(c.atLeast) || c.after && !sum.last.After(before.first) {
			return false
		}
		before = sum
	}
	return true
}

func (s *ruleState) finding(g paneKey, w firing) Finding {
	var sum pane
	for _, at := range w.panes {
		p := s.panes[paneKey{g.cluster, g.group, at}]
		sum.add(&p.tally)
		sum.evidence = append(sum.evidence, p.evidence...)
	}
	sum.evidence = earliest(sum.evidence)
	return s.state(g, w.bucket, &sum)
}

// state makes a finding of a pane.
func (s *ruleState) state(g paneKey, window int64, p *pane) Finding {
	text := p.evidence[0].Text
	if p.n > 1 {
		text += " (" + plural(p.n) + ")"
	}
	return Finding{
		ID: identify(g.cluster, s.rule.ID, g.group, window), Rule: s.rule.ID, Title: s.rule.Title,
		Severity: s.rule.Severity, Attack: s.rule.Attack, Cluster: g.cluster, Subject: p.evidence[0].subject,
		First: p.first, Last: p.last, Count: p.n, Text: text, Evidence: slices.Clone(p.evidence),
	}
}

// firstSeen reports a key once its first request lies behind the time in which everything
// is new.
func (d *Detector) firstSeen(s *ruleState, g paneKey, watermark time.Time, all bool) []Finding {
	since := d.cfg.Since
	if since.IsZero() {
		since = d.start[g.cluster]
	}
	p := s.panes[g]
	id := identify(g.cluster, s.rule.ID, g.group, 0)
	if _, done := s.said[id]; done || p.first.Before(since.Add(time.Duration(s.rule.Baseline))) ||
		!all && p.first.Add(d.cfg.Lateness).After(watermark) {
		return nil
	}
	s.said[id] = said{count: p.n}
	return []Finding{s.state(g, 0, p)}
}
