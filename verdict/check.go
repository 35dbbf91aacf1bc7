package verdict

import "strings"

// Kinds of checks. The set is closed; docs/implied.md says what each is.
const (
	CheckWebsocket       = "websocket-create"
	CheckRoleEscalate    = "role-escalate"
	CheckRoleBind        = "role-bind"
	CheckCreateOnUpdate  = "create-on-update"
	CheckSignerApprove   = "signer-approve"
	CheckSignerSign      = "signer-sign"
	CheckSignerAttest    = "signer-attest"
	CheckOwnerDelete     = "owner-delete"
	CheckOwnerFinalizers = "owner-finalizers"
	CheckPolicyParam     = "policy-param"
	CheckClaimBinding    = "claim-binding"
	CheckClaimDriver     = "claim-driver"
	CheckUnsafeDelete    = "unsafe-delete"
	CheckTokenAudience   = "token-audience"
	CheckImpersonation   = "impersonation"
)

// ImpersonationCheck is the replica's answer to "may the requestor act as this user?". The single
// checks behind it are in Verdict.Implied.
type ImpersonationCheck struct {
	Replayed Decision
	// Recorded is allow when the event names an impersonated user, forbid when the response
	// refuses it.
	Recorded Decision
	// Mode is "legacy" or the recorded constraint, for example "impersonate:user-info"; of a
	// refusal the mode that the message names.
	Mode    string
	Grants  []Grant  // by RBAC, of the checks that needed it
	Missing []string // pieces of the identity that nobody grants, or what is not known
	// Cause says in one line what a refusal shows and whether the replica would have refused too;
	// "" if the impersonation was allowed.
	Cause string
}

// CompleteImpersonation fills in the part of the impersonation check that is not stored, because it
// follows from the rest of the verdict: what is recorded, and the cause of a refusal. acting
// reports whether the event names an impersonated user.
func (v *Verdict) CompleteImpersonation(acting bool) {
	check := v.Impersonation
	if check == nil {
		return
	}
	if acting {
		check.Recorded = DecisionAllow
		return
	}
	check.Recorded = DecisionForbid
	for i := range v.Implied {
		c := &v.Implied[i]
		if c.Check != CheckImpersonation || c.Recorded != DecisionForbid {
			continue
		}
		check.Cause = "refused at " + Clip(c.Attributes.Question())
		switch c.Replayed {
		case DecisionForbid:
			check.Cause += ", and by the policy"
		case DecisionAllow:
			check.Cause += ", which the policy allows"
		default:
			check.Cause += "; not known: " + strings.Join(c.Missing, ", ")
		}
		return
	}
	switch {
	case v.Class == ClassImpersonationBad:
		check.Cause = "groups, uid or extra without a user name are never permitted"
	case check.Replayed == DecisionForbid:
		check.Cause = "constrained impersonation refuses this whatever the policy is"
	default:
		check.Cause = "the message does not say what was refused"
	}
}
