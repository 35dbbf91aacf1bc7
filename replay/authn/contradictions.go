package authn

// Contradictions on the recorded identity, and on other things an event says twice. The set is
// closed: All lists it with what each means, and docs/identity.md documents it.
const (
	// The event contradicts itself.
	ContradictionVerb              = "event-verb-inconsistent"
	ContradictionObjectRef         = "objectref-uri-mismatch"
	ContradictionReasonOrder       = "rbac-reason-order"
	ContradictionImpersonatedRoot  = "impersonation-masters"
	ContradictionImpersonatedMode  = "impersonation-mode-mismatch"
	ContradictionAnonymousImposter = "impersonation-by-anonymous"

	// Shapes the apiserver's authenticators give identities.
	ContradictionEmptyUser        = "empty-username"
	ContradictionCredentialFormat = "cred-id-format"
	ContradictionAnonymous        = "anonymous-shape"
	ContradictionLoopback         = "loopback-shape"
	ContradictionGroupMissing     = "authenticated-group-missing"
	ContradictionGroupDuplicate   = "authenticated-group-duplicate"
	ContradictionGroupBoth        = "both-auth-groups"
	ContradictionReservedName     = "reserved-system-name"
	ContradictionMastersExternal  = "masters-external"
	ContradictionNodeMalformed    = "node-identity-malformed"
	ContradictionSAMalformed      = "sa-username-malformed"
	ContradictionSAGroups         = "sa-groups-mismatch"
	ContradictionSAPodPartial     = "sa-pod-extra-partial"
	ContradictionSANoCredential   = "sa-no-credential-id"
	ContradictionSALegacyToken    = "sa-legacy-token-use"
	ContradictionStaleToken       = "stale-token-use"

	// The identity contradicts the state of the cluster.
	ContradictionSAUID            = "sa-uid-mismatch"
	ContradictionSAUnknown        = "sa-unknown"
	ContradictionSAAfterDeletion  = "sa-token-after-deletion"
	ContradictionSAPodUnknown     = "sa-pod-binding-unknown"
	ContradictionSAPodWrong       = "sa-pod-wrong-sa"
	ContradictionSAPodDeleted     = "sa-pod-deleted"
	ContradictionSANode           = "sa-node-mismatch"
	ContradictionSASecretMissing  = "sa-legacy-secret-missing"
	ContradictionJTIUnissued      = "jti-unissued"
	ContradictionJTIDrift         = "jti-identity-drift"
	ContradictionCertDrift        = "cert-identity-drift"
	ContradictionCertUnknown      = "cert-unknown-issue"
	ContradictionCertExpired      = "cert-expired-csr"
	ContradictionNodeUnknown      = "node-unknown"
	ContradictionBootstrapMissing = "bootstrap-token-missing"
	ContradictionBootstrapExpired = "bootstrap-token-expired"
	ContradictionBootstrapGroups  = "bootstrap-token-groups"

	// The identity contradicts the apiserver's configuration.
	ContradictionStaticRow         = "static-token-row-missing"
	ContradictionStaticUID         = "static-token-uid-mismatch"
	ContradictionStaticGroups      = "static-token-groups-mismatch"
	ContradictionAnonymousDisabled = "anonymous-disabled"
	ContradictionAnonymousPath     = "anonymous-path-denied"
	ContradictionAnonymousNotTaken = "anonymous-not-taken"
	ContradictionOIDCPrefix        = "oidc-prefix-missing"
	ContradictionOIDCRule          = "oidc-user-rule-refused"
	ContradictionAnyToken          = "anytoken-enabled"
	ContradictionUnattributed      = "identity-unattributed"

	// Several events contradict one another; see Trail.
	ContradictionReusedElsewhere = "sa-token-reused-elsewhere"
	ContradictionAuditID         = "audit-id-reused"
	ContradictionFailureBurst    = "authn-failure-burst"

	// The two events of a request through an aggregated API server contradict one another, or
	// one is not there; see Twins.
	ContradictionBypass             = "aggregation-bypass"
	ContradictionAggregatedIdentity = "aggregated-identity-mismatch"
)

// Contradiction is one of them with its evidence.
type Contradiction struct {
	Name string // one of the Contradiction constants
	// Evidence says in one line what contradicts what, with the uid, version or time it is
	// known by. It may quote the event: what a client chose is hostile text.
	Evidence string
}

// Kinds of a contradiction.
const (
	// KindContradiction is what no apiserver with this configuration and state records.
	KindContradiction = "contradiction"
	// KindUse is a true identity whose use is worth knowing.
	KindUse = "use"
)

// ContradictionInfo describes a contradiction with its kind and its one-line explanation.
type ContradictionInfo struct {
	Name, Kind, Text string
}

