package authn

// Findings on the recorded identity, and on other things an event says twice. The set is
// closed: All lists it with what each means, and docs/identity.md documents it.
const (
	// The event contradicts itself.
	FindingVerb              = "event-verb-inconsistent"
	FindingObjectRef         = "objectref-uri-mismatch"
	FindingReasonOrder       = "rbac-reason-order"
	FindingImpersonatedRoot  = "impersonation-masters"
	FindingImpersonatedMode  = "impersonation-mode-mismatch"
	FindingAnonymousImposter = "impersonation-by-anonymous"

	// Shapes the apiserver's authenticators give identities.
	FindingEmptyUser        = "empty-username"
	FindingCredentialFormat = "cred-id-format"
	FindingAnonymous        = "anonymous-shape"
	FindingLoopback         = "loopback-shape"
	FindingGroupMissing     = "authenticated-group-missing"
	FindingGroupDuplicate   = "authenticated-group-duplicate"
	FindingGroupBoth        = "both-auth-groups"
	FindingReservedName     = "reserved-system-name"
	FindingMastersExternal  = "masters-external"
	FindingNodeMalformed    = "node-identity-malformed"
	FindingSAMalformed      = "sa-username-malformed"
	FindingSAGroups         = "sa-groups-mismatch"
	FindingSAPodPartial     = "sa-pod-extra-partial"
	FindingSANoCredential   = "sa-no-credential-id"
	FindingSALegacyToken    = "sa-legacy-token-use"
	FindingStaleToken       = "stale-token-use"

	// The identity contradicts the state of the cluster.
	FindingSAUID            = "sa-uid-mismatch"
	FindingSAUnknown        = "sa-unknown"
	FindingSAAfterDeletion  = "sa-token-after-deletion"
	FindingSAPodUnknown     = "sa-pod-binding-unknown"
	FindingSAPodWrong       = "sa-pod-wrong-sa"
	FindingSAPodDeleted     = "sa-pod-deleted"
	FindingSANode           = "sa-node-mismatch"
	FindingSASecretMissing  = "sa-legacy-secret-missing"
	FindingJTIUnissued      = "jti-unissued"
	FindingJTIDrift         = "jti-identity-drift"
	FindingCertDrift        = "cert-identity-drift"
	FindingCertUnknown      = "cert-unknown-issue"
	FindingCertExpired      = "cert-expired-csr"
	FindingNodeUnknown      = "node-unknown"
	FindingBootstrapMissing = "bootstrap-token-missing"
	FindingBootstrapExpired = "bootstrap-token-expired"
	FindingBootstrapGroups  = "bootstrap-token-groups"

	// The identity contradicts the apiserver's configuration.
	FindingStaticRow         = "static-token-row-missing"
	FindingStaticUID         = "static-token-uid-mismatch"
	FindingStaticGroups      = "static-token-groups-mismatch"
	FindingAnonymousDisabled = "anonymous-disabled"
	FindingAnonymousPath     = "anonymous-path-denied"
	FindingAnonymousNotTaken = "anonymous-not-taken"
	FindingOIDCPrefix        = "oidc-prefix-missing"
	FindingOIDCRule          = "oidc-user-rule-refused"
	FindingAnyToken          = "anytoken-enabled"
	FindingUnattributed      = "identity-unattributed"

	// Several events contradict one another; see Trail.
	FindingReusedElsewhere = "sa-token-reused-elsewhere"
	FindingAuditID         = "audit-id-reused"
	FindingFailureBurst    = "authn-failure-burst"

	// The two events of a request through an aggregated API server contradict one another, or
	// one is not there; see Twins.
	FindingBypass             = "aggregation-bypass"
	FindingAggregatedIdentity = "aggregated-identity-mismatch"
)

// Finding is one contradiction with its evidence.
type Finding struct {
	Name string // one of the Finding constants
	// Evidence says in one line what contradicts what, with the uid, version or time it is
	// known by. It may quote the event: what a client chose is hostile text.
	Evidence string
}

// Kinds of findings.
const (
	// KindContradiction is what no apiserver with this configuration and state records.
	KindContradiction = "contradiction"
	// KindUse is a true identity whose use is worth knowing.
	KindUse = "use"
)

// FindingInfo is a finding with its kind and its one-line explanation.
type FindingInfo struct {
	Name, Kind, Text string
}

