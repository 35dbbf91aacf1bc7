package detect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Store is what Live reads and writes; *storage.Store implements it.
type Store interface {
	MarkStore
	// ClustersOf returns those of some clusters (nil: of all) that have events, with the range of their requests.
	ClustersOf(ctx context.Context, clusters []string) ([]queries.Cluster, error)
	// Earliest returns when a cluster's earliest judged request was received.
	Earliest(ctx context.Context, cluster string) (time.Time, error)
	// FindingsOf returns all findings of rules and spans of clusters; the newest SaveFindings of each stands.
	FindingsOf(ctx context.Context, clusters, rules []string, spans []time.Time) ([]verdict.StoredFinding, error)
	SaveFindings(ctx context.Context, list []verdict.StoredFinding) error
	SpansDone(ctx context.Context, clusters []string) ([]verdict.SpanDone, error)
	SaveSpansDone(ctx context.Context, list []verdict.SpanDone) error
}

// MarkStore is what Live reads of marks; storage.Store documents the answers.
type MarkStore interface {
	MarkedClusters(ctx context.Context, since time.Time) ([]string, error)
	MarkSums(ctx context.Context, clusters []string, since time.Time) (sums []verdict.MarkSum, next time.Time, err error)
	Marked(ctx context.Context, filters []verdict.MarkFilter, visit func(row verdict.Row, selected []int) error) error
	MarkedCount(ctx context.Context, f verdict.MarkFilter) (int64, error)
	PaneCounts(ctx context.Context, filters []verdict.MarkFilter, thresholds [][]verdict.Threshold) ([][]verdict.PaneCounts, error)
	FirstSeen(ctx context.Context, f verdict.MarkFilter, since time.Time, most verdict.FirstLimits) (verdict.FirstSeen, error)
}

// LiveConfig configures the upkeep of findings.
type LiveConfig struct {
	// Lateness is how far rules that count, or look for something new, stay behind a cluster's
	// newest request: a request may arrive that late without a finding being withdrawn. A cluster
	// that has been quiet for that long is processed to its end. 0: no wait.
	Lateness time.Duration
	// Now is the clock; required. Findings are functions of requests' own times: the clock only
	// paces the work, orders versions of a finding, and shows when a cluster is quiet.
	Now func() time.Time
	// Mine tells of which clusters findings are kept: the others are somebody else's, and nothing of them is
	// read but their names. Nil: of all.
	Mine func(cluster string) bool
	// Changes counts what this process stored, if no other process writes to the store: while it
	// stays the same the store is read at most once a minute. Nil: each pass reads.
	Changes func() uint64
	// Longest bounds the work of a pass; the rest is left to the next one. Default 30 s.
	Longest time.Duration
	// Rest is called within a pass, after some of its work; nil: a pass does not rest.
	Rest func(ctx context.Context) error
	// Since is up to when, by Now, changes are known to have been processed; zero: the first pass
	// counts from its start.
	Since time.Time
	// AsOf is called with the time, by Now, up to which changes have been processed, whenever it
	// advances: before each rest, and at the end of a pass. What waits for time to pass (Lateness)
	// does not count. May be nil.
	AsOf func(at time.Time)
	// First is how many first-seen keys of a day are findings of their own; zero: as Config has it.
	First verdict.FirstLimits
	// Failed is called for expressions that failed on a stored request; may be nil.
	Failed func(rule, example string, n int64)
}

// Live keeps the findings of a store equal to what its marked requests give. Every finding belongs
// to a span, a stretch of request time: spans whose marks changed are computed again, whole, and
// the difference is stored. So it does not matter in what order requests arrive, how late, how
// often, or who else does the same work: the final findings follow from the requests that stand. It
// is not safe for concurrent use.
type Live struct {
	cfg   LiveConfig
	set   *Set
	store Store
	rules map[string]*liveRule

	loaded  bool
	since   time.Time                    // by the store's clock: sums that changed before are known
	full    time.Time                    // when all sums were last read
	sums    map[series]map[int64]slotSum // by start of the slot, in seconds
	done    map[span]int64               // digests processed
	pending map[span]time.Time           // to be processed, and the earliest time, by Now, since when
	loadAt  time.Time                    // when changes were last read, by Now
	asOf    time.Time                    // up to when changes have been processed, as reported last
	readAt  time.Time                    // when the store was last read, and the changes until then
	changes uint64
	known   []queries.Cluster    // as read then
	names   []string             // of the clusters that are Mine
	seen    map[span]time.Time   // of open spans: up to when they were processed
	quiet   map[string]quietness // by cluster
	begins  map[string]time.Time // earliest requests of clusters, this pass
	updated time.Time            // newest Updated assigned
	ready   []verdict.SpanDone   // done, not yet recorded in the store
}

