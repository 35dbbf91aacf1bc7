package verdict

// Classes refine an outcome. The set is closed: metrics, columns and pages may rely on it.
const (
	// Drift.
	ClassAllowForbid      = "recorded-allow-replayed-forbid"
	ClassForbidAllow      = "recorded-forbid-replayed-allow"
	ClassReason           = "unexplained-reason"
	ClassErrorMissed      = "replayed-error"
	ClassErrorForged      = "unexplained-error"
	ClassImpersonation    = "impersonation-not-granted"
	ClassImpersonatedRoot = "impersonation-of-masters"

	// Ambiguous.
	ClassRaced              = "policy-changed-in-window"
	ClassConfigRaced        = "configuration-changed-in-window"
	ClassSeveral            = "several-configurations"
	ClassVersion            = "version-differs"
	ClassImpersonationRaced = "impersonation-changed-in-window"

	// Indeterminate.
	ClassNoState    = "no-state"
	ClassUnknown    = "unknown-object"
	ClassNodeGraph  = "node-graph"
	ClassWebhook    = "webhook-answer"
	ClassConfig     = "unknown-configuration"
	ClassAuthorizer = "unmodelled-authorizer"
	ClassCostly     = "too-costly"
	ClassUnparsable = "unparsable-uri"
	ClassNoSubject  = "no-subject"

	// Not judged.
	ClassRequestReceived     = "request-received-only"
	ClassUnauthenticated     = "unauthenticated"
	ClassBadTimeout          = "bad-timeout"
	ClassImpersonationDenied = "impersonation-refused"
	ClassImpersonationBad    = "impersonation-bad-request"
	ClassTooManyRequests     = "too-many-requests"
	ClassUnavailable         = "unavailable"
	ClassAuthorizerError     = "authorizer-error"
	ClassPanic               = "panic"
	ClassNoDecision          = "no-decision-recorded"
)

// ClassInfo is a class with the outcome it belongs to and its one-line explanation.
type ClassInfo struct {
	Class   string
	Outcome Outcome
	Text    string
}

// Classes returns every class, in the order in which they are documented.
func Classes() []ClassInfo {
	return []ClassInfo{
		{ClassAllowForbid, OutcomeDrift, "the apiserver allowed the request; the policy as it stood does not"},
		{ClassForbidAllow, OutcomeDrift, "the apiserver refused the request; the policy as it stood allows it"},
		{ClassReason, OutcomeDrift, "the decisions agree, but the recorded reason is not one that the policy as it stood gives"},
		{ClassErrorMissed, OutcomeDrift, "the configured authorizers end in an error, which leaves no decision; the " +
			"apiserver recorded one"},
		{ClassErrorForged, OutcomeDrift, "an authorizer's error is recorded, but none of the configured authorizers can fail"},
		{ClassImpersonation, OutcomeDrift, "the request was made as another user, and the policy as it stood does not let the " +
			"requestor act as that user"},
		{ClassImpersonatedRoot, OutcomeDrift, "constrained impersonation of the group system:masters is recorded, which the " +
			"apiserver never permits"},
		{ClassRaced, OutcomeAmbiguous, "the policy changed while the request was on its way, and the answers before and after differ"},
		{ClassConfigRaced, OutcomeAmbiguous, "the apiserver's configuration changed while the request was on its way, or had not been " +
			"read again yet, and the answers before and after differ"},
		{ClassSeveral, OutcomeAmbiguous, "which of several apiservers, or of their versions, answered is not known, and the record " +
			"agrees with another than was assumed"},
		{ClassVersion, OutcomeAmbiguous, "the record agrees with the version that the apiserver's log shows, and not with the " +
			"one that was given"},
		{ClassImpersonationRaced, OutcomeAmbiguous, "the right to impersonate changed while the request was on its way"},
		{ClassNoState, OutcomeIndeterminate, "the cluster's policy at that time is not known (no state, or a gap), or it is older than " +
			"the retained history"},
		{ClassUnknown, OutcomeIndeterminate, "an object that could change the answer is not known at that time"},
		{ClassNodeGraph, OutcomeIndeterminate, "the node authorizer decides by which pods run on the node, which is not known"},
		{ClassWebhook, OutcomeIndeterminate, "only the answer of a webhook authorizer, which no log holds, can explain the record"},
		{ClassConfig, OutcomeIndeterminate, "part of the apiserver's configuration that could change the answer is not known"},
		{ClassAuthorizer, OutcomeIndeterminate, "no built-in authorizer gives the recorded reason: another one, such as " +
			"a cloud's, decided"},
		{ClassCostly, OutcomeIndeterminate, "the policy that applies to the subject is too large to check within the budget of an event"},
		{ClassUnparsable, OutcomeIndeterminate, "the request URI cannot be turned into a request"},
		{ClassNoSubject, OutcomeIndeterminate, "a decision is recorded, but no user"},
		{ClassRequestReceived, OutcomeNotJudged, "only the request's arrival is recorded"},
		{ClassUnauthenticated, OutcomeNotJudged, "authentication failed: nobody was authorized"},
		{ClassBadTimeout, OutcomeNotJudged, "the timeout parameter was refused before authentication"},
		{ClassImpersonationDenied, OutcomeNotJudged, "the requestor was not allowed to impersonate; the request itself " +
			"was never authorized"},
		{ClassImpersonationBad, OutcomeNotJudged, "impersonation headers without a user name"},
		{ClassTooManyRequests, OutcomeNotJudged, "flow control turned the request away before authorization"},
		{ClassUnavailable, OutcomeNotJudged, "the apiserver was unavailable before authorization"},
		{ClassAuthorizerError, OutcomeNotJudged, "an authorizer failed, as a configured one may; no decision was made"},
		{ClassPanic, OutcomeNotJudged, "the handler panicked and no decision is recorded"},
		{ClassNoDecision, OutcomeNotJudged, "the event carries no authorization decision"},
	}
}

// Explain returns the one-line explanation of a class, "" for an unknown class.
func Explain(class string) string {
	for _, c := range Classes() {
		if c.Class == class {
			return c.Text
		}
	}
	return ""
}

// Prefixes of Verdict.Missing of a drift: what could explain the record and is not known.
const (
	DoubtVersion = "the apiserver's version: "
	DoubtObject  = "in doubt: "
)