// All returns every finding, in the order in which they are documented.
func All() []FindingInfo {
	const c, u = KindContradiction, KindUse
	return []FindingInfo{
		{FindingVerb, c, "the recorded verb is not the one the URI leads to"},
		{FindingObjectRef, c, "objectRef differs from the URI in a member that no body fills"},
		{FindingReasonOrder, c, "the reason names a grant that RBAC would have come to later than another one"},
		{FindingImpersonatedRoot, c, "constrained impersonation of system:masters, which is never permitted"},
		{FindingImpersonatedMode, c, "the recorded impersonation mode does not fit the impersonated user"},
		{FindingAnonymousImposter, u, "a request without credentials impersonated somebody"},
		{FindingEmptyUser, c, "no user name on a request that got past authentication"},
		{FindingCredentialFormat, c, "the credential id is neither JTI=… nor X509SHA256=…"},
		{FindingAnonymous, c, "system:anonymous with more than the group system:unauthenticated"},
		{FindingLoopback, c, "system:apiserver in another shape than the apiserver's own token gives it"},
		{FindingGroupMissing, c, "neither system:authenticated nor system:unauthenticated"},
		{FindingGroupDuplicate, c, "system:authenticated twice: only versions before 1.10 add it to a user who has it"},
		{FindingGroupBoth, c, "system:authenticated and system:unauthenticated at once"},
		{FindingReservedName, c, "a user name under system: that no part of Kubernetes has"},
		{FindingMastersExternal, u, "the group system:masters came with a certificate or an identity provider's token"},
		{FindingNodeMalformed, c, "a node's name without the group system:nodes, or the group without the name"},
		{FindingSAMalformed, c, "system:serviceaccount: without a namespace and a name behind it"},
		{FindingSAGroups, c, "the groups are not those of a service account of that namespace"},
		{FindingSAPodPartial, c, "a pod's name without its uid, or the uid without the name"},
		{FindingSANoCredential, c, "a service account without any trace of a token: a token file or a front proxy can forge the name"},
		{FindingSALegacyToken, u, "a service account token from a Secret, which does not expire"},
		{FindingStaleToken, u, "a token past the time after which it should have been renewed"},
		{FindingSAUID, c, "the uid is not that of the service account at that time"},
		{FindingSAUnknown, c, "no service account of that name existed"},
		{FindingSAAfterDeletion, c, "the service account was deleted longer ago than the token cache remembers"},
		{FindingSAPodUnknown, c, "the pod the token is bound to did not exist"},
		{FindingSAPodWrong, c, "the pod the token is bound to runs as another service account"},
		{FindingSAPodDeleted, c, "the pod the token is bound to was gone for longer than tokens outlive it"},
		{FindingSANode, c, "the node in the token is not the pod's, or not the node of that name"},
		{FindingSASecretMissing, c, "the Secret of a legacy token did not exist, or belongs to another service account"},
		{FindingJTIUnissued, c, "the apiserver never issued this token, or did so later"},
		{FindingJTIDrift, c, "one token id with more than one identity"},
		{FindingCertDrift, c, "one certificate with more than one identity"},
		{FindingCertUnknown, c, "a node came with a certificate nobody requested, after it had one that was requested"},
		{FindingCertExpired, c, "the certificate had expired"},
		{FindingNodeUnknown, c, "no Node of that name existed, and the request is none that comes before one does"},
		{FindingBootstrapMissing, c, "no Secret makes this bootstrap token good for authentication"},
		{FindingBootstrapExpired, c, "the bootstrap token had expired"},
		{FindingBootstrapGroups, c, "the groups are not those of the bootstrap token"},
		{FindingStaticRow, c, "no row of the token file has this user, and nothing else explains it"},
		{FindingStaticUID, c, "the token file gives this user another uid"},
		{FindingStaticGroups, c, "the token file gives this user other groups"},
		{FindingAnonymousDisabled, c, "an anonymous request although they are switched off"},
		{FindingAnonymousPath, c, "an anonymous request for a path they are not let in for"},
		{FindingAnonymousNotTaken, c, "a request without credentials was refused although anonymous requests are let in"},
		{FindingOIDCPrefix, c, "a foreign token's user without the prefix of any configured issuer"},
		{FindingOIDCRule, c, "a user that the issuer's own validation rules refuse"},
		{FindingAnyToken, u, "the server takes every token at its word: the identity is the client's own claim"},
		{FindingUnattributed, c, "no configured authenticator can have produced the identity"},
		{FindingReusedElsewhere, c, "a pod's token came from two places at the same time"},
		{FindingAuditID, c, "two different requests under one audit ID"},
		{FindingFailureBurst, u, "many refused credentials from one address"},
		{FindingBypass, c, "a request reached an aggregated API server past the kube-apiserver"},
		{FindingAggregatedIdentity, c, "an aggregated API server took the request for somebody else than the kube-apiserver authorized"},
	}
}
