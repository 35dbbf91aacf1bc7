package completeness

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// mostLosses bounds the losses that are listed, mostTold those that get a text.
	mostLosses = 50
	mostTold   = 3
)

// losses lists what the webhook backend lost, why, and what of it arrived from a log: a follower
// waits for the webhook, so events of that time that the log brought first are those that were
// lost.
func (m *Measured) losses(ctx context.Context, store Store, cfg Config, cluster, name string, runs []run, t trace) error {
	var unwritten []jump
	for _, r := range runs {
		for _, j := range jumps(r.points, func(p point) int64 { return p.webhook }) {
			m.Losses = append(m.Losses, Loss{From: j.from, To: j.to, Events: j.events, Cause: droppedBy(j, t.arrivals, cfg)})
		}
		for _, j := range jumps(r.points, func(p point) int64 { return p.buffer }) {
			m.Losses = append(m.Losses, Loss{From: j.from, To: j.to, Events: j.events, Cause: CauseOverflow})
		}
		unwritten = append(unwritten, jumps(r.points, func(p point) int64 { return p.log })...)
	}
	slices.SortStableFunc(m.Losses, func(a, b Loss) int { return a.From.Compare(b.From) })
	m.Losses = m.Losses[max(0, len(m.Losses)-mostLosses):]
	var cuts []time.Time
	for i := range m.Losses {
		cuts = append(cuts, m.Losses[i].made(cfg), m.Losses[i].To)
	}
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.CompactFunc(cuts, time.Time.Equal)
	came, err := store.FromLog(ctx, cluster, cuts)
	if err != nil {
		return err
	}
	// At most what is not missing can have arrived.
	left := max(0, m.Webhook+m.Buffer-m.Missing)
	for i := range m.Losses {
		l := &m.Losses[i]
		for k := range unwritten {
			if u := &unwritten[k]; u.to.After(l.made(cfg)) && u.from.Before(l.To) {
				n := min(u.events, l.Events-l.Unwritten)
				l.Unwritten, u.events = l.Unwritten+n, u.events-n
			}
		}
		for k := range came {
			c := &came[k]
			if n := min(c.Events, l.Events-l.Unwritten-l.Arrived, left); n > 0 && c.APIServer == name && !c.Cut.Before(l.made(cfg)) &&
				c.Cut.Before(l.To) {
				l.Arrived, c.Events, left = l.Arrived+n, c.Events-n, left-n
				l.ArrivedBy = later(l.ArrivedBy, c.Last)
			}
		}
		l.Text = l.describe(cfg)
	}
	return nil
}

// batchHold is how long an apiserver with default flags waits for a batch to fill.
const batchHold = 30 * time.Second

// made returns when the first of the lost events can have been made: a batch is dropped when its
// retries are over.
func (l *Loss) made(cfg Config) time.Time {
	if l.Cause == CauseOverflow {
		return l.From
	}
	return l.From.Add(-cfg.Retry - batchHold)
}

func (l *Loss) describe(cfg Config) string {
	g := Gap{From: l.From, To: l.To, Cause: l.Cause}
	text := "Of " + l.From.UTC().Format(time.DateOnly) + ", " + g.describe([]jump{{events: l.Events}}, cfg)
	switch {
	case l.Arrived > 0:
		text += fmt.Sprintf(" %d of the %d came from a log, the last at %s.", l.Arrived, l.Events, l.ArrivedBy.UTC().Format(time.RFC3339))
	default:
		text += fmt.Sprintf(" None of the %d came from a log.", l.Events)
	}
	if l.Unwritten > 0 {
		text += fmt.Sprintf(" The log backend could not write %d of them either.", l.Unwritten)
	}
	return text
}
