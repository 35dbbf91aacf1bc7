package completeness

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
)

// point is a reading, or the start of a process, at which all counters are zero.
type point struct {
	earliest, latest                       time.Time
	events, webhook, buffer, log, rejected int64
}

// run is the life of one process of an apiserver, as far as its counters were read.
type run struct {
	started time.Time
	points  []point
}

// maxPoints bounds the readings of a process that are compared: beyond it, some are left out
// between which no error was counted.
const maxPoints = 1000

// startSlack is by how much two readings of a process may differ about its start.
const startSlack = 2 * time.Second

// seriesOf groups readings by process. Those after to are left out: their events may still be on
// their way.
func seriesOf(samples []queries.AuditSample, from, to time.Time) map[string][]run {
	out := map[string][]run{}
	for _, s := range samples {
		if s.Latest.After(to) {
			continue
		}
		p := point{s.Earliest, s.Latest, s.Events, s.WebhookErrors, s.BufferErrors, s.LogErrors, s.Rejected}
		runs := out[s.APIServer]
		n := len(runs)
		if n > 0 && !restarted(runs[n-1], s) {
			runs[n-1].points = append(runs[n-1].points, p)
			continue
		}
		next := run{started: s.Started}
		if !s.Started.Before(from) {
			next.points = append(next.points, point{earliest: s.Started, latest: s.Started})
		}
		next.points = append(next.points, p)
		out[s.APIServer] = append(runs, next)
	}
	for _, runs := range out {
		for i := range runs {
			runs[i].points = thin(runs[i].points)
		}
	}
	return out
}

// restarted reports whether a reading is from another process than those before: it started at
// another time, or counted less.
func restarted(r run, s queries.AuditSample) bool {
	last := r.points[len(r.points)-1]
	return s.Started.Sub(r.started).Abs() > startSlack || s.Events < last.events || s.WebhookErrors < last.webhook ||
		s.BufferErrors < last.buffer
}

// thin leaves readings out evenly, but none at which an error was counted.
func thin(points []point) []point {
	if len(points) <= maxPoints {
		return points
	}
	step := (len(points) + maxPoints - 1) / maxPoints
	errors := func(i int) int64 { return points[i].webhook + points[i].buffer }
	kept := points[:0:0]
	for i, p := range points {
		if i%step == 0 || i == len(points)-1 || i > 0 && errors(i) != errors(i-1) || i+1 < len(points) && errors(i+1) != errors(i) {
			kept = append(kept, p)
		}
	}
	return kept
}

// counts are the events received from one apiserver, summed from the first cut on.
type counts struct {
	cuts []time.Time
	sum  []int64 // before cuts[i]
}

// before counts the events before a cut.
func (c counts) before(t time.Time) int64 {
	i, _ := slices.BinarySearchFunc(c.cuts, t, time.Time.Compare)
	return c.sum[min(i, len(c.sum)-1)]
}

// between counts the events between two cuts.
func (c counts) between(a, b time.Time) int64 {
	if !a.Before(b) {
		return 0
	}
	return c.before(b) - c.before(a)
}

// between bounds how many events between two readings are missing.
func between(c counts, a, b point) (sent, least, most int64) {
	sent = b.events - a.events
	return sent, sent - c.between(a.earliest, b.latest), sent - c.between(a.latest, b.earliest)
}

