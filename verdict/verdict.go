// Package verdict defines the records of what is decided and what is stored: a Verdict with all its
// parts, the closed sets of names its fields take, the Row that carries it, and what the store and
// its readers exchange besides rows.
//
// They are plain values. The engine makes them, the store keeps them, analyses read them, and none
// of the three needs to know another.
package verdict

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Outcome is the kind of a verdict.
type Outcome uint8

// Outcomes. See docs/verdicts.md for the exact rules.
const (
	OutcomeNotJudged     Outcome = iota // the event records no authorization decision
	OutcomeMatch                        // decisions equal, recorded reason explained
	OutcomeDrift                        // decisions differ, or the recorded reason is unexplained
	OutcomeAmbiguous                    // policy or configuration changed inside the window and the answers differ; one agrees
	OutcomeIndeterminate                // something needed to decide is not known; Missing names it
)

var outcomes = [...]string{"not_judged", "match", "drift", "ambiguous", "indeterminate"} //nolint:gochecknoglobals // constant table

// String returns the outcome as it is printed and stored.
func (o Outcome) String() string { return outcomes[o] }

// OutcomeOf returns the outcome of a name, not_judged for any other text.
func OutcomeOf(name string) Outcome { return Outcome(max(0, slices.Index(outcomes[:], name))) }

// OutcomeNames returns the names of all outcomes.
func OutcomeNames() []string { return outcomes[:] }

// Grant is one granting path: a subject of a binding, the binding, and the rule of its role
// that allows the request. It is a plain value, detached from the snapshot it came from, so
// that it can be stored and read back.
type Grant struct {
	BindingKind      string // "ClusterRoleBinding" or "RoleBinding"
	BindingNamespace string // empty for a ClusterRoleBinding
	Binding          string
	RoleKind         string // "ClusterRole" or "Role"
	Role             string
	SubjectKind      string // "User", "Group" or "ServiceAccount"
	SubjectNamespace string // service accounts only
	Subject          string
	Rule             int    // index of the first rule of the role that allows the request
	Reason           string // what the apiserver prints when it names this grant
}

// Verdict is the product of a replay.
type Verdict struct {
	Outcome Outcome
	// Class refines the outcome; a closed set, see class.go. Empty for a plain match.
	Class string
	// Cause is one line for people: what is missing, which object version made the answers differ,
	// why there is nothing to judge.
	Cause string

	Recorded       Decision
	RecordedReason string
	// Replayed is the replica's decision. If a webhook authorizer was asked, it is what the others
	// decide: no log holds the webhook's answer. Chain shows it.
	Replayed Decision
	// Authorizer that decided in the replica, by its name in the configured chain: "masters",
	// "node", "rbac", "abac", "alwaysallow", a webhook's name; "" if none did.
	Authorizer string
	// Grants are every granting path, empty unless RBAC allows. They are shared with other
	// verdicts and must not be modified.
	Grants []Grant
	Errors []string // missing roles, in the authorizer's words
	// Missing is what an indeterminate verdict would need, most useful first.
	Missing []string

	// Attributes of the request as the authorizer saw them (from verb and requestURI).
	Attributes Attributes

	// Impersonation is the second check of an impersonated request; nil if there is none.
	Impersonation *ImpersonationCheck

	// Identity lists contradictions in the recorded identity, and in what the event records twice,
	// by name (for example "sa-groups-mismatch"); nil if there are none. They change no
	// outcome. See package authn for the closed set.
	Identity []string
	// Evidence explains each entry of Identity in one line: what contradicts what.
	Evidence []string
	// Explained names the authenticators that can have produced the identity, in the order
	// in which the apiserver asks them; empty if none can, or when nobody authenticated.
	Explained []string
	// Credential identifies what the user authenticated with, as far as the event shows:
	// "JTI=<id>", "X509SHA256=<fingerprint>", "Secret=<namespace>/<name>" for a legacy token; "" if
	// it does not.
	Credential string

	// Chain is what each authorizer of the configured chain answered, in order; nil when
	// nobody was authorized. It is shared with other verdicts and must not be modified.
	Chain []ChainStep
	// Implied are the checks the apiserver makes behind the authorization filter, which
	// leave no event of their own; nil if the request implies none.
	Implied []Implied
	// Binds are the roles that a written binding gives, or may give, as the replica knows it: a patch
	// does not name the role. Each is "ClusterRole/name" or "Role/namespace/name"; BindsAny stands for
	// any.
	Binds []string
	// Review is the answer recorded in a SubjectAccessReview or TokenReview compared with
	// the replica's; nil for other requests.
	Review *ReviewCheck

	// Admission is what admission did to the request, as far as it is known.
	Admission Admission

	// Revision is the state's policy revision the verdict was reached at; a later revision
	// that changes the answer replaces the verdict by a correction.
	Revision uint64
	// Engine and Config are the versions of the replica's code and configuration.
	Engine, Config string
}

