// Package detect says what is odd in a stream of audit events and their verdicts. A rule is
// a YAML file with expressions in CEL; what it finds is a Finding.
//
//	rules/*.yaml ──Load──▶ Set ──New──▶ Detector ◀──Observe── (event, verdict), one a request
//	                        │               │
//	                        │               └──Flush──▶ []Finding          of a log
//	                        │
//	                        ├──NewTagger──▶ Tagger.Tag ──▶ marks, stored with the request
//	                        └──NewLive────▶ Live.Pass: marks that changed ─▶ Detector ─▶ findings,
//	                                        stored                         of what is stored
//
// There are three kinds of rules. An event rule judges one request; its hits on one subject
// fold into one finding an hour. A window rule counts the requests its expression selects
// in windows of event time. A first-seen rule reports a key that a cluster's history did
// not show before.
//
// A finding is a function of the requests in its window, not of their order, nor of when or
// how often they were looked at: its identifier is the hash of cluster, rule, group and
// window, and to save it again changes nothing.
//
// The package is pure: no I/O and no clock. All time is the events' own
// (requestReceivedTimestamp).
package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

// Config configures a Detector.
type Config struct {
	// Since is the time from which the history is complete, for first-seen rules. Zero: each
	// cluster's earliest request.
	Since time.Time
	// MaxPanes bounds the memory of each rule: groups and windows in progress. Default: one
	// million. Beyond it new ones are dropped and counted.
	MaxPanes int
	// First is how many first-seen keys of a day are findings of their own; see restOf. Default: 64 of
	// a user, 4,096 of a cluster.
	First verdict.FirstLimits
}

// Stats counts what a detector did.
type Stats struct {
	Requests int64
	// Hits counts requests that a rule's expression selected, by rule.
	Hits map[string]int64
	// Errors counts expressions that failed on a request, by rule; the rule then does not hold for
	// it. FirstError is an example.
	Errors     map[string]int64
	FirstError map[string]string
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

	rest []verdict.FirstRest // of the one day of a first-seen rule, where not all keys were observed
}

// New returns a detector.
func New(set *Set, cfg Config) *Detector {
	cfg.MaxPanes = cmp.Or(cfg.MaxPanes, 1_000_000)
	if cfg.First == (verdict.FirstLimits{}) {
		cfg.First = verdict.FirstLimits{User: 64, Cluster: 4096}
	}
	cfg.First.Examples = maxEvidence
	d := &Detector{
		cfg: cfg, set: set, rules: map[string]*ruleState{}, start: map[string]time.Time{},
		stats: Stats{Hits: map[string]int64{}, Errors: map[string]int64{}, FirstError: map[string]string{}},
	}
	for _, p := range set.rules {
		d.rules[p.rule.ID] = &ruleState{program: p, panes: map[paneKey]*pane{}}
	}
	return d
}

// Stats returns the counts so far. The maps are the detector's own.
func (d *Detector) Stats() Stats { return d.stats }

// Observe takes one request: the event of its first judged stage and the verdict on it. Pass
// each request once; v may be nil if there is none. Both are only read, and not kept.
func (d *Detector) Observe(cluster string, e *event.Event, v *verdict.Verdict) {
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
	in.unchecked = false
	if p.expr != nil {
		ok, err := p.expr.bool(in)
		if err != nil {
			d.failed(p, err)
		}
		if in.unchecked = tooCostly(err); !ok && !in.unchecked {
			return
		}
	}
	d.stats.Hits[p.rule.ID]++
	var err error
	if d.group, err = p.appendGroup(d.group[:0], in); err != nil {
		d.failed(p, err)
		return
	}
	d.enter(d.rules[p.rule.ID])
}

func (d *Detector) failed(p *program, err error) {
	d.stats.Errors[p.rule.ID]++
	if d.stats.FirstError[p.rule.ID] == "" {
		d.stats.FirstError[p.rule.ID] = err.Error()
	}
}

// ruleState is what is kept for a rule.
type ruleState struct {
	*program
	panes map[paneKey]*pane
}

