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

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// Store is what Live asks and keeps; *storage.Store is one.
type Store interface {
	MarkStore
	// Clusters are those there are events of, with the range of their requests.
	Clusters(ctx context.Context) ([]storage.Cluster, error)
	// Earliest is when a cluster's earliest judged request was received.
	Earliest(ctx context.Context, cluster string) (time.Time, error)
	// FindingsOf are all findings of rules and spans; the newest SaveFindings of each stands.
	FindingsOf(ctx context.Context, cluster string, rules []string, spans []time.Time) ([]verdict.StoredFinding, error)
	SaveFindings(ctx context.Context, list []verdict.StoredFinding) error
	SpansDone(ctx context.Context) ([]verdict.SpanDone, error)
	SaveSpansDone(ctx context.Context, list []verdict.SpanDone) error
}

// MarkStore is what Live asks about marks; storage.Store says what each answers.
type MarkStore interface {
	MarkSums(ctx context.Context, since time.Time) (sums []verdict.MarkSum, next time.Time, err error)
	Marked(ctx context.Context, filters []verdict.MarkFilter, visit func(row verdict.Row, selected []int) error) error
	MarkedCount(ctx context.Context, f verdict.MarkFilter) (int64, error)
	PaneCounts(ctx context.Context, filters []verdict.MarkFilter, thresholds [][]verdict.Threshold) ([][]verdict.PaneCounts, error)
	FirstKeys(ctx context.Context, cluster, rule string, day time.Time) ([]uint64, error)
	FirstTimes(ctx context.Context, f verdict.MarkFilter, keys []uint64) ([]verdict.KeyTime, error)
}

// LiveConfig says how findings are kept up to date.
type LiveConfig struct {
	// Lateness is how far behind a cluster's newest request rules that count, or look for
	// something new, keep: requests may come so late without findings being taken back. A
	// cluster that has been quiet for as long is looked at to its end. 0: no wait.
	Lateness time.Duration
	// Now is the clock; required. Findings are functions of requests' own times: it paces,
	// orders versions of a finding, and tells when a cluster is quiet.
	Now func() time.Time
	// Changes counts what this process stored, when nobody else stores anything: while it stays
	// the same the store is read once a minute, no more. Nil: each pass reads.
	Changes func() uint64
	// Longest bounds the work of a pass; what is left over is the next one's. Default 30 s.
	Longest time.Duration
	// Rest is called within a pass, after some of its work; nil: a pass does not rest.
	Rest func(ctx context.Context) error
	// Since is up to when, by Now, changes are known to have been worked out; zero: the first
	// pass counts from its begin.
	Since time.Time
	// AsOf is told up to when, by Now, changes have been worked out, whenever that is known
	// anew: before each rest, and when a pass ends. What waits for time to pass (Lateness) does
	// not count. Nil: nobody.
	AsOf func(at time.Time)
	// Failed is told of expressions that failed on a stored request; nil: nobody.
	Failed func(rule, example string, n int64)
}

// Live keeps the findings of a store equal to what its marked requests give. Every finding
// belongs to a span, a stretch of request time: spans whose marks changed are worked out
// again, whole, and the difference is stored. So it does not matter in what order requests
// come, how late, how often, or who else is at the same work: what stands in the end follows
// from the requests that stand. It is not safe for concurrent use.
type Live struct {
	cfg   LiveConfig
	set   *Set
	store Store
	rules map[string]*liveRule

	loaded  bool
	since   time.Time                    // by the store's clock: sums that changed before are known
	full    time.Time                    // when all sums were read last
	sums    map[series]map[int64]slotSum // by begin of the slot, in seconds
	done    map[span]int64               // digests worked out
	pending map[span]time.Time           // to be looked at, and since when, by Now, at the earliest
	loadAt  time.Time                    // when changes were read last, by Now
	asOf    time.Time                    // up to when changes have been worked out, as told last
	readAt  time.Time                    // when the store was read last, and the changes until then
	changes uint64
	known   []storage.Cluster    // as read then
	seen    map[span]time.Time   // of open spans: up to when they were looked at
	quiet   map[string]quietness // by cluster
	begins  map[string]time.Time // earliest requests of clusters, this pass
	updated time.Time            // newest Updated given out
	ready   []verdict.SpanDone   // done, not noted in the store yet
}

type series struct{ cluster, rule string }

type span struct {
	series
	begin int64 // seconds since 1970
}

type slotSum struct{ count, digest int64 }

// quietness is since when a cluster's events are the same.
type quietness struct {
	cluster storage.Cluster
	since   time.Time
}

// liveRule is a rule and how its spans lie.
type liveRule struct {
	*program
	single *Set // of the rule alone
	// unit is the length of a span, a multiple of the rule's fold; before and after, how far
	// outside of it requests count for its findings.
	unit, before, after time.Duration
	step                time.Duration // of the time up to which an open span is looked at
	tier                tier
	salt                int64 // hash of the rule: another rule of the same id is worked out anew
}

// tier are rules whose requests are read together, so that many are not read with what few need.
type tier int