type series struct{ cluster, rule string }

type span struct {
	series
	begin int64 // seconds since 1970
}

type slotSum struct{ count, digest int64 }

// quietness is since when the events of a cluster have not changed.
type quietness struct {
	cluster queries.Cluster
	since   time.Time
}

// liveRule is a rule and the layout of its spans.
type liveRule struct {
	*program
	single *Set // of the rule alone
	// unit is the length of a span, a multiple of the rule's fold; before and after are how far
	// outside of it requests count for its findings.
	unit, before, after time.Duration
	step                time.Duration // of the time up to which an open span is processed
	tier                tier
	salt                int64 // hash of the rule: a changed rule of the same id is computed anew
}

// tier groups rules whose requests are read together, so that many requests are not read with
// columns that few need.
type tier int

const (
	tierCounts tier = iota // many requests a rule, few columns of each
	tierEvents             // few requests, all columns except bodies
	tierBodies             // most of what there is to read, for few rules
	tiers
)

func newLiveRule(set *Set, p *program) *liveRule {
	w := p.rule.Window
	r := &liveRule{program: p, single: set.only(p.rule.ID), step: time.Minute}
	switch fold := time.Duration(w.Fold); p.rule.Kind {
	case KindFirstSeen:
		r.unit = day
	default:
		r.unit = fold * ((max(fold, time.Hour) + fold - 1) / fold)
	}
	if p.rule.Kind == KindWindow {
		r.before, r.after = time.Duration(w.Length-w.Every), time.Duration(w.Length-w.Every)
		r.step = time.Duration(w.Every)
	}
	text, err := json.Marshal(p.rule)
	if err == nil {
		r.salt = int64(xxhash.Sum64(text))
	}
	switch {
	case slices.ContainsFunc(p.reads, needsBodies):
		r.tier = tierBodies
	case p.rule.Kind == KindEvent:
		r.tier = tierEvents
	}
	return r
}

// needsBodies reports whether a variable is derived from bodies: options that name a dry run may be
// in one.
func needsBodies(variable string) bool {
	return variable == "dryRun" || slices.Contains(bodyVariables, variable)
}

// NewLive returns a Live for a store and a set of rules.
func NewLive(set *Set, store Store, cfg LiveConfig) (*Live, error) {
	if cfg.Now == nil {
		return nil, errors.New("detections: Now is required")
	}
	cfg.Longest = cmp.Or(cfg.Longest, 30*time.Second)
	if cfg.Failed == nil {
		cfg.Failed = func(string, string, int64) {}
	}
	if cfg.AsOf == nil {
		cfg.AsOf = func(time.Time) {}
	}
	l := &Live{cfg: cfg, set: set, store: store, rules: map[string]*liveRule{}, quiet: map[string]quietness{}, asOf: cfg.Since}
	for _, p := range set.rules {
		l.rules[p.rule.ID] = newLiveRule(set, p)
	}
	return l, nil
}

// Pass is what one pass did.
type Pass struct {
	Worked    time.Duration  // without rests
	Spans     int            // computed
	Saved     map[string]int // new or extended findings, by severity
	Withdrawn int
	Left      int // spans that changed and wait: for time to pass, or for the next pass
	// Dropped counts requests left out because there were too many groups in one span.
	Dropped int64
}

// reread is how often all sums are read, and not only those that changed by the store's clock:
// clocks are set back, and retention removes sums.
const reread = time.Hour

// newWithin is how long before a cluster's first marks are stored its requests have come in at most, or it is seen with the next reread.
const newWithin = 8 * day

// readAtLeast is how often the store is read even if nothing is reported to have changed.
const readAtLeast = time.Minute

// urgentSeverity is the severity of the findings that do not wait for the others' turn.
const urgentSeverity = "critical"

// Pass looks for marks that changed and updates the findings they may affect. After an error the
// next pass resumes where it stopped.
func (l *Live) Pass(ctx context.Context) (Pass, error) { return l.pass(ctx, false) }

