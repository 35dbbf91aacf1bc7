package server

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
)

// Summary counts what a log was judged to be.
type Summary = evaluate.Summary

// DefaultLag is how far an apiserver's caches may run behind, unless somebody knows better.
const DefaultLag = replay.DefaultLag

// Evaluate judges the log. The verdicts go to lines, one a line as JSON, unless it is nil.
func (l Log) Evaluate(ctx context.Context, lag time.Duration, lines io.Writer) (*Summary, error) {
	var o evaluate.Options
	if lines != nil {
		o.Sink = evaluate.JSONLines(cli.SafeJSON(lines))
	}
	return l.replay(ctx, lag, o)
}

// Remarks tells which lines of the log are no events, and what is likely wrong when the summary
// is not one to rely on. A log in which nothing is an event is an error.
func (l Log) Remarks(sum *Summary) error {
	for _, m := range sum.MalformedLines {
		fmt.Fprintf(l.Streams.Err, "%s:%d: not an event: %s\n", safe.Text(m.Input), m.Line, safe.Text(m.Error))
	}
	if more := sum.Malformed - int64(len(sum.MalformedLines)); more > 0 {
		fmt.Fprintf(l.Streams.Err, "%d more malformed lines\n", more)
	}
	if err := l.readable(sum); err != nil {
		return err
	}
	if hint := summaryHint(sum, l.stated()); hint != "" {
		fmt.Fprintln(l.Streams.Err, hint)
	}
	return nil
}

// summaryHint says what is likely wrong when the result is not one to rely on. A single
// drift is what Retrial is for; a log full of it is judged by another state than its own. Where
// a state was given, or the log shows the cluster's birth, none is missing.
func summaryHint(sum *Summary, stated bool) string {
	v := sum.Verdicts
	switch judged := v.Match + v.Drift; {
	case sum.Events == 0 && sum.Malformed == 0:
		return "there is no event in it"
	case v.Indeterminate > 0 && !stated && !sum.Born:
		return "hint: no --state was given, so only what the log itself tells of the policy is known"
	case v.Drift > 10 && v.Drift*20 > judged:
		return "hint: much of this drifts; is the state that of this cluster, and of the time the log begins?"
	}
	return ""
}
