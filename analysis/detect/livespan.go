package detect

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// This file handles one span; livebatch.go computes many at once.

// look returns a span whose marks changed and that is due; nil otherwise.
func (l *Live) look(s span, horizon time.Time, out *Pass) *spanWork {
	r := l.rules[s.rule]
	sum := l.digest(s, r)
	if was, ok := l.done[s]; ok && was == sum.digest {
		delete(l.pending, s)
		return nil
	}
	until := endless
	if end := time.Unix(s.begin, 0).Add(r.unit + r.after); r.rule.Kind != KindEvent && horizon.Before(end) {
		until = time.Unix(0, floor(nanos(horizon), int64(r.step))).UTC()
		if !until.After(time.Unix(s.begin, 0).Add(-r.before)) || until.Equal(l.seen[s]) {
			l.pending[s] = l.loadAt
			return nil // nothing of it is old enough, or nothing is new since last time
		}
	}
	return &spanWork{Live: l, r: r, span: s, until: until, sum: sum, out: out}
}

// worked records that a span is up to date.
func (w *spanWork) worked() {
	w.out.Spans++
	if w.until != endless {
		w.seen[w.span], w.pending[w.span] = w.until, w.loadAt
		return
	}
	delete(w.pending, w.span)
	delete(w.seen, w.span)
	w.done[w.span] = w.sum.digest
	w.ready = append(w.ready, verdict.SpanDone{Cluster: w.span.cluster, Rule: w.span.rule, Span: time.Unix(w.span.begin, 0).UTC(),
		Digest: w.sum.digest, Updated: w.stamp(time.Time{})})
}

// note stores what is done once there is enough of it. What is lost before is done again.
func (l *Live) note(ctx context.Context, enough int) error {
	if len(l.ready) < enough {
		return nil
	}
	if err := l.store.SaveSpansDone(ctx, l.ready); err != nil {
		return err
	}
	l.ready = l.ready[:0]
	return nil
}

// stamp returns a time for what is stored now: after any assigned before, and after the given one,
// whatever the clocks of this process and of others say.
func (l *Live) stamp(after time.Time) time.Time {
	l.updated = later(later(l.cfg.Now().Truncate(time.Microsecond), l.updated.Add(time.Microsecond)), after.Add(time.Microsecond))
	return l.updated
}

// spanWork is the work on one span.
type spanWork struct {
	*Live
	r     *liveRule
	span  span
	until time.Time // requests from then on are left out
	sum   slotSum
	out   *Pass

	detector *Detector
}

// filter selects the requests that may count in the span's findings.
func (w *spanWork) filter() verdict.MarkFilter {
	begin := time.Unix(w.span.begin, 0).UTC()
	f := verdict.MarkFilter{Cluster: w.span.cluster, Rule: w.span.rule, From: begin.Add(-w.r.before), To: begin.Add(w.r.unit + w.r.after),
		Reads: w.r.reads}
	if w.until.Before(f.To) {
		f.To = w.until
	}
	return f
}

// findings returns the findings of the span by id, once its requests have been observed.
func (w *spanWork) findings() map[string]Finding {
	begin := time.Unix(w.span.begin, 0)
	out := map[string]Finding{}
	for _, f := range w.detector.Flush() {
		// Windows around the span are needed to decide what is new in it.
		if w.r.rule.Kind != KindWindow || !f.Window.Before(begin) && f.Window.Before(begin.Add(w.r.unit)) {
			out[f.ID] = f
		}
	}
	st := w.detector.Stats()
	for rule, n := range st.Errors {
		w.cfg.Failed(rule, st.FirstError[rule], n)
	}
	w.out.Dropped += st.Dropped
	return out
}

// thresholds returns how often requests must count for each threshold of the rule.
func (w *spanWork) thresholds() []verdict.Threshold {
	out := make([]verdict.Threshold, len(w.r.counts))
	for i := range w.r.counts {
		out[i] = w.r.counts[i].threshold()
	}
	return out
}

// hopefulPanes returns the panes of the windows in which thresholds can hold: those where enough
// requests, or distinct values, count for each.
func (w *spanWork) hopefulPanes(groups []verdict.PaneCounts) (panes []verdict.Pane) {
	width := int64(w.r.rule.Window.Length / w.r.rule.Window.Every)
	thresholds := w.thresholds()
	for i := range groups {
		for _, n := range hopeful(&groups[i], thresholds, width) {
			panes = append(panes, verdict.Pane{Key: groups[i].Key, Number: n})
		}
	}
	return panes
}

