package authz

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// webhookAuthorizer asks a server. Whether it would follows from the match conditions; the
// answer is in no log.
type webhookAuthorizer struct {
	name    string
	asks    *webhook
	unknown string // why it is not known whether it would be asked, "" if it is
}

func newWebhookAuthorizer(z *config.Authorizer, cfg *config.APIServer) registered {
	h := &webhookAuthorizer{name: z.Name}
	h.asks, h.unknown = newWebhook(z.Webhook, cfg)
	return registered{h, traits{free: true}}
}

func (h *webhookAuthorizer) ask(_ *Answer, u *event.User, a *verdict.Attributes, _ *Moment) stepState {
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

func (*webhookAuthorizer) silence(Answer) string { return "" }

// missing words an answer that cannot be asked for again.
func (h *webhookAuthorizer) missing(Answer) string {
	if h.unknown != "" {
		return "not-evaluable:webhook " + h.name + " (" + h.unknown + ")"
	}
	return "not-evaluable:webhook " + h.name
}

func (h *webhookAuthorizer) explain(s *Shortfall, _ Answer, u *event.User, a *verdict.Attributes, _ *Moment, _ int) {
	s.Text = h.shortfall(s.Answer, u, a)
}
