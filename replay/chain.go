package replay

import "github.com/retrial-io/retrial/replay/authz"

// Answers of an authorizer in a ChainStep.
const (
	AnswerAllow     = authz.AnswerAllow
	AnswerNoOpinion = authz.AnswerNoOpinion // it leaves the question to the next
	AnswerUnknown   = authz.AnswerUnknown   // it was asked; something needed to answer is not known
	AnswerNotAsked  = authz.AnswerNotAsked  // an earlier authorizer decided
	AnswerSkipped   = authz.AnswerSkipped   // a webhook's match conditions leave the request out
	AnswerFailed    = authz.AnswerFailed    // a match condition failed, and the policy is to go on
	AnswerDeny      = authz.AnswerDeny      // a match condition failed, and the policy is to refuse
)
