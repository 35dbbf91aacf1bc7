package completeness

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
)

// Pairs counts the requests of which only one stage is known.
type Pairs struct {
	Open     int64 `json:"open"`     // watches and streams that may still be under way
	Stopped  int64 `json:"stopped"`  // ended by the end of their apiserver, which does not post them
	Overdue  int64 `json:"overdue"`  // ended by their own time limit, and the end never came
	NoStart  int64 `json:"noStart"`  // watches that ended and whose beginning never came
	NoAnswer int64 `json:"noAnswer"` // other requests that began and whose end never came
	// Examples are the first that are missing a stage they must have had.
	Examples []Half `json:"examples,omitempty"`
}

// Half is a request of which a stage is missing.
type Half struct {
	APIServer string    `json:"apiserver,omitempty"`
	AuditID   string    `json:"auditID"`
	User      string    `json:"user"`
	Verb      string    `json:"verb"`
	URI       string    `json:"requestURI"`
	Received  time.Time `json:"received"`
	Missing   string    `json:"missing"`
}

const (
	mostHalves   = 5000
	halfExamples = 5
	// longestWatch is how long a watch without a limit of its own lasts at most: twice
	// --min-request-timeout at its default.
	longestWatch = time.Hour
)

// pairs looks at requests of which a stage is missing.
func (r *Report) pairs(ctx context.Context, store Store, cfg Config, q Question, series map[string][]run) error {
	// A watch of an hour before the range may end in it.
	list, err := store.Unpaired(ctx, q.Cluster, q.From, q.To, mostHalves)
	if err != nil {
		return err
	}
	p := &r.Pairs
	// An audit policy may omit beginnings.
	begins := slices.ContainsFunc(list, func(u queries.Unpaired) bool { return u.Missing == "ResponseComplete" })
	for _, u := range list {
		lost := true
		switch {
		case u.Missing == "ResponseStarted":
			// Only where beginnings are recorded at all, and not at the range's edge.
			if lost = begins; lost {
				p.NoStart++
			}
		case ended(series[u.APIServer], u.Received, q.To):
			p.Stopped++
			lost = false
		case u.Verb == "watch" && q.To.Sub(u.Received) > limit(u.URI)+time.Minute:
			p.Overdue++
		case u.Verb == "watch" || streams(u.URI):
			p.Open++
			lost = false
		case q.To.Sub(u.Received) > time.Minute+limit(u.URI):
			p.NoAnswer++
		default:
			p.Open++
			lost = false
		}
		if lost && len(p.Examples) < halfExamples {
			p.Examples = append(p.Examples, Half{u.APIServer, u.AuditID, u.User, u.Verb, u.URI, u.Received, u.Missing})
		}
	}
	if n := p.Overdue + p.NoStart + p.NoAnswer; n > 0 {
		r.add(Warn, KindPairs, "", "Bring in its audit log (retrial import); what is missing of requests is missing of others too.",
			"Of %d requests only half is known: %d watches whose end never came, %d whose beginning did not, %d other requests without "+
				"an end.", n, p.Overdue, p.NoStart, p.NoAnswer)
	}
	if p.Stopped > 0 {
		r.add(Note, KindPairs, "", "", "%d requests were ended by the stop of their apiserver: it closes its webhook before it records "+
			"their ends, which only its log may have.", p.Stopped)
	}
	return nil
}

// ended reports whether an apiserver was started again between a request and the end of the range.
func ended(runs []run, received, to time.Time) bool {
	return slices.ContainsFunc(runs, func(r run) bool { return r.started.After(received) && r.started.Before(to) })
}

// limit returns how long a request may last at most.
func limit(uri string) time.Duration {
	_, query, _ := strings.Cut(uri, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return longestWatch
	}
	if n, err := strconv.ParseInt(values.Get("timeoutSeconds"), 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return longestWatch
}

// streams tells requests without a limit: they last until somebody hangs up.
func streams(uri string) bool {
	path, query, _ := strings.Cut(uri, "?")
	return strings.HasSuffix(path, "/log") && strings.Contains(query, "follow=") ||
		slices.ContainsFunc([]string{"/exec", "/attach", "/portforward", "/proxy/"}, func(s string) bool {
			return strings.Contains(path, s)
		})
}

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
	if l.Arrived > 0 {
		text += fmt.Sprintf(" %d of the %d came from a log, the last at %s.", l.Arrived, l.Events, l.ArrivedBy.UTC().Format(time.RFC3339))
	} else {
		text += fmt.Sprintf(" None of the %d came from a log.", l.Events)
	}
	if l.Unwritten > 0 {
		text += fmt.Sprintf(" The log backend could not write %d of them either.", l.Unwritten)
	}
	return text
}
