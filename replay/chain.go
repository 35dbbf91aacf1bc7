package replay

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authz/node"
)

// Answers of an authorizer in a ChainStep.
const (
	AnswerAllow     = "allow"
	AnswerNoOpinion = "no opinion" // what every authorizer of the chain says that does not allow
	AnswerUnknown   = "unknown"    // something needed to answer is not known
	AnswerNotAsked  = "not asked"  // an earlier authorizer decided
)

// Steps returns the authorizers in the order they are asked with their answers, as they
// follow from the verdict on e. It is empty when nobody was authorized.
func (v *Verdict) Steps(e *event.Event) []ChainStep {
	u := e.EffectiveUser()
	if u.Username == "" || v.Replayed == DecisionNone && len(v.Missing) == 0 {
		return nil
	}
	steps := []ChainStep{{Authorizer: AuthorizerMasters, Answer: AnswerNoOpinion}, {Authorizer: AuthorizerNode, Answer: AnswerNoOpinion}, {Authorizer: AuthorizerRBAC, Answer: AnswerNoOpinion}}
	if v.Replayed == DecisionNone {
		// What is missing is the graph's alone, or RBAC's and perhaps the graph's as well.
		if node.Is(u.Username, u.Groups) {
			steps[1].Answer = AnswerUnknown
		}
		if v.Class != ClassNodeGraph {
			steps[2].Answer = AnswerUnknown
		}
		return steps
	}
	decided := false
	for i := range steps {
		switch {
		case decided:
			steps[i].Answer = AnswerNotAsked
		case steps[i].Authorizer == v.Authorizer:
			steps[i].Answer, decided = AnswerAllow, true
		}
	}
	return steps
}
