package release

// Feature is a feature gate that changes a decision, an identity or what is recorded, with
// what it changes.
type Feature struct{ Gate, Changes string }

// Deciding returns the feature gates the replica looks at, by the room of replay that does, in
// the order in which docs/versions.md lists them.
func Deciding() []Feature {
	return []Feature{
		{"AnonymousAuthConfigurableEndpoints", "whether the authentication file may say who is anonymous, and for which paths"},
		{"StructuredAuthenticationConfiguration", "whether `--authentication-config` is read"},
		{"StructuredAuthorizationConfiguration", "whether `--authorization-config` is read"},
		{"AllowParsingUserUIDFromCertAuth", "a client certificate may carry a uid"},
		{"AuthorizeWithSelectors", "authorizers see field and label selectors"},
		{"AuthorizeNodeWithSelectors", "nodes read their own node, pods and resource slices alone"},
		{"KubeletServiceAccountTokenForCredentialProviders", "nodes read the service accounts of their pods"},
		{"PodCertificateRequest", "nodes make and read certificate requests of their pods"},
		{"ClusterTrustBundle", "nodes read trust bundles"},
		{"ConstrainedImpersonation", "impersonation is checked by `impersonate:<mode>` and `impersonate-on:<mode>:<verb>` first"},
		{"AuthorizePodWebsocketUpgradeCreatePermission", "exec, attach and port-forward by websocket need create"},
		{"ServiceAccountNodeAudienceRestriction", "a node's token request for an audience its pod does not mount is checked"},
		{"DRAResourceClaimGranularStatusAuthorization", "writing a resource claim's status is checked by what changes"},
		{"AllowUnsafeMalformedObjectDeletion", "a delete that ignores read errors is checked"},
	}
}
