package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// api/v1/events, the newest again and again ─▶ those that were not told yet (tailing) ─▶ a line each | JSON, one a line
func newTail(s cli.Streams) *cobra.Command {
	var from asker
	var q query.EventsRequest
	var lines int
	var last, late time.Duration
	c := &cobra.Command{
		Use:   "tail",
		Short: "Show requests with their verdicts as they are judged",
		Long: `Show the newest requests, then every further one as it is judged, until Ctrl-C, or for as long
as --for says. The filters are those of the question events (retrial ask events), all exact.

Each request is shown once, none is left out: one that arrives late, as what a spool or another
process held back, is shown when it is there, within --late of when the apiserver received it.
Where the server is behind, or more requests come than can be shown, standard error says so; a
server that is started again is asked again.`,
		Example: `  retrial tail
  retrial tail --decision forbid
  retrial tail --subject sa/ci:runner --since 10m --for 1h -o json`,
		Args: cli.NoArgs,
	}
	from.bindServer(c, s)
	cli.BindRequest(c, &q, "cluster", "from", "subject", "verb", "resource", "decision", "outcome", "class", "where")
	from.completeFlags(c)
	c.Flags().IntVar(&lines, "lines", 10, "begin with so many of the newest requests, unless --from or --since says where to begin")
	cli.DurationVar(c, &last, "for", 0, "end after this time (default: until Ctrl-C)")
	cli.DurationVar(c, &late, "late", 5*time.Minute, "how late a request may arrive to be shown")
	cli.AddOutput(c, &from.output, "table", "name", "json")
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if lines < 0 || last < 0 || late < 0 {
			return cli.UsageError(c, "--lines, --for and --late must not be negative")
		}
		if q.Subject, err = cli.User("--subject", q.Subject); err != nil {
			return err
		}
		client, err := from.running(c.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		if q.Cluster, err = client.OneCluster(c.Context(), q.Cluster); err != nil {
			return err
		}
		t := tailing{q: q, late: late, now: time.Now, tell: from.tell, say: func(format string, args ...any) {
			fmt.Fprintf(s.Err, "hint: "+format+"\n", args...)
		}, ask: func(ctx context.Context, q query.EventsRequest) (query.EventsAnswer, error) {
			return apiclient.Ask(ctx, client, q)
		},
			behind: func(ctx context.Context) (int64, error) {
				status, err := apiclient.Ask(ctx, client, query.StatusRequest{})
				return status.Lag, err
			}}
		return t.run(c.Context(), lines, last)
	}
	return c
}

// tell prints requests, in the form asked for.
func (a *asker) tell(events []query.Event) error {
	for i := range events {
		e := &events[i]
		line := safe.Text(e.AuditID)
		switch a.output {
		case "json":
			text, err := cli.Envelope(*e)
			if err != nil {
				return err
			}
			line = string(safe.JSON(text))
		case "table":
			line = fmt.Sprintf("%s  %s  %s  %3d  %-6s  %s  %s", e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), a.Painted(e.Recorded, 6),
				a.Painted(e.Outcome, 13), e.Code, safe.Text(e.Verb), safe.Text(e.Subject), safe.Text(e.RequestURI))
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

// tailing follows the requests of a filter.
type tailing struct {
	q    query.EventsRequest
	late time.Duration // how long ago what is new may have been received
	ask  func(context.Context, query.EventsRequest) (query.EventsAnswer, error)
	// behind says how many events are accepted and not judged yet.
	behind func(context.Context) (int64, error)
	tell   func([]query.Event) error
	say    func(format string, args ...any) // to whoever looks on
	now    func() time.Time

	told map[string]time.Time // the requests that were told, by when they were received
}

const (
	tailEvery = time.Second      // pause between two looks
	tailWhole = 10 * time.Second // how often at most a look goes as far back as late
	tailMuch  = 5000             // requests of one look that are more than anybody reads
	tailLag   = 1000             // events that are not judged and worth telling of
)

// run tells of requests until the context ends, or so long after the first if that is not 0; neither is an error.
func (t *tailing) run(ctx context.Context, lines int, last time.Duration) error {
	if err := t.begin(ctx, lines); err != nil {
		return unlessEnded(ctx, err)
	}
	if last > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, last)
		defer cancel()
	}
	var whole, lagging time.Time // when the next is due
	failed := false
	for sleep.For(ctx, tailEvery) == nil {
		began := t.now()
		far := !began.Before(whole)
		events, err := t.next(ctx, far)
		var coded cli.Exit
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &coded):
			return err
		case err != nil:
			if !failed {
				t.say("the server does not answer, and is asked again: %s", cli.SafeLines(err.Error()))
			}
			failed = true
			continue
		}
		if failed = false; far { // at most a tenth of the time is spent on it
			whole = t.now().Add(max(tailWhole, 10*t.now().Sub(began)))
		}
		if len(events) >= tailMuch {
			t.say("%s came at once: a filter shows fewer", phrase.Count(int64(len(events)), "request"))
		}
		if err := t.tell(events); err != nil {
			return err
		}
		if behind, err := t.behind(ctx); err == nil && behind >= tailLag && !t.now().Before(lagging) {
			lagging = t.now().Add(tailWhole)
			t.say("the server is behind: %s are accepted and not judged yet", phrase.Count(behind, "event"))
		}
	}
	return nil
}

// unlessEnded returns an error that is not the end of the context.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begin tells of the requests since the beginning that was asked for, or of so many of the newest, however old they are. What is not older
// than these and is not told is new.
func (t *tailing) begin(ctx context.Context, lines int) error {
	t.told = map[string]time.Time{}
	if !t.q.From.IsZero() {
		events, err := t.next(ctx, true)
		if err != nil {
			return err
		}
		return t.tell(events)
	}
	q := t.q
	q.Limit = min(max(lines, 1), 500)
	page, err := t.ask(ctx, q)
	if err != nil {
		return err
	}
	t.q.From = t.now()
	for i := range page.Events {
		t.q.From, t.told[page.Events[i].Request] = page.Events[i].Time, page.Events[i].Time
	}
	slices.Reverse(page.Events)
	return t.tell(page.Events[max(0, len(page.Events)-lines):])
}

// next returns the requests that were not told yet, oldest first. It goes back from the newest, page by page, until one has nothing new,
// or as far as anything new may be.
func (t *tailing) next(ctx context.Context, far bool) (events []query.Event, err error) {
	q, fresh := t.q, map[string]time.Time{}
	for q.Limit = cmp.Or(q.Limit, 500); ; {
		page, err := t.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		before := len(fresh)
		for _, e := range page.Events {
			_, told := t.told[e.Request]
			if _, twice := fresh[e.Request]; !told && !twice {
				fresh[e.Request] = e.Time
				events = append(events, e)
			}
		}
		if q.Before = page.Older; q.Before == "" || len(fresh) == before && !far {
			break
		}
	}
	maps.Copy(t.told, fresh)
	t.forget()
	slices.SortStableFunc(events, func(a, b query.Event) int { return a.Time.Compare(b.Time) })
	return events, nil
}

// forget forgets what is too old to be asked about again, by the clock of the newest request: that of an apiserver may be late. One in the
// future is wrong.
func (t *tailing) forget() {
	var newest time.Time
	for _, received := range t.told {
		if received.After(newest) {
			newest = received
		}
	}
	if now := t.now(); newest.After(now) {
		newest = now
	}
	if oldest := newest.Add(-t.late); oldest.After(t.q.From) {
		t.q.From = oldest
	}
	maps.DeleteFunc(t.told, func(_ string, received time.Time) bool { return received.Before(t.q.From) })
}
