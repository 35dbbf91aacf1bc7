package authz

import (
	"slices"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// viewers lets the group of viewers read everything but secrets.
type viewers struct{ quiet }

// groupViewers is the group.
const groupViewers = "viewers"

func newViewers(*config.Authorizer, *config.APIServer) registered {
	return registered{authorizer: viewers{}}
}

func (viewers) ask(_ *Answer, u *event.User, a *verdict.Attributes, _ *Moment) stepState {
	reads := a.Verb == request.VerbGet || a.Verb == request.VerbList || a.Verb == request.VerbWatch
	if a.ResourceRequest && reads && a.Resource != "secrets" && slices.Contains(u.Groups, groupViewers) {
		return allowed
	}
	return noOpinion
}

func (viewers) silence(Answer) string { return reason.Viewers }

func (viewers) explain(s *Shortfall, _ Answer, _ *event.User, _ *verdict.Attributes, _ *Moment, _ int) {
	s.Text = "the user is not in the group " + groupViewers + ", or does not read, or reads secrets"
}
