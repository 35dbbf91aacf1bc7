package authz

import (
	"strconv"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// newUnmodelled stands for what nobody knows the answers of.
func newUnmodelled(what string) registered {
	return registered{unmodelled{what: what}, traits{screens: true}}
}

// unmodelled is an authorizer that is not known, or several.
type unmodelled struct {
	quiet
	what string
}

func (x unmodelled) ask(ans *Answer, _ *event.User, _ *verdict.Attributes, _ *Moment) stepState {
	ans.lack(LackConfig)
	return unknown
}

func (x unmodelled) missing(Answer) string { return x.what }

func (x unmodelled) explain(s *Shortfall, _ Answer, _ *event.User, _ *verdict.Attributes, _ *Moment, _ int) {
	s.Text = "not known: " + x.what
}

func unmodelledType(z *config.Authorizer) registered {
	if z.Unknown != "" {
		return newUnmodelled(z.Unknown)
	}
	return newUnmodelled("what an authorizer of type " + strconv.Quote(string(z.Type)) + " does")
}
