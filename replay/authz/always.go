package authz

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/verdict"
)

// alwaysAllow allows everything.
type alwaysAllow struct{ quiet }

func newAlwaysAllow(*config.Authorizer, *config.APIServer) registered {
	return registered{authorizer: alwaysAllow{}}
}

func (alwaysAllow) ask(*Answer, *event.User, *verdict.Attributes, *Moment) stepState { return allowed }

func (alwaysAllow) explain(*Shortfall, Answer, *event.User, *verdict.Attributes, *Moment, int) {}

// alwaysDeny has no opinion on anything, and says so.
type alwaysDeny struct{ quiet }

func newAlwaysDeny(*config.Authorizer, *config.APIServer) registered {
	return registered{authorizer: alwaysDeny{}}
}

func (alwaysDeny) ask(*Answer, *event.User, *verdict.Attributes, *Moment) stepState { return noOpinion }

func (alwaysDeny) silence(Answer) string { return reason.AlwaysDeny }

func (alwaysDeny) explain(s *Shortfall, _ Answer, _ *event.User, _ *verdict.Attributes, _ *Moment, _ int) {
	s.Text = "allows nothing; those behind it may"
}
