package detect

import (
	"context"
	"slices"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// batch are spans that are worked out together, of whichever clusters: a query costs the store more to plan
// than to answer, because most rules select little of one cluster.
//
//	counts of panes, first keys ─▶ which panes can matter ─▶ marked requests, each read once
//	─▶ a detector a span ─▶ findings ─▶ the difference to what is stored
type batch []*spanWork

const (
	// batchSpans and batchTime bound a batch: its detectors are in memory together, and all its
	// queries lie within one stretch of time, which is longer only where one span is.
	batchSpans = 128
	batchTime  = 8 * time.Hour
	// batchPanes bounds the panes in one statement.
	batchPanes = 100_000
)

// batches divides spans, which are sorted newest first. First-seen rules, whose spans are days,
// form batches of their own.
func batches(ready []*spanWork) (out []batch) {
	type open struct {
		at       int // index in out
		from, to time.Time
	}
	last := map[bool]open{} // by whether they are of first-seen rules
	for _, w := range ready {
		f, first := w.filter(), w.r.rule.Kind == KindFirstSeen
		o, ok := last[first]
		if ok {
			from, to := o.from, o.to
			if f.From.Before(from) {
				from = f.From
			}
			to = later(to, f.To)
			if len(out[o.at]) < batchSpans && to.Sub(from) <= max(batchTime, o.to.Sub(o.from)) {
				out[o.at] = append(out[o.at], w)
				last[first] = open{o.at, from, to}
				continue
			}
		}
		last[first] = open{len(out), f.From, f.To}
		out = append(out, batch{w})
	}
	return out
}

// run updates all spans of the batch.
func (b batch) run(ctx context.Context) error {
	if err := b.observe(ctx); err != nil {
		return err
	}
	l := b[0].Live
	var clusters, rules []string
	var spans []time.Time
	for _, w := range b {
		if !slices.Contains(clusters, w.span.cluster) {
			clusters = append(clusters, w.span.cluster)
		}
		if !slices.Contains(rules, w.span.rule) {
			rules = append(rules, w.span.rule)
		}
		if at := time.Unix(w.span.begin, 0).UTC(); !slices.Contains(spans, at) {
			spans = append(spans, at)
		}
	}
	list, err := l.store.FindingsOf(ctx, clusters, rules, spans)
	if err != nil {
		return err
	}
	stored := map[span][]verdict.StoredFinding{}
	for _, f := range list {
		s := span{series{f.Cluster, f.Rule}, f.Span.Unix()}
		stored[s] = append(stored[s], f)
	}
	var save []verdict.StoredFinding
	for _, w := range b {
		changed, err := w.changes(ctx, w.findings(), stored[w.span])
		if err != nil {
			return err
		}
		save = append(save, changed...)
	}
	if err := l.store.SaveFindings(ctx, save); err != nil {
		return err
	}
	out := b[0].out
	for _, f := range save {
		if f.Withdrawn {
			out.Withdrawn++
		} else {
			out.Saved[f.Severity]++
		}
	}
	for _, w := range b {
		w.worked()
	}
	return l.note(ctx, 100)
}

// observe passes the detector of each span the requests that may matter to it.
func (b batch) observe(ctx context.Context) error {
	filters, err := b.filters(ctx)
	if err != nil {
		return err
	}
	for at := range tiers {
		var some []verdict.MarkFilter
		var of []*spanWork
		panes := 0
		ask := func() error {
			err := b[0].store.Marked(ctx, some, func(row verdict.Row, selected []int) error {
				for _, i := range selected {
					of[i].detector.Observe(row.Cluster, row.Event, row.Verdict)
				}
				return nil
			})
			some, of, panes = nil, nil, 0
			return err
		}
		for i, w := range b {
			if w.r.tier != at {
				continue
			}
			for _, f := range filters[i] {
				if panes > 0 && panes+len(f.Panes) > batchPanes {
					if err := ask(); err != nil {
						return err
					}
				}
				some, of, panes = append(some, f), append(of, w), panes+len(f.Panes)
			}
		}
		if err := ask(); err != nil {
			return err
		}
	}
	return nil
}

// filters selects, for each span, the requests its detector must see: none, those of some panes (in
// parts, if they are many), or all that are marked.
func (b batch) filters(ctx context.Context) ([][]verdict.MarkFilter, error) {
	out := make([][]verdict.MarkFilter, len(b))
	var counting []verdict.MarkFilter
	var thresholds [][]verdict.Threshold
	var places []int
	paned := func(i int, f verdict.MarkFilter, panes []verdict.Pane) {
		for len(panes) > 0 {
			n := min(len(panes), batchPanes)
			f.Panes, panes = panes[:n], panes[n:]
			out[i] = append(out[i], f)
		}
	}
	for i, w := range b {
		f := w.filter()
		switch w.r.rule.Kind {
		case KindWindow:
			f.Every = time.Duration(w.r.rule.Window.Every)
			counting, thresholds, places = append(counting, f), append(thresholds, w.thresholds()), append(places, i)
			w.detector = New(w.r.single, Config{})
		case KindFirstSeen:
			f.Every = firstFold
			panes, err := w.firstPanes(ctx)
			if err != nil {
				return nil, err
			}
			paned(i, f, panes)
		default:
			w.detector = New(w.r.single, Config{})
			out[i] = append(out[i], f)
		}
	}
	groups, err := b[0].store.PaneCounts(ctx, counting, thresholds)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		paned(i, counting[n], b[i].hopefulPanes(groups[n]))
	}
	return out, nil
}