const (
	tierCounts tier = iota // many requests a rule, of which little is asked
	tierEvents             // few, of which all but bodies may be
	tierBodies             // most of what there is to read, and few rules look at them
	tiers
)

const day = 24 * time.Hour

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

// needsBodies tells whether a variable is worked out from bodies: options that name a dry run
// may be one.
func needsBodies(variable string) bool {
	return variable == "dryRun" || slices.Contains(bodyVariables, variable)
}

// NewLive returns the upkeep of a store's findings by a set of rules.
func NewLive(set *Set, store Store, cfg LiveConfig) (*Live, error) {
	if cfg.Now == nil {
		return nil, errors.New("detections: no clock")
	}
	if cfg.Longest <= 0 {
		cfg.Longest = 30 * time.Second
	}
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
	Spans     int            // worked out
	Saved     map[string]int // findings that are new or know more, by severity
	Withdrawn int
	Left      int // spans that changed and wait: for time to pass, or for the next pass
	// Dropped are requests left out because there were too many groups in one span.
	Dropped int64
}

// reread is how often all sums are read, and not only those that changed by the clock of the
// store: clocks are set back, and retention takes sums away.
const reread = time.Hour

// readAtLeast is how often the store is read though nothing is said to have changed.
const readAtLeast = time.Minute

// Pass looks for marks that changed and brings the findings they may touch up to date. After
// an error the next pass takes up where it stopped.
func (l *Live) Pass(ctx context.Context) (Pass, error) {
	out := Pass{Saved: map[string]int{}}
	began := l.cfg.Now()
	if err := l.load(ctx, began); err != nil {
		return out, err
	}
	horizons := l.horizons(began)
	l.begins = map[string]time.Time{}
	defer func() { l.begins = nil }()
	order := slices.SortedFunc(maps.Keys(l.pending), func(a, b span) int {
		// What is newest matters most; first-seen rules come to the same end in either order.
		return cmp.Or(cmp.Compare(b.begin, a.begin), cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.rule, b.rule))
	})
	var ready []*spanWork
	for _, s := range order {
		until, ok := horizons[s.cluster]
		if !ok {
			until = endless
		}
		if w := l.look(s, until, &out); w != nil {
			ready = append(ready, w)
		}
	}
	out.Worked = l.cfg.Now().Sub(began)
	for i, b := range batches(ready) {
		if out.Worked > l.cfg.Longest {
			break
		}
		if i > 0 && l.cfg.Rest != nil {
			l.tell()
			if err := l.cfg.Rest(ctx); err != nil {
				return out, err
			}
		}
		began = l.cfg.Now()
		err := b.run(ctx)
		out.Worked += l.cfg.Now().Sub(began)
		if err != nil {
			s := b[0].span
			return out, fmt.Errorf("work out %d spans such as %s of cluster %q at %s: %w", len(b), s.rule, s.cluster, time.Unix(s.begin, 0).UTC().Format(time.RFC3339), err)
		}
	}
	out.Left = len(l.pending)
	l.tell()
	return out, l.note(ctx, 1)
}

// tell says up to when changes have been worked out.
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

// load reads what changed since the last pass, all of it now and then.
func (l *Live) load(ctx context.Context, now time.Time) error {
	changes := uint64(0)
	if l.cfg.Changes != nil {
		changes = l.cfg.Changes()
		if quiet := now.Sub(l.readAt); l.loaded && changes == l.changes && quiet >= 0 && quiet < readAtLeast {
			l.loadAt = now
			return nil
		}
	}
	since := l.loadAt // when what changed may have changed at the earliest
	if !l.loaded || now.Sub(l.full) >= reread || now.Before(l.full) {
		l.loaded, l.since, l.full, since = false, time.Time{}, now, l.asOf
		l.sums, l.pending, l.seen, l.done = map[series]map[int64]slotSum{}, map[span]time.Time{}, map[span]time.Time{}, map[span]int64{}
		done, err := l.store.SpansDone(ctx)
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
	sums, next, err := l.store.MarkSums(ctx, l.since)
	if err != nil {
		return err
	}
	for _, m := range sums {
		r, ok := l.rules[m.Rule]
		if !ok {
			continue // a rule there is no more: its findings stand
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
	if l.known, err = l.store.Clusters(ctx); err != nil {
		return err
	}
	l.loaded, l.loadAt, l.readAt, l.changes = true, now, now, changes
	l.since = later(l.since, next)
	return nil
}

// touch notes the spans a slot's requests may count in, and since when they may have changed.
func (l *Live) touch(s series, r *liveRule, slot, since time.Time) {
	note := func(at int64) {
		if _, ok := l.pending[span{s, at}]; !ok {
			l.pending[span{s, at}] = since
		}
	}
	if r.rule.Kind == KindFirstSeen {
		// Of all later days what is new may be so no more.
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

// digest sums the slots a span's findings may rest on.
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

// endless is after every request a store holds.
var endless = time.Unix(1<<33, 0).UTC() //nolint:gochecknoglobals // a constant

// horizons are up to when rules that count look at each cluster.
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