// Implied is one check behind the authorization filter, for example the right to create
// pods/exec of a websocket, or bind on the role of a new binding.
type Implied struct {
	// Check names the kind of check, a closed set, see Checks. It is about the effective user,
	// except for CheckImpersonation: that is about the authenticated user, who wants to act as
	// another.
	Check string
	// Attributes the authorizer was asked for; without a verb if the event does not hold enough to
	// derive them, and Missing says what.
	Attributes Attributes
	// Replayed is the replica's answer; Recorded is what the response shows of it, none if it does
	// not show it.
	Replayed, Recorded Decision
	// Covered means that the check passes without the verb: the subject holds the rules it would
	// grant.
	Covered bool
	// Wanted are the rules that a written role would grant, with full authority where it has, or had, an aggregationRule; nil for
	// other checks.
	Wanted []rbacv1.PolicyRule
	// Perhaps says why it is not certain that the apiserver asked, "" if it is. Such a check
	// contradicts nothing.
	Perhaps string
	Grants  []Grant
	Missing []string
}

// ByRequestor reports whether the check is about the authenticated user, who wants to act as
// another, and not about the effective one.
func (c *Implied) ByRequestor() bool { return c.Check == CheckImpersonation }

// ReviewCheck compares the answer recorded in a review with the replica's.
type ReviewCheck struct {
	Kind       string // "SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview" or "TokenReview"
	User       string // whom the review asks about; for a TokenReview who was found
	Groups     []string
	Attributes Attributes // asked for; zero for a TokenReview
	Recorded   Decision   // for a TokenReview: authenticated or not
	Replayed   Decision
	Reason     string // recorded
	// Outcome is as for a verdict; Cause says what differs or what is missing.
	Outcome Outcome
	Cause   string
}

// AddContradiction adds a contradiction with its evidence.
func (v *Verdict) AddContradiction(name, evidence string) {
	v.Identity, v.Evidence = append(v.Identity, name), append(v.Evidence, evidence)
}

// Clip bounds text quoted from an event: clients choose its length.
func Clip(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// BindsAny is in Verdict.Binds if the binding may give any role.
const BindsAny = "?"

// Decision is an authorization outcome, recorded or replayed. The zero value is "none", so a
// forgotten assignment never reads as an allow.
type Decision uint8

// Decisions.
const (
	DecisionNone   Decision = iota // no decision recorded, or none could be reached
	DecisionAllow                  // an authorizer allowed it
	DecisionForbid                 // one refused it, or none allowed it
	DecisionError                  // an authorizer failed and none allowed it: 500, and no decision
)

// decisions are their names; allow and forbid are the audit annotation's own words.
var decisions = [...]string{"none", "allow", "forbid", "error"} //nolint:gochecknoglobals // constant table

// String returns the decision as it is printed and stored.
func (d Decision) String() string { return decisions[d] }

// DecisionOf returns the decision of a name, none for any other text.
func DecisionOf(name string) Decision { return Decision(max(0, slices.Index(decisions[:], name))) }

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

// Attributes are the authorization attributes rebuilt from an event's verb and requestURI.
type Attributes struct {
	Verb            string
	ResourceRequest bool
	APIGroup        string
	APIVersion      string
	Resource        string
	Subresource     string
	Namespace       string
	Name            string
	Path            string // decoded, without the query; non-resource requests only
	LabelSelector   string // raw, list/watch/deletecollection only
	FieldSelector   string // raw, list/watch/deletecollection only
}

// Question returns a check in words, for people.
func (a *Attributes) Question() string {
	s := a.what()
	if a.ResourceRequest && a.Name != "" {
		s += " " + a.Name
	}
	if a.ResourceRequest && a.Namespace != "" {
		s += " in " + a.Namespace
	}
	return s
}

// what returns the verb, and the resource or path.
func (a *Attributes) what() string {
	if !a.ResourceRequest {
		return a.Verb + " " + a.Path
	}
	s := a.Verb + " " + a.Resource
	if a.APIGroup != "" {
		s += "." + a.APIGroup
	}
	if a.Subresource != "" {
		s += "/" + a.Subresource
	}
	return s
}
