package authz

import (
	"slices"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/verdict"
)

// masters let the privileged group do everything. They are the first of every chain.
type masters struct{ quiet }

func newMasters() registered { return registered{masters{}, traits{local: true, safe: true}} }

func (masters) ask(_ *Answer, u *event.User, _ *verdict.Attributes, _ *Moment) stepState {
	if slices.Contains(u.Groups, authn.GroupMasters) {
		return allowed
	}
	return noOpinion
}

func (masters) explain(s *Shortfall, _ Answer, _ *event.User, _ *verdict.Attributes, _ *Moment, _ int) {
	s.Text = "the user is not in the group " + authn.GroupMasters
}
