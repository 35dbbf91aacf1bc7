package server

import (
	"context"

	"github.com/retrial-io/retrial/analysis/drift"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/verdict"
)

// Drift groups what does not match in the log.
func (l Log) Drift(ctx context.Context, q query.DriftRequest) (answer query.DriftAnswer, err error) {
	answer.Cluster = l.name()
	var found drift.Collector
	_, err = l.Replay(ctx, replay.DefaultLag, evaluate.Options{Sink: func(e *event.Event, v *verdict.Verdict) error {
		at := e.RequestReceivedTimestamp
		if at.Before(q.From) || !q.To.IsZero() && !at.Before(q.To) {
			return nil
		}
		answer.Requests++
		if v.Outcome != verdict.OutcomeNotJudged {
			answer.Judged++
		}
		if s, ok := drift.Of(answer.Cluster, e, v); ok {
			found.Add(&s, 1)
		}
		return nil
	}})
	answer.Groups = found.Groups()
	return answer, err
}
