package authz

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// hook is a webhook authorizer. Whether it would be asked follows from its match conditions; its
// answer is in no log.
type hook struct {
	name    string
	asks    *webhook
	unknown string // why it is not known whether it would be asked, "" when it is
}

func newHook(z *config.Authorizer, cfg *config.APIServer) made {
	h := &hook{name: z.Name}
	h.asks, h.unknown = newWebhook(z.Webhook, cfg)
	return made{h, traits{free: true}}
}

func (h *hook) ask(_ *Answer, u *event.User, a *verdict.Attributes, _ *Moment) stepState {
	switch h.asks.asked(u, a) {
	case hookSkipped:
		return skipped
	case hookFailed:
		if h.asks.deny {
			return denied
		}
		return broken
	}
	return unknown
}

func (*hook) silence(Answer) string { return "" }

// missing words an answer that cannot be asked for again.
func (h *hook) missing(Answer) string {
	if h.unknown != "" {
		return "not-evaluable:webhook " + h.name + " (" + h.unknown + ")"
	}
	return "not-evaluable:webhook " + h.name
}

func (h *hook) explain(s *Shortfall, _ Answer, u *event.User, a *verdict.Attributes, _ *Moment, _ int) {
	s.Text = h.shortfall(s.Answer, u, a)
}
