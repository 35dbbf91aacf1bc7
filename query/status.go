package query

import (
	"context"

	"github.com/retrial-io/retrial/replay"
)

// StatusRequest asks how far the replay is behind.
type StatusRequest struct {
	Asks[StatusAnswer] `question:"status"`
}

// StatusAnswer says how far the replay is behind; if all are 0, everything accepted is stored and finally judged.
type StatusAnswer struct {
	Version     string `json:"version"`       // of the server
	Lag         int64  `json:"lag"`           // events accepted and not yet stored
	PolicyLag   int64  `json:"policyLag"`     // policy records not yet applied
	DeadLetters int64  `json:"deadLetterLag"` // records that could not be read, not yet stored
	Corrections int64  `json:"corrections"`   // requests waiting to be judged again
	// CacheLags says what was learnt of each apiserver's cache lag, in nanoseconds.
	CacheLags []replay.Lag `json:"cacheLags"`
}

// Status answers how far the replay is behind.
func (a *Service) Status(context.Context, StatusRequest) (StatusAnswer, error) {
	lag, lags := a.Replay.Lag(), []replay.Lag{}
	if learnt, ok := a.Replay.(interface{ Lags() []replay.Lag }); ok {
		lags = append(lags, learnt.Lags()...)
	}
	return StatusAnswer{a.Version, lag.Events, lag.Policy, lag.DeadLetters, lag.Corrections, lags}, nil
}

// DrainedRequest waits until everything that was accepted before it is stored.
type DrainedRequest struct {
	Asks[DrainedAnswer] `question:"drained"`
}

// DrainedAnswer is empty: that it arrives says that everything is stored.
type DrainedAnswer struct{}

// Drained answers when everything that was accepted before the question is stored.
func (a *Service) Drained(ctx context.Context, _ DrainedRequest) (DrainedAnswer, error) {
	return DrainedAnswer{}, a.settled(ctx)
}
