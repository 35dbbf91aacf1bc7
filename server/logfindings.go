package server

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/verdict"
)

// Findings returns all that rules find in the log.
func (l Log) Findings(ctx context.Context, set *detect.Set) ([]detect.Finding, error) {
	d := detect.New(set, detect.Config{})
	sum, err := l.Replay(ctx, replay.DefaultLag, evaluate.Options{Sink: func(e *event.Event, v *verdict.Verdict) error {
		d.Observe(l.name(), e, v)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	detectHints(l.Streams.Err, d.Stats(), sum, l.stated())
	return d.Flush(), nil
}

// detectHints says what makes the findings less than they could be.
func detectHints(w io.Writer, st detect.Stats, sum *Summary, stated bool) {
	ids := make([]string, 0, len(st.Errors))
	for id := range st.Errors {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(w, "rule %s failed on %d requests, for example: %s\n", id, st.Errors[id], safe.Text(st.FirstError[id]))
	}
	if st.Dropped > 0 {
		fmt.Fprintf(w, "%d requests were left out of rules that count: too many groups at once\n", st.Dropped)
	}
	if sum.Malformed > 0 {
		fmt.Fprintf(w, "%d malformed lines; retrial evaluate lists them\n", sum.Malformed)
	}
	if hint := summaryHint(sum, stated); hint != "" {
		fmt.Fprintln(w, hint)
	}
}