// paneKey identifies a pane: the part of a window between two starts of windows. start is in
// nanoseconds since 1970, 0 for first-seen rules, which have one pane per key.
type paneKey struct {
	cluster, group string
	start          int64
}

// pane counts requests of one group. It does not depend on their order.
type pane struct {
	tally
	hour     int64      // first-seen rules: the hour the key was first seen in; only that hour counts
	evidence []Evidence // the earliest, sorted
	counts   []tally
}

type tally struct {
	n           int64
	first, last time.Time
	distinct    map[uint64]struct{}
}

// see records that something happened at t.
func (c *tally) see(t time.Time) { c.add(&tally{n: 1, first: t, last: t}) }

// add merges what two panes saw; distinct values are not merged.
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

// enter counts the current request in its pane.
func (d *Detector) enter(s *ruleState) {
	t := d.in.event.RequestReceivedTimestamp
	key, hour := int64(0), int64(0)
	if s.rule.Kind == KindFirstSeen {
		hour = floor(nanos(t), int64(firstFold))
	} else {
		key = floor(nanos(t), int64(s.rule.Window.Every))
	}
	p := s.panes[paneKey{d.in.cluster, string(d.group), key}]
	switch {
	case p == nil && len(s.panes) >= d.cfg.MaxPanes:
		d.stats.Dropped++
		return
	case p == nil:
		p = &pane{hour: hour, counts: make([]tally, len(s.counts))}
		s.panes[paneKey{strings.Clone(d.in.cluster), string(d.group), key}] = p
	case hour > p.hour:
		return
	case hour < p.hour:
		*p = pane{hour: hour}
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
				// The first threshold says what the rule is about, so its requests are shown.
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
		p.evidence = earliest(append(p.evidence, d.evidence(s.program)))
	}
}

// evidence returns the current request as a finding shows it. What cannot be shown is left out.
func (d *Detector) evidence(p *program) Evidence {
	words := func(e *expr) string {
		if e == nil {
			return ""
		}
		text, err := e.string(&d.in)
		if err != nil {
			d.failed(p, err)
		}
		return text
	}
	says := words(p.says)
	if slices.Contains(p.reads, "answerLost") && d.in.answerLost() {
		says = strings.TrimPrefix(says+"; its answer was lost, and it may have been done", "; ")
	}
	if slices.Contains(p.reads, "object") && d.in.cut() {
		says = strings.TrimPrefix(says+"; its event was too large and was recorded in part", "; ")
	}
	if d.in.unchecked {
		says = strings.TrimPrefix(says+"; it is too large to be checked", "; ")
	}
	return d.in.evidence(words(p.about), says)
}

// earliest sorts evidence and keeps what a finding lists.
func earliest(e []Evidence) []Evidence {
	slices.SortFunc(e, compareEvidence)
	return e[:min(len(e), maxEvidence)]
}

// nanos returns a time in nanoseconds since 1970, clamped to their range with room for windows
// around it: timestamps of a log may be false.
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

// Flush returns the findings of the requests observed so far; all windows are closed. The order is
// deterministic.
func (d *Detector) Flush() []Finding {
	var out []Finding
	for _, p := range d.set.rules {
		out = append(out, d.flush(d.rules[p.rule.ID])...)
	}
	order(out)
	return out
}

func (d *Detector) flush(s *ruleState) []Finding {
	if s.rule.Kind == KindFirstSeen {
		return d.firstSeen(s)
	}
	groups := map[paneKey][]int64{} // start 0 → starts of its panes
	for k := range s.panes {
		g := paneKey{cluster: k.cluster, group: k.group}
		groups[g] = append(groups[g], k.start)
	}
	var out []Finding
	for g, starts := range groups {
		slices.Sort(starts)
		for _, w := range s.windows(g, starts) {
			out = append(out, s.finding(g, w))
		}
	}
	return out
}

// firing is what the windows of one group that begin between two multiples of the rule's fold
// found.
type firing struct {
	bucket int64 // that multiple
	panes  []int64
}