// Urgent is a pass over the rules of critical severity alone, without rests. It is for the time
// between two passes: those rules select little, so it costs little.
func (l *Live) Urgent(ctx context.Context) (Pass, error) { return l.pass(ctx, true) }

// meanwhile is an urgent pass in the middle of one over all rules, if something was stored since the last and it was not just now.
func (l *Live) meanwhile(ctx context.Context, out *Pass) error {
	now := l.cfg.Now()
	if l.cfg.Changes == nil || l.cfg.Changes() == l.changes || now.Sub(l.readAt) < soonest || l.rereads(now) {
		return nil
	}
	p, err := l.pass(ctx, true)
	out.add(&p)
	return err
}

// add counts what another pass did.
func (p *Pass) add(o *Pass) {
	p.Worked += o.Worked
	p.Spans += o.Spans
	for severity, n := range o.Saved {
		p.Saved[severity] += n
	}
	p.Withdrawn += o.Withdrawn
	p.Dropped += o.Dropped
}

func (l *Live) pass(ctx context.Context, urgent bool) (Pass, error) {
	out := Pass{Saved: map[string]int{}}
	began := l.cfg.Now()
	if err := l.load(ctx, began); err != nil {
		return out, err
	}
	if l.begins == nil {
		l.begins = map[string]time.Time{}
		defer func() { l.begins = nil }()
	}
	first, others := l.due(l.horizons(began), urgent, &out)
	out.Worked = l.cfg.Now().Sub(began)
	critical := batches(first)
	for i, b := range slices.Concat(critical, batches(others)) {
		if out.Worked > l.cfg.Longest {
			break
		}
		if i > 0 && !urgent && l.cfg.Rest != nil {
			l.tell()
			if err := l.cfg.Rest(ctx); err != nil {
				return out, err
			}
		}
		if i >= len(critical) && i > 0 {
			if err := l.meanwhile(ctx, &out); err != nil {
				return out, err
			}
		}
		began = l.cfg.Now()
		err := b.run(ctx)
		out.Worked += l.cfg.Now().Sub(began)
		if err != nil {
			s := b[0].span
			return out, fmt.Errorf("update %d spans such as %s of cluster %q at %s: %w", len(b), s.rule, s.cluster,
				time.Unix(s.begin, 0).UTC().Format(time.RFC3339), err)
		}
	}
	out.Left = len(l.pending)
	l.tell()
	return out, l.note(ctx, 1)
}

// due returns the spans that changed and need not wait, the newest first: those of urgent rules, and the others, unless the pass is urgent.
func (l *Live) due(horizons map[string]time.Time, urgent bool, out *Pass) (first, others []*spanWork) {
	order := slices.SortedFunc(maps.Keys(l.pending), func(a, b span) int {
		// The newest matters most; first-seen rules reach the same result in either order.
		return cmp.Or(cmp.Compare(b.begin, a.begin), cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.rule, b.rule))
	})
	for _, s := range order {
		into := &others
		if l.rules[s.rule].rule.Severity == urgentSeverity {
			into = &first
		} else if urgent {
			continue
		}
		until, ok := horizons[s.cluster]
		if !ok {
			until = endless
		}
		if w := l.look(s, until, out); w != nil {
			*into = append(*into, w)
		}
	}
	return first, others
}

// tell reports up to when changes have been processed.
func (l *Live) tell() {
	at := l.loadAt
	for _, since := range l.pending {
		if since.Before(at) {
			at = since
		}
	}
	l.asOf = at
	l.cfg.AsOf(at)
}