// All returns every contradiction, in the order in which they are documented.
func All() []ContradictionInfo {
	const c, u = KindContradiction, KindUse
	return []ContradictionInfo{
		{ContradictionVerb, c, "the recorded verb is not the one the URI leads to"},
		{ContradictionObjectRef, c, "objectRef differs from the URI in a member that no body fills"},
		{ContradictionReasonOrder, c, "the reason names a grant that RBAC would have come to later than another one"},
		{ContradictionImpersonatedRoot, c, "constrained impersonation of system:masters, which is never permitted"},
		{ContradictionImpersonatedMode, c, "the recorded impersonation mode does not fit the impersonated user"},
		{ContradictionAnonymousImposter, u, "a request without credentials impersonated somebody"},
		{ContradictionEmptyUser, c, "no user name on a request that got past authentication"},
		{ContradictionCredentialFormat, c, "the credential id is neither JTI=… nor X509SHA256=…"},
		{ContradictionAnonymous, c, "system:anonymous with more than the group system:unauthenticated"},
		{ContradictionLoopback, c, "system:apiserver in another shape than the apiserver's own token gives it"},
		{ContradictionGroupMissing, c, "neither system:authenticated nor system:unauthenticated"},
		{ContradictionGroupDuplicate, c, "system:authenticated twice: only versions before 1.10 add it to a user who has it"},
		{ContradictionGroupBoth, c, "system:authenticated and system:unauthenticated at once"},
		{ContradictionReservedName, c, "a user name under system: that no part of Kubernetes has"},
		{ContradictionMastersExternal, u, "the group system:masters came with a certificate or an identity provider's token"},
		{ContradictionNodeMalformed, c, "a node's name without the group system:nodes, or the group without the name"},
		{ContradictionSAMalformed, c, "system:serviceaccount: without a namespace and a name behind it"},
		{ContradictionSAGroups, c, "the groups are not those of a service account of that namespace"},
		{ContradictionSAPodPartial, c, "a pod's name without its uid, or the uid without the name"},
		{ContradictionSANoCredential, c,
			"a service account without any trace of a token: a token file or a front proxy can forge the name"},
		{ContradictionSALegacyToken, u, "a service account token from a Secret, which does not expire"},
		{ContradictionStaleToken, u, "a token past the time after which it should have been renewed"},
		{ContradictionSAUID, c, "the uid is not that of the service account at that time"},
		{ContradictionSAUnknown, c, "no service account of that name existed"},
		{ContradictionSAAfterDeletion, c, "the service account was deleted longer ago than the token cache remembers"},
		{ContradictionSAPodUnknown, c, "the pod the token is bound to did not exist"},
		{ContradictionSAPodWrong, c, "the pod the token is bound to runs as another service account"},
		{ContradictionSAPodDeleted, c, "the pod the token is bound to was gone for longer than tokens outlive it"},
		{ContradictionSANode, c, "the node in the token is not the pod's, or not the node of that name"},
		{ContradictionSASecretMissing, c, "the Secret of a legacy token did not exist, or belongs to another service account"},
		{ContradictionJTIUnissued, c, "the apiserver never issued this token, or did so later"},
		{ContradictionJTIDrift, c, "one token id with more than one identity"},
		{ContradictionCertDrift, c, "one certificate with more than one identity"},
		{ContradictionCertUnknown, c, "a node came with a certificate nobody requested, after it had one that was requested"},
		{ContradictionCertExpired, c, "the certificate had expired"},
		{ContradictionNodeUnknown, c, "no Node of that name existed, and the request is none that comes before one does"},
		{ContradictionBootstrapMissing, c, "no Secret makes this bootstrap token good for authentication"},
		{ContradictionBootstrapExpired, c, "the bootstrap token had expired"},
		{ContradictionBootstrapGroups, c, "the groups are not those of the bootstrap token"},
		{ContradictionStaticRow, c, "no row of the token file has this user, and nothing else explains it"},
		{ContradictionStaticUID, c, "the token file gives this user another uid"},
		{ContradictionStaticGroups, c, "the token file gives this user other groups"},
		{ContradictionAnonymousDisabled, c, "an anonymous request although they are switched off"},
		{ContradictionAnonymousPath, c, "an anonymous request for a path they are not let in for"},
		{ContradictionAnonymousNotTaken, c, "a request without credentials was refused although anonymous requests are let in"},
		{ContradictionOIDCPrefix, c, "a foreign token's user without the prefix of any configured issuer"},
		{ContradictionOIDCRule, c, "a user that the issuer's own validation rules refuse"},
		{ContradictionAnyToken, u, "the server takes every token at its word: the identity is the client's own claim"},
		{ContradictionUnattributed, c, "no configured authenticator can have produced the identity"},
		{ContradictionReusedElsewhere, c, "a pod's token came from two places at the same time"},
		{ContradictionAuditID, c, "two different requests under one audit ID"},
		{ContradictionFailureBurst, u, "many refused credentials from one address"},
		{ContradictionBypass, c, "a request reached an aggregated API server past the kube-apiserver"},
		{ContradictionAggregatedIdentity, c,
			"an aggregated API server took the request for somebody else than the kube-apiserver authorized"},
	}
}
