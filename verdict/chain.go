package verdict

// Names of authorizers that are the same in every configuration. Webhooks have names of their
// own.
const (
	AuthorizerMasters     = "masters" // the privileged group
	AuthorizerPaths       = "paths"   // the paths that a delegating server lets through
	AuthorizerNode        = "node"
	AuthorizerRBAC        = "rbac"
	AuthorizerABAC        = "abac"
	AuthorizerAlwaysAllow = "alwaysallow"
	AuthorizerAlwaysDeny  = "alwaysdeny"
)

// Answers of an authorizer in a ChainStep.
const (
	AnswerAllow     = "allow"
	AnswerNoOpinion = "no opinion" // it leaves the decision to the next
	AnswerUnknown   = "unknown"    // it was asked; something needed to answer is not known
	AnswerNotAsked  = "not asked"  // an earlier authorizer decided
	AnswerSkipped   = "skipped"    // a webhook's match conditions leave the request out
	AnswerFailed    = "failed"     // a match condition failed; the policy is to go on
	AnswerDeny      = "deny"       // a match condition failed; the policy is to refuse
)

// ChainStep is what one authorizer of the configured chain answered in the replay.
type ChainStep struct {
	Authorizer string `json:"authorizer"` // by its name in the configuration
	Answer     string `json:"answer"`     // one of the Answer constants
	// Reason is what it adds to the reason of a refusal; if its answer is unknown, what is missing.
	// RBAC's reasons for an allow are those of its grants.
	Reason string `json:"reason,omitempty"`
}