// load reads what changed since the last pass, and from time to time everything.
func (l *Live) load(ctx context.Context, now time.Time) error {
	changes := uint64(0)
	if l.cfg.Changes != nil {
		changes = l.cfg.Changes()
		if quiet := now.Sub(l.readAt); l.loaded && changes == l.changes && quiet >= 0 && quiet < readAtLeast {
			l.loadAt = now
			return nil
		}
	}
	again := l.rereads(now)
	clusters, err := l.mine(ctx, now, again)
	if err != nil {
		return err
	}
	since := l.loadAt // the earliest time at which what changed may have changed
	if again {
		l.loaded, l.since, l.full, since = false, time.Time{}, now, l.asOf
		l.sums, l.pending, l.seen, l.done = map[series]map[int64]slotSum{}, map[span]time.Time{}, map[span]time.Time{}, map[span]int64{}
		done, err := l.store.SpansDone(ctx, clusters)
		if err != nil {
			return err
		}
		for _, d := range done {
			l.done[span{series{d.Cluster, d.Rule}, d.Span.Unix()}] = d.Digest
			l.updated = later(l.updated, d.Updated)
		}
	}
	if since.IsZero() {
		since = now
	}
	sums, next, err := l.store.MarkSums(ctx, clusters, l.since)
	if err != nil {
		return err
	}
	for _, m := range sums {
		r, ok := l.rules[m.Rule]
		if !ok {
			continue // the rule no longer exists: its findings stand
		}
		s, at, now := series{m.Cluster, m.Rule}, m.Slot.Unix(), slotSum{m.Count, m.Digest}
		if l.sums[s] == nil {
			l.sums[s] = map[int64]slotSum{}
		}
		if was, ok := l.sums[s][at]; ok && was == now {
			continue
		}
		l.sums[s][at] = now
		l.touch(s, r, m.Slot, since)
	}
	if l.known, err = l.store.ClustersOf(ctx, clusters); err != nil {
		return err
	}
	l.loaded, l.loadAt, l.readAt, l.changes = true, now, now, changes
	l.since = later(l.since, next)
	return nil
}

// rereads reports whether it is time to read everything.
func (l *Live) rereads(now time.Time) bool {
	return !l.loaded || now.Sub(l.full) >= reread || now.Before(l.full)
}

// mine returns the clusters whose findings are kept, nil for all. Those that are not known yet are looked for, among all if it says so.
func (l *Live) mine(ctx context.Context, now time.Time, all bool) ([]string, error) {
	if l.cfg.Mine == nil {
		return nil, nil
	}
	since := now.Add(-newWithin)
	if all {
		since, l.names = time.Time{}, nil
	}
	names, err := l.store.MarkedClusters(ctx, since)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !l.cfg.Mine(name) })
	l.names = append(l.names, names...)
	slices.Sort(l.names)
	l.names = slices.Compact(l.names)
	if l.names == nil {
		return []string{}, nil // none is not all
	}
	return l.names, nil
}

// touch records the spans that a slot's requests may count in, and since when they may have
// changed.
func (l *Live) touch(s series, r *liveRule, slot, since time.Time) {
	note := func(at int64) {
		if _, ok := l.pending[span{s, at}]; !ok {
			l.pending[span{s, at}] = since
		}
	}
	if r.rule.Kind == KindFirstSeen {
		// What is new on any later day may no longer be.
		for at := range l.sums[s] {
			if at >= slot.Unix() {
				note(at)
			}
		}
		return
	}
	unit := int64(r.unit / time.Second)
	from := floor(slot.Add(-r.after).Unix(), unit)
	for at := from; at < slot.Add(verdict.MarkSlot+r.before).Unix(); at += unit {
		note(at)
	}
}

// digest sums the slots that a span's findings may depend on.
func (l *Live) digest(s span, r *liveRule) slotSum {
	sum := slotSum{digest: r.salt}
	add := func(at int64) {
		v := l.sums[s.series][at]
		sum.count += v.count
		sum.digest += v.digest
	}
	if r.rule.Kind == KindFirstSeen {
		for at := range l.sums[s.series] {
			if at <= s.begin {
				add(at)
			}
		}
		return sum
	}
	slot := int64(verdict.MarkSlot / time.Second)
	to := s.begin + int64((r.unit+r.after)/time.Second)
	for at := floor(s.begin-int64(r.before/time.Second), slot); at < to; at += slot {
		add(at)
	}
	return sum
}

// endless is after every request in any store.
var endless = time.Unix(1<<33, 0).UTC() //nolint:gochecknoglobals // a constant

// horizons are up to when counting rules process each cluster.
func (l *Live) horizons(now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for _, c := range l.known {
		q, ok := l.quiet[c.Name]
		if !ok || q.cluster != c || now.Before(q.since) {
			q = quietness{c, now}
			l.quiet[c.Name] = q
		}
		out[c.Name] = c.Last.Add(-l.cfg.Lateness)
		if now.Sub(q.since) >= l.cfg.Lateness {
			out[c.Name] = endless
		}
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
