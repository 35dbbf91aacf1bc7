package authn

// Contradictions on the recorded identity, and on other things an event says twice. The set is
// closed; docs/identity.md says of each what it means, and whether it is a contradiction or a use worth knowing.
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
