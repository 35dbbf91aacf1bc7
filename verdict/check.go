package verdict

// Kinds of checks. The set is closed.
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

// CheckInfo is a kind of check with its one-line explanation.
type CheckInfo struct{ Name, Text string }

// Checks returns every kind, in the order in which they are documented.
func Checks() []CheckInfo {
	return []CheckInfo{
		{CheckWebsocket, "exec, attach or port-forward by GET: create on the same subresource"},
		{CheckRoleEscalate, "writing a role: escalate on it, or holding all of its rules"},
		{CheckRoleBind, "writing a binding: bind on its role, or holding all of the role's rules"},
		{CheckCreateOnUpdate, "an update or patch that created its object: create, with the name"},
		{CheckSignerApprove, "approving a certificate signing request: approve on its signer, or on every signer of its domain"},
		{CheckSignerSign, "issuing a certificate: sign on the signer, or on every signer of its domain"},
		{CheckSignerAttest, "writing a trust bundle with a signer: attest on it, or on every signer of its domain"},
		{CheckOwnerDelete, "changing owner references: delete on the object itself"},
		{CheckOwnerFinalizers, "owner references that block deletion: update on the owner's finalizers, or on those of everything"},
		{CheckPolicyParam, "an admission policy with parameters, or its binding: reading the parameters"},
		{CheckClaimBinding, "allocating or reserving a resource claim: the same verb on resourceclaims/binding"},
		{CheckClaimDriver, "a driver's device status in a resource claim: associated-node or arbitrary-node on resourceclaims/driver"},
		{CheckUnsafeDelete, "a delete that ignores read errors: unsafe-delete-ignore-read-errors"},
		{CheckTokenAudience, "a node's token request for an audience its pod does not mount: request-serviceaccounts-token-audience"},
		{CheckImpersonation, "acting as another user: impersonate on each piece of the identity, checked for the requestor"},
	}
}
