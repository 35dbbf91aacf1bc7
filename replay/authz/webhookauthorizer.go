package authz

import (
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// webhookAuthorizer asks a server. Whether it would follows from the match conditions; the
// answer is in no log.
type webhookAuthorizer struct {
	quiet
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

// missing words an answer that cannot be asked for again.
func (h *webhookAuthorizer) missing(Answer) string {
	if h.unknown != "" {
		return "not-evaluable:webhook " + h.name + " (" + h.unknown + ")"
	}
	return "not-evaluable:webhook " + h.name
}

// explain names the match condition that keeps a webhook out, or what became of it.
func (h *webhookAuthorizer) explain(s *Shortfall, _ Answer, u *event.User, a *verdict.Attributes, _ *Moment, _ int) {
	if s.Answer == verdict.AnswerUnknown {
		s.Text = "is asked; its answer is in no log (" + h.missing(Answer{}) + ")"
		return
	}
	s.Text = "is not asked"
	for _, r := range h.asks.matcher.CompilationResults {
		one := &webhook{selectors: h.asks.selectors, matcher: &authorizationcel.CELMatcher{
			CompilationResults: []authorizationcel.CompilationResult{r}, UsesFieldSelector: r.UsesFieldSelector,
			UsesLabelSelector: r.UsesLabelSelector,
		}}
		state := one.evaluate(u, a)
		expression := r.ExpressionAccessor.GetExpression()
		switch {
		case s.Answer == verdict.AnswerSkipped && state == hookSkipped:
			s.Text = "is not asked: the match condition " + expression + " is false"
			return
		case s.Answer != verdict.AnswerSkipped && state == hookFailed:
			s.Text = "is passed over, because the match condition " + expression + " failed"
			if h.asks.deny {
				s.Text = "refuses it, because the match condition " + expression + " failed"
			}
			return
		}
	}
}
