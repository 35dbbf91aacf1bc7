package authz

import (
	"github.com/retrial-io/retrial/verdict"
)

// maxRemembered bounds the answers a chain remembers the wording of.
const maxRemembered = 64

// Steps returns every authorizer in the order in which they are asked with its answer. The
// slice is shared and must not be modified.
func (ans *Answer) Steps() []verdict.ChainStep {
	c := ans.chain
	if ans.node.Reason != "" || ans.node.Missing != "" || ans.RBAC.TooCostly || len(ans.unseen) > 0 ||
		ans.by < 0 && len(ans.RBAC.Missing) > 0 {
		return ans.wordSteps()
	}
	known := c.steps.known.Load()
	if known != nil {
		for i := range *known {
			if (*known)[i].code == ans.code {
				return (*known)[i].steps
			}
		}
	}
	steps := ans.wordSteps()
	if ans.by < 0 && ans.RBAC.Reason() != "" {
		return steps // errors of other kinds than missing roles
	}
	var next []wordedSteps
	if known != nil {
		next = append(next, *known...)
	}
	if len(next) < maxRemembered {
		next = append(next, wordedSteps{ans.code, steps})
		c.steps.known.CompareAndSwap(known, &next) // who comes second words it again
	}
	return steps
}

func (ans *Answer) wordSteps() []verdict.ChainStep {
	steps := make([]verdict.ChainStep, len(ans.chain.links))
	for i := range steps {
		l := &ans.chain.links[i]
		s := verdict.ChainStep{Authorizer: l.name, Answer: verdict.AnswerNotAsked}
		switch ans.state(i) {
		case noOpinion:
			s.Answer = verdict.AnswerNoOpinion
			if ans.by < 0 || !l.rbac() { // RBAC's errors are of refusals
				s.Reason = l.silence(*ans)
			}
		case allowed:
			s.Answer = verdict.AnswerAllow
		case denied:
			s.Answer = verdict.AnswerDeny
		case skipped:
			s.Answer = verdict.AnswerSkipped
		case broken:
			s.Answer = verdict.AnswerFailed
		case unknown:
			s.Answer, s.Reason = verdict.AnswerUnknown, l.missing(*ans)
		}
		steps[i] = s
	}
	return steps
}