// hopeful returns the panes of a group that lie in any window, that many panes wide, that reaches all thresholds.
func hopeful(g *verdict.PaneCounts, thresholds []verdict.Threshold, width int64) []int64 {
	order := make([]int, len(g.Panes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(g.Panes[a] - g.Panes[b]) })
	tally := verdict.NewTally(thresholds)
	var out []int64
	taken := 0 // panes of order that are in out, or never will be
	// A window that ends with a pane in which it holds something holds what any window with the same last pane does.
	for first, last := 0, 0; last < len(order); last++ {
		tally.Add(g, order[last])
		for g.Panes[order[last]]-g.Panes[order[first]] >= width {
			tally.Remove(g, order[first])
			first++
		}
		if tally.Enough() {
			for i := max(taken, first); i <= last; i++ {
				out = append(out, g.Panes[order[i]])
			}
			taken = last + 1
		}
	}
	return out
}

// firstPanes returns the panes of the keys that are new on that day and reported, and starts the detector.
func (w *spanWork) firstPanes(ctx context.Context) ([]verdict.Pane, error) {
	since, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	w.detector = New(w.r.single, Config{Since: since, First: w.cfg.First})
	f := w.filter()
	from := since.Add(time.Duration(w.r.rule.Baseline))
	if !from.Before(f.To) {
		return nil, nil
	}
	seen, err := w.store.FirstSeen(ctx, f, from, w.detector.cfg.First)
	if err != nil {
		return nil, err
	}
	w.detector.rest = seen.Rest
	var panes []verdict.Pane
	for _, k := range seen.Keys {
		panes = append(panes, verdict.Pane{Key: k.Key, Number: floor(nanos(k.First), int64(firstFold)) / int64(firstFold)})
	}
	return panes, nil
}

// begin returns the earliest request of the cluster.
func (w *spanWork) begin(ctx context.Context) (time.Time, error) {
	if at, ok := w.begins[w.span.cluster]; ok {
		return at, nil
	}
	at, err := w.store.Earliest(ctx, w.span.cluster)
	if err == nil {
		w.begins[w.span.cluster] = at
	}
	return at, err
}

// changes returns the differences between the computed findings of the span and the stored ones.
func (w *spanWork) changes(ctx context.Context, found map[string]Finding, stored []verdict.StoredFinding) ([]verdict.StoredFinding, error) {
	var save []verdict.StoredFinding
	withdrawn := 0
	for _, was := range stored {
		f, stands := found[was.ID]
		switch {
		case stands:
			row, err := w.stored(&f)
			if err != nil {
				return nil, err
			}
			delete(found, was.ID)
			if !was.Withdrawn && (bytes.Equal(row.Body, was.Body) || row.Count < was.Count && w.until != endless) {
				continue
			}
			row.Updated = w.stamp(was.Updated)
			save = append(save, row)
		case !was.Withdrawn && w.until == endless:
			gone := was
			gone.Withdrawn, gone.Updated = true, w.stamp(was.Updated)
			save = append(save, gone)
			withdrawn++
		}
	}
	if withdrawn > 0 {
		// Retention removes events and leaves findings: a finding stays when its events can no longer be read.
		whole, err := w.whole(ctx)
		if err != nil {
			return nil, err
		}
		if !whole {
			save = slices.DeleteFunc(save, func(f verdict.StoredFinding) bool { return f.Withdrawn || lessThan(f, stored) })
		}
	}
	for _, f := range found {
		row, err := w.stored(&f)
		if err != nil {
			return nil, err
		}
		row.Updated = w.stamp(time.Time{})
		save = append(save, row)
	}
	return save, nil
}

// lessThan reports whether a finding counts fewer requests than the stored one.
func lessThan(f verdict.StoredFinding, stored []verdict.StoredFinding) bool {
	return slices.ContainsFunc(stored, func(was verdict.StoredFinding) bool {
		return was.ID == f.ID && !was.Withdrawn && f.Count < was.Count
	})
}

// whole reports whether the store still has all requests the span's sums count.
func (w *spanWork) whole(ctx context.Context) (bool, error) {
	f := w.filter()
	slot := verdict.MarkSlot
	f.From, f.To = time.Unix(0, floor(nanos(f.From), int64(slot))).UTC(), f.To.Add(slot-1).Truncate(slot)
	if w.r.rule.Kind == KindFirstSeen {
		f.From = time.Unix(0, 0).UTC()
	}
	n, err := w.store.MarkedCount(ctx, f)
	return n >= w.sum.count, err
}

// stored returns a finding of the span as it is kept.
func (w *spanWork) stored(f *Finding) (verdict.StoredFinding, error) {
	out, err := Stored(f)
	out.Span = time.Unix(w.span.begin, 0).UTC()
	return out, err
}

// Stored returns a finding as it is kept, but for the span it was found in.
func Stored(f *Finding) (verdict.StoredFinding, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return verdict.StoredFinding{}, err
	}
	return verdict.StoredFinding{
		Cluster: f.Cluster, Rule: f.Rule, ID: f.ID, Severity: f.Severity, Subject: f.Subject, AuditID: f.Evidence[0].AuditID,
		First: f.First, Last: f.Last, Count: f.Count, Body: body,
	}, nil
}
