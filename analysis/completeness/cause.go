package completeness

import (
	"context"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
)

// mostPauses is how many pauses of an apiserver are examined.
const mostPauses = 200

// traces are other evidence of missing events.
type traces struct {
	requests, arrivals map[string][]queries.Pause
	to                 time.Time
}

// trace is the evidence from one apiserver.
type trace struct{ requests, arrivals []queries.Pause }

// follow looks for pauses in the events, and in their arrival.
func follow(ctx context.Context, store Store, q Question, cfg Config) (*traces, error) {
	t := &traces{map[string][]queries.Pause{}, map[string][]queries.Pause{}, q.To}
	until := q.To.Add(cfg.Settle)
	for _, x := range []struct {
		into     map[string][]queries.Pause
		arrivals bool
	}{{t.requests, false}, {t.arrivals, true}} {
		pauses, err := store.Pauses(ctx, q.Cluster, q.From.Add(-cfg.Settle), until, x.arrivals, mostPauses)
		if err != nil {
			return nil, err
		}
		for _, h := range pauses {
			x.into[h.APIServer] = append(x.into[h.APIServer], h)
		}
	}
	return t, nil
}

func (t *traces) of(name string) trace { return trace{t.requests[name], t.arrivals[name]} }

// jump is an increase of an error counter between two readings.
type jump struct {
	from, to time.Time
	events   int64
}

func jumps(points []point, counter func(point) int64) []jump {
	var out []jump
	for i := 1; i < len(points); i++ {
		if n := counter(points[i]) - counter(points[i-1]); n > 0 {
			out = append(out, jump{points[i-1].earliest, points[i].latest, n})
		}
	}
	return out
}

// explain assigns a cause to every gap, from what the apiserver counted at the time and once its
// retries were over.
func explain(m *Measured, runs []run, c counts, t trace, cfg Config) {
	m.Gaps = join(m.Gaps, c, t)
	for i := range m.Gaps {
		g := &m.Gaps[i]
		points := runs[g.run].points
		full := within(jumps(points, func(p point) int64 { return p.buffer }), g.From, g.To)
		dropped := within(jumps(points, func(p point) int64 { return p.webhook }), g.From, g.To.Add(cfg.Settle))
		switch {
		case len(full) > 0:
			g.Cause = CauseOverflow
		case len(dropped) > 0:
			g.Cause = droppedBy(dropped[0], t.arrivals, cfg)
		case g.run+1 < len(runs) && runs[g.run+1].started.Sub(g.To) < cfg.Settle:
			g.Cause = CauseRestart
		default:
			g.Cause = CauseUnexplained
		}
		g.Text = g.describe(dropped, cfg)
	}
}

// join finds the pauses that gaps lie in, and joins the gaps of a process that lie in the same
// pause: the readings between them were too close to distinguish them.
func join(gaps []Gap, c counts, t trace) []Gap {
	out := gaps[:0]
	for _, g := range gaps {
		g.Before, g.After = pause(t.requests, g)
		if n := len(out); n > 0 && g.run == out[n-1].run && !g.Before.IsZero() && g.Before.Equal(out[n-1].Before) {
			before := out[n-1]
			one := gapBetween(c, g.run, before.first, g.last)
			one.Missing = max(one.Missing, before.Missing+g.Missing)
			one.Before, one.After = g.Before, g.After
			out[n-1] = one
			continue
		}
		out = append(out, g)
	}
	return out
}

// within returns the jumps that touch a stretch.
func within(list []jump, from, to time.Time) []jump {
	var out []jump
	for _, j := range list {
		if j.to.After(from) && j.from.Before(to) {
			out = append(out, j)
		}
	}
	return out
}

// droppedBy returns why the webhook backend dropped a batch.
func droppedBy(j jump, arrivals []queries.Pause, cfg Config) string {
	if outage(j, arrivals, cfg) {
		return CauseOutage
	}
	return CauseUnencodable
}

// outage reports whether nothing arrived while the batch was being retried: a batch that cannot
// be encoded fails alone, and others arrive meanwhile.
func outage(j jump, arrivals []queries.Pause, cfg Config) bool {
	for _, h := range arrivals {
		begin, end := later(h.Before, j.from.Add(-cfg.Retry)), earlier(h.After, j.to)
		if end.Sub(begin) >= cfg.Retry*6/10 {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pause returns the longest pause of the received events within a gap; zero if there is none.
func pause(pauses []queries.Pause, g Gap) (before, after time.Time) {
	for _, h := range pauses { // longest first
		if h.After.After(g.From) && h.Before.Before(g.To) {
			return h.Before, h.After
		}
	}
	return time.Time{}, time.Time{}
}

// clock is the format of times.
const clock = "15:04:05.000"

// describe says what happened and, if it is known, between which requests.
func (g *Gap) describe(dropped []jump, cfg Config) string {
	where := fmt.Sprintf("between %s and %s", g.From.UTC().Format(clock), g.To.UTC().Format(clock))
	if !g.Before.IsZero() {
		where = fmt.Sprintf("between the events of %s and %s", g.Before.UTC().Format(clock), g.After.UTC().Format(clock))
	}
	var n int64
	for _, j := range dropped {
		n += j.events
	}
	switch g.Cause {
	case CauseOverflow:
		return fmt.Sprintf("%s: its buffer was full (--audit-webhook-batch-buffer-size, 10,000 events by default); "+
			"requests arrived faster "+
			"than batches were sent, or the receiver was away.", where)
	case CauseOutage:
		return fmt.Sprintf("%s: nothing arrived while it retried, for about %s, and then it dropped %d; the receiver could not be "+
			"reached, or refused.", where, cfg.Retry, n)
	case CauseUnencodable:
		if n <= cfg.Batch {
			return fmt.Sprintf("%s: it dropped %d at once while other batches arrived: the mark of one PATCH whose body is not JSON, "+
				"which makes its whole batch unencodable (its log: \"Error in audit plugin 'webhook' affecting %d audit events\").",
				where, n, n)
		}
		return fmt.Sprintf("%s: it dropped %d, in %d batches or more, while others arrived: PATCHes whose bodies are not JSON make their "+
			"batches unencodable (its log: \"Error in audit plugin 'webhook'\").", where, n, (n+cfg.Batch-1)/cfg.Batch)
	case CauseRestart:
		return fmt.Sprintf("%s: its process ended right after; what was in its buffer is lost when it is killed.", where)
	}
	return fmt.Sprintf("%s: it counted no error for them.", where)
}

// letters determines how many of the unexplained events arrived and became dead letters, and which
// gaps they lie in. A letter counts by its time of receipt, which is up to the retries of a batch
// after the event.
func (m *Measured) letters(ctx context.Context, store Store, cfg Config, q Question, unexplained int64) error {
	counts, err := store.LetterCounts(ctx, q.Cluster, m.From.Truncate(time.Minute), m.To.Add(cfg.Settle))
	if err != nil {
		return err
	}
	var all int64
	for _, c := range counts {
		all += c.Items
		for i := range m.Gaps {
			g := &m.Gaps[i]
			if g.Cause == CauseUnexplained && c.Minute.Add(time.Minute).After(g.From) && c.Minute.Before(g.To.Add(cfg.Settle)) {
				g.Cause = CauseDeadLetter
				g.Text = fmt.Sprintf("between %s and %s: dead letters arrived at the time.", g.From.UTC().Format(clock),
					g.To.UTC().Format(clock))
			}
		}
	}
	m.DeadLetters = min(all, unexplained)
	return nil
}