// measure compares sent and received for every apiserver that is scraped.
func (r *Report) measure(ctx context.Context, store Store, cfg Config, q Question, series map[string][]run) error {
	var cuts []time.Time
	for _, runs := range series {
		for _, run := range runs {
			for _, p := range run.points {
				cuts = append(cuts, p.earliest, p.latest)
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.CompactFunc(cuts, time.Time.Equal)
	received, err := store.Received(ctx, q.Cluster, cuts)
	if err != nil {
		return err
	}
	counted := tally(cuts, received)
	names := nameOf(series, counted, r)
	var traces *traces
	for i := range r.Servers {
		s := &r.Servers[i]
		runs := series[s.Name]
		if len(runs) == 0 {
			if slices.Contains(q.Scraped, s.Name) {
				r.add(Warn, KindUnread, s.Name, "See the server's log: the address, the credential, or the right to get /metrics.",
					"%s never answered a scrape of its metrics in this time.", who(s.Name))
			}
			continue
		}
		name, ok := names[s.Name]
		if !ok {
			continue
		}
		c, ok := counted[name]
		if !ok {
			c = counts{cuts, make([]int64, len(cuts))}
		}
		m := measured(runs, c)
		if m == nil {
			continue
		}
		s.Measured = m
		if len(m.Gaps) > 0 || m.Webhook > 0 || m.Buffer > 0 {
			if traces == nil {
				if traces, err = follow(ctx, store, q, cfg); err != nil {
					return err
				}
			}
			explain(m, runs, c, traces.of(name), cfg)
			if err := m.losses(ctx, store, cfg, q.Cluster, name, runs, traces.of(name)); err != nil {
				return err
			}
		}
		if unexplained := m.Missing - m.Webhook - m.Buffer - m.Log; unexplained > 0 {
			if err := m.letters(ctx, store, cfg, q, unexplained); err != nil {
				return err
			}
		}
		r.judge(s, len(series) > 1)
	}
	return nil
}

// tally sums received events by apiserver.
func tally(cuts []time.Time, received []queries.Received) map[string]counts {
	out := map[string]counts{}
	for _, x := range received {
		c, ok := out[x.APIServer]
		if !ok {
			c = counts{cuts, make([]int64, len(cuts))}
			out[x.APIServer] = c
		}
		if i, found := slices.BinarySearchFunc(cuts, x.Cut, time.Time.Compare); found && i+1 < len(c.sum) {
			c.sum[i+1] += x.Events
		}
	}
	for _, c := range out {
		for i := 1; i < len(c.sum); i++ {
			c.sum[i] += c.sum[i-1]
		}
	}
	return out
}

// nameOf returns the name under which the events of each scraped apiserver arrive. One without a
// name may be compared if it is the only one.
func nameOf(series map[string][]run, counted map[string]counts, r *Report) map[string]string {
	out := map[string]string{}
	var unnamed []string
	_, some := counted[""]
	for name := range series {
		if _, ok := counted[name]; ok || !some {
			out[name] = name
		} else {
			unnamed = append(unnamed, name)
		}
	}
	if len(unnamed) == 1 {
		out[unnamed[0]] = ""
	} else if len(unnamed) > 1 {
		slices.Sort(unnamed)
		r.add(Warn, KindUnnamed, "", "Give each its own name: retrial cluster rotate "+r.Cluster+" --apiserver NAME",
			"The events of %d apiservers do not name their apiserver: what was sent and what arrived cannot be compared.", len(unnamed))
	}
	return out
}

// measured sums over the processes of one apiserver; nil if there are fewer than two readings.
func measured(runs []run, c counts) *Measured {
	m := &Measured{}
	for i, run := range runs {
		first, last := run.points[0], run.points[len(run.points)-1]
		if m.From.IsZero() {
			m.From = first.latest
		}
		m.To = last.earliest
		if i > 0 {
			m.Restarts++
			before := runs[i-1].points
			m.Unmeasured += max(0, first.earliest.Sub(before[len(before)-1].latest).Seconds())
		}
		if len(run.points) < 2 {
			continue
		}
		sent, least, most := between(c, first, last)
		m.Sent += sent
		m.Missing += max(0, least)
		m.AtMost += max(0, most)
		m.Webhook += last.webhook - first.webhook
		m.Buffer += last.buffer - first.buffer
		m.Log += last.log - first.log
		m.Rejected += last.rejected - first.rejected
		m.Gaps = append(m.Gaps, gaps(i, run.points, c)...)
	}
	if m.Sent == 0 && m.From.Equal(m.To) {
		return nil
	}
	m.Received = m.Sent - m.Missing
	m.Recovered = max(0, m.Webhook+m.Buffer-m.AtMost)
	return m
}

// gaps returns the shortest stretches between readings of which events are certainly missing: between
// two adjacent readings, or more if their times are less certain than the events are far apart.
// Adjacent gaps are joined.
func gaps(run int, points []point, c counts) []Gap {
	var out []Gap
	begin, end := -1, -1               // of the newest
	first := -1                        // of the last of out
	most := make([]int64, len(points)) // events that may be missing before each reading
	for j, p := range points {
		most[j] = p.events - c.before(p.earliest)
		least := p.events - c.before(p.latest)
		for i := j - 1; i > begin; i-- { // from begin on it would contain the one before
			if least <= most[i] {
				continue
			}
			if len(out) > 0 && i <= end {
				out[len(out)-1] = gapBetween(c, run, points[first], points[j])
			} else {
				out, first = append(out, gapBetween(c, run, points[i], points[j])), i
			}
			begin, end = i, j
			break
		}
	}
	return out
}

// gapBetween returns the gap between two readings of a process.
func gapBetween(c counts, run int, first, last point) Gap {
	_, least, most := between(c, first, last)
	return Gap{From: first.earliest, To: last.latest, Missing: max(1, least), AtMost: most, run: run, first: first, last: last}
}

// judge turns what was measured for an apiserver into problems.
func (r *Report) judge(s *Server, several bool) {
	m := s.Measured
	lost := m.Webhook + m.Buffer
	if m.Missing > 0 {
		severity, todo := Fail, "Bring them in from its audit log: retrial import --follow (docs/completeness.md)."
		if m.Missing <= m.Log {
			severity, todo = Note, "" // no backend has them
		}
		text := fmt.Sprintf("%s counted %d events, and %s missing.", who(s.Name), m.Sent, bounds(m.Missing, m.AtMost))
		for _, g := range m.Gaps {
			text += " " + g.Text
		}
		if severity == Note {
			text += fmt.Sprintf(" Its log backend could not write %d of them either: no backend has them.", m.Log)
		}
		r.add(severity, KindMissing, s.Name, todo, "%s", text)
	}
	if lost > 0 && m.Recovered > 0 {
		text := fmt.Sprintf("%s dropped %d events; at least %d of them are stored anyway, from a log.", who(s.Name), lost, m.Recovered)
		for _, l := range m.Losses[max(0, len(m.Losses)-mostTold):] {
			text += " " + l.Text
		}
		r.add(Note, KindMissing, s.Name, "", "%s", text)
	}
	if m.DeadLetters > 0 {
		text := fmt.Sprintf("%d of them arrived and could not be read: they are dead letters.", m.DeadLetters)
		if several { // letters do not name their apiserver
			text = fmt.Sprintf("Up to %d of them may have arrived unreadable: that many dead letters arrived at the time from all "+
				"apiservers.", m.DeadLetters)
		}
		r.add(Fail, KindUnexplained, s.Name, "retrial doctor shows why; the table dead_letters has the content of each.", "%s", text)
	}
	if rest := m.Missing - lost - m.Log - m.DeadLetters; rest > 0 && m.DeadLetters > 0 {
		r.add(Fail, KindUnexplained, s.Name, "Look for a receiver under another address, and for a process of the "+
			"apiserver that was killed.",
			"%d more are missing that %s did not report as dropped: they were lost after it sent them, or when it ended.", rest,
			inside(s.Name))
	} else if rest > 0 {
		r.add(Fail, KindUnexplained, s.Name, "Look for dead letters (retrial doctor), for a receiver under another address, and for a "+
			"process of the apiserver that was killed.",
			"%s reports only %d of them as dropped: the others were lost after it sent them, or when it ended.", who(s.Name), lost)
	}
	if m.Rejected > 0 {
		r.add(Warn, KindRejected, s.Name, "Its audit backend is in mode blocking-strict: see its log.",
			"%s refused %d requests because it could not audit them.", who(s.Name), m.Rejected)
	}
}

// bounds formats a count that is known within two bounds.
func bounds(least, most int64) string {
	switch {
	case least >= most && least == 1:
		return "1 is"
	case least >= most:
		return fmt.Sprintf("%d are", least)
	}
	return fmt.Sprintf("%d to %d are", least, most)
}
