package authz

import "sync/atomic"

// Answers of an authorizer in a Step.
const (
	AnswerAllow     = "allow"
	AnswerNoOpinion = "no opinion" // it leaves the question to the next
	AnswerUnknown   = "unknown"    // it was asked; something needed to answer is not known
	AnswerNotAsked  = "not asked"  // an earlier authorizer decided
	AnswerSkipped   = "skipped"    // a webhook's match conditions leave the request out
	AnswerFailed    = "failed"     // a match condition failed, and the policy is to go on
	AnswerDeny      = "deny"       // a match condition failed, and the policy is to refuse
)

// Step is what one authorizer of a chain answered.
type Step struct {
	Authorizer string `json:"authorizer"` // by its name in the configuration
	Answer     string `json:"answer"`     // one of the Answer constants
	// Reason is what it adds to the reason of a refusal; of an unknown answer, what is
	// missing. RBAC's reasons for an allow are those of its grants.
	Reason string `json:"reason,omitempty"`
}

// maxRemembered bounds the answers a chain remembers the wording of.
const maxRemembered = 64

// stepMemory keeps the steps of answers that say nothing particular, which nearly all are:
// they are shared by all verdicts.
type stepMemory struct {
	known atomic.Pointer[[]wordedSteps]
}

type wordedSteps struct {
	code  uint64
	steps []Step
}

// Steps returns every authorizer in the order in which they are asked with its answer. The
// slice is shared and must not be modified.
func (ans *Answer) Steps() []Step {
	c := ans.chain
	if ans.node.Reason != "" || ans.node.Missing != "" || len(ans.unseen) > 0 || ans.by < 0 && len(ans.RBAC.Missing) > 0 {
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

func (ans *Answer) wordSteps() []Step {
	steps := make([]Step, len(ans.chain.links))
	for i := range steps {
		l := &ans.chain.links[i]
		s := Step{Authorizer: l.name, Answer: AnswerNotAsked}
		switch ans.state(i) {
		case noOpinion:
			s.Answer = AnswerNoOpinion
			if l.kind != kindRBAC {
				s.Reason = ans.silence(l)
			} else if ans.by < 0 {
				s.Reason = ans.RBAC.Reason()
			}
		case allowed:
			s.Answer = AnswerAllow
		case denied:
			s.Answer = AnswerDeny
		case skipped:
			s.Answer = AnswerSkipped
		case broken:
			s.Answer = AnswerFailed
		case unknown:
			s.Answer, s.Reason = AnswerUnknown, ans.unknownReason(l)
		}
		steps[i] = s
	}
	return steps
}

func (ans *Answer) unknownReason(l *link) string {
	switch l.kind {
	case kindNode:
		return ans.node.Missing
	case kindRBAC:
		if len(ans.unseen) == 0 {
			return noObjects
		}
		return ans.unseen[0]
	case kindWebhook:
		return l.missing()
	}
	return l.unknown
}
