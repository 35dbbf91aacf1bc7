package server

import (
	"context"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// ExplainDeny says who refused requests of the log, and what they lacked.
func (l Log) ExplainDeny(ctx context.Context, q query.ExplainDenyRequest) (answer query.ExplainDenyAnswer, err error) {
	engine, err := l.engine(replay.DefaultLag)
	if err != nil {
		return answer, err
	}
	why := query.Explainer{Engine: engine, State: state.New(l.name()), At: q.At}
	_, err = l.Replay(ctx, replay.DefaultLag, evaluate.Options{
		State: why.State, Engine: why.Engine,
		// The state is whole before the first verdict is reached.
		Sink: func(e *event.Event, v *verdict.Verdict) error {
			switch {
			case e.AuditID != q.AuditID:
			case len(answer.Requests) == query.MostDenials:
				answer.Truncated = true
			default:
				answer.Requests = append(answer.Requests, why.Explain(l.name(), e, v))
			}
			return nil
		},
	})
	return answer, err
}