// windows returns where the thresholds hold. Overlapping windows see a burst again and again: a
// window that holds nothing its predecessor did not hold is silent.
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
			out = append(out, firing{b, slices.Clone(in)})
		}
	}
	return out
}

func union(a, b []int64) []int64 {
	a = append(a, b...)
	slices.Sort(a)
	return slices.Compact(a)
}

// holds reports whether all thresholds hold over several panes together.
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
	return s.state(g, w.bucket, w.bucket, &sum)
}

// state turns a pane into a finding. What identifies its window is its start, except for first-seen
// rules, which find a key once.
func (s *ruleState) state(g paneKey, window, begin int64, p *pane) Finding {
	text := p.evidence[0].Text
	if p.n > 1 {
		text += " (" + plural(p.n) + ")"
	}
	return Finding{
		ID: identify(g.cluster, s.rule.ID, g.group, window), Rule: s.rule.ID, Title: s.rule.Title,
		Severity: s.rule.Severity, Attack: s.rule.Attack, Cluster: g.cluster, Subject: p.evidence[0].subject,
		Window: time.Unix(0, begin).UTC(), First: p.first, Last: p.last, Count: p.n, Text: text, Evidence: slices.Clone(p.evidence),
	}
}

// firstFold is the stretch of time in which the requests of a new key count.
const firstFold = time.Hour

// firstSeen reports the keys whose first request lies behind the time in which everything is new: of
// each day of a cluster the earliest by themselves, and the others together.
func (d *Detector) firstSeen(s *ruleState) (out []Finding) {
	days := map[paneKey][]firstKey{} // without a group, by begin of the day
	for g, p := range s.panes {
		since := d.cfg.Since
		if since.IsZero() {
			since = d.start[g.cluster]
		}
		if !p.first.Before(since.Add(time.Duration(s.rule.Baseline))) {
			at := paneKey{cluster: g.cluster, start: floor(nanos(p.first), int64(day))}
			days[at] = append(days[at], firstKey{g.group, xxhash.Sum64String(g.group), p.first, p.evidence[0].user})
		}
	}
	for at, keys := range days {
		told, rests := ranked(keys, d.cfg.First)
		for _, k := range told {
			g := paneKey{cluster: at.cluster, group: k.group}
			out = append(out, s.state(g, 0, s.panes[g].hour, s.panes[g]))
		}
		for of, rest := range rests {
			out = append(out, d.restFinding(s, at, of, rest))
		}
	}
	return out
}

// restFinding tells of keys of a day together: of all that were observed, unless examples of them alone were.
func (d *Detector) restFinding(s *ruleState, at paneKey, of restOf, keys []firstKey) Finding {
	var sum tally
	var shown []Evidence
	for i, k := range keys {
		p := s.panes[paneKey{cluster: at.cluster, group: k.group}]
		if sum.add(&p.tally); i < maxEvidence {
			shown = append(shown, p.evidence[0])
		}
	}
	rest := verdict.FirstRest{Keys: int64(len(keys)), Requests: sum.n, First: sum.first, Last: sum.last}
	if i := slices.IndexFunc(d.rest, func(r verdict.FirstRest) bool { return r.User == of.user && r.Everybody == of.everybody }); i >= 0 {
		rest = d.rest[i]
	}
	kind, subject, whose := "/other", short(of.user), "of its own"
	if of.everybody {
		kind, subject, whose = "/others", codec.Other, "of everybody"
	}
	return Finding{
		ID: identify(at.cluster, s.rule.ID+kind, of.user, at.start), Rule: s.rule.ID, Title: s.rule.Title,
		Severity: s.rule.Severity, Attack: s.rule.Attack, Cluster: at.cluster, Subject: subject, Window: time.Unix(0, at.start).UTC(),
		First: rest.First, Last: rest.Last, Count: rest.Requests, Keys: rest.Keys, Evidence: shown,
		Text: fmt.Sprintf("%s; the earliest of %s that are new on this day, beyond those %s that are told one by one (%s)",
			shown[0].Text, phrase.Count(rest.Keys, "key"), whose, plural(rest.Requests)),
	}
}
