package authz

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/verdict"
)

// abacFile is the ABAC authorizer, of a policy file.
type abacFile struct {
	lines   *abacIndex // nil: the file is not known
	unknown string     // what is not known then
}

func newABACFile(z *config.Authorizer, cfg *config.APIServer) registered {
	x := &abacFile{newABAC(z.Policy, cfg.Minor), z.Unknown}
	if x.lines == nil && x.unknown == "" {
		x.unknown = "the ABAC policy file"
	}
	return registered{x, traits{silent: true}}
}

func (x *abacFile) ask(ans *Answer, u *event.User, a *verdict.Attributes, _ *Moment) stepState {
	if x.lines == nil {
		ans.lack(LackConfig)
		return unknown
	}
	if ans.Line = x.lines.allows(u, a); ans.Line > 0 {
		return allowed
	}
	return noOpinion
}

func (*abacFile) silence(Answer) string { return reason.ABAC }

func (x *abacFile) missing(Answer) string { return x.unknown }

func (x *abacFile) explain(s *Shortfall, _ Answer, u *event.User, a *verdict.Attributes, _ *Moment, limit int) {
	if x.lines == nil {
		s.Text = "not known: " + x.unknown
		return
	}
	s.Text = "no line of the policy file allows it"
	s.Almost = x.lines.almost(u, a, limit)
}
