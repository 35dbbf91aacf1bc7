package replay

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
)

// Names and groups the apiserver gives meaning to.
const (
	userAnonymous = "system:anonymous"
	userLoopback  = "system:apiserver"

	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	groupMasters         = "system:masters"
	groupNodes           = "system:nodes"
	groupSAs             = "system:serviceaccounts"
	groupBootstrappers   = "system:bootstrappers"

	prefixSA        = "system:serviceaccount:"
	prefixNode      = "system:node:"
	prefixBootstrap = "system:bootstrap:"

	extraCredentialID = "authentication.kubernetes.io/credential-id"
	extraPodName      = "authentication.kubernetes.io/pod-name"
	extraPodUID       = "authentication.kubernetes.io/pod-uid"
	extraNodeName     = "authentication.kubernetes.io/node-name"

	annotationLegacyToken = "authentication.k8s.io/legacy-token"
	annotationStaleToken  = "authentication.k8s.io/stale-token"
)

// Findings on the recorded identity, and on other things an event says twice. The set is
// closed.
const (
	FindingVerb              = "event-verb-inconsistent"
	FindingObjectRef         = "objectref-uri-mismatch"
	FindingReasonOrder       = "rbac-reason-order"
	FindingEmptyUser         = "empty-username"
	FindingSAMalformed       = "sa-username-malformed"
	FindingSAGroups          = "sa-groups-mismatch"
	FindingSAPodPartial      = "sa-pod-extra-partial"
	FindingSANoCredential    = "sa-no-credential-id"
	FindingSALegacyToken     = "sa-legacy-token-use"
	FindingStaleToken        = "stale-token-use"
	FindingSAUID             = "sa-uid-mismatch"
	FindingSAUnknown         = "sa-unknown"
	FindingSAAfterDeletion   = "sa-token-after-deletion"
	FindingNodeMalformed     = "node-identity-malformed"
	FindingMastersExternal   = "masters-external"
	FindingLoopback          = "loopback-shape"
	FindingAnonymous         = "anonymous-shape"
	FindingBootstrapGroups   = "bootstrap-token-groups"
	FindingGroupMissing      = "authenticated-group-missing"
	FindingGroupDuplicate    = "authenticated-group-duplicate"
	FindingGroupBoth         = "both-auth-groups"
	FindingCredentialFormat  = "cred-id-format"
	FindingReservedName      = "reserved-system-name"
	FindingImpersonatedRoot  = "impersonation-masters"
	FindingImpersonatedMode  = "impersonation-mode-mismatch"
	FindingAnonymousImposter = "impersonation-by-anonymous"
)

// splitServiceAccount takes "system:serviceaccount:namespace:name" apart. ok is false when
// the name does not have that prefix or not that shape; prefixed tells the two apart.
func splitServiceAccount(username string) (namespace, name string, ok, prefixed bool) {
	rest, prefixed := strings.CutPrefix(username, prefixSA)
	if !prefixed {
		return "", "", false, false
	}
	namespace, name, cut := strings.Cut(rest, ":")
	if !cut || namespace == "" || name == "" || strings.Contains(name, ":") {
		return "", "", false, true
	}
	return namespace, name, true, true
}

// identityFindings checks that the recorded user could have been produced by the
// authenticators of a kube-apiserver: names, groups and extra have fixed shapes for the
// identities Kubernetes itself issues. It looks at the event alone and returns findings in
// a fixed order, nil when nothing is wrong.
//
// minor is the Kubernetes minor version of the apiserver, 0 for a current one.
func identityFindings(e *event.Event, minor int) (out []string) {
	u := &e.User
	if u.Username == "" {
		if len(u.Groups) > 0 || u.UID != "" {
			out = append(out, FindingEmptyUser)
		}
		return out // nobody: authentication failed
	}

	authenticated, unauthenticated, masters, nodes := 0, false, false, false
	for _, g := range u.Groups {
		switch g {
		case groupAuthenticated:
			authenticated++
		case groupUnauthenticated:
			unauthenticated = true
		case groupMasters:
			masters = true
		case groupNodes:
			nodes = true
		}
	}
	credential := u.Extra.Get(extraCredentialID)
	if len(credential) > 0 && !credentialShaped(credential) {
		out = append(out, FindingCredentialFormat)
	}

	system := strings.HasPrefix(u.Username, "system:")
	switch {
	case u.Username == userAnonymous:
		if u.UID != "" || len(u.Groups) != 1 || !unauthenticated {
			out = append(out, FindingAnonymous)
		}
		return out
	case u.Username == userLoopback:
		if len(u.Groups) != 2 || u.Groups[0] != groupAuthenticated || u.Groups[1] != groupMasters ||
			u.UID == "" || len(credential) > 0 || !fromLoopback(e.SourceIPs) {
			out = append(out, FindingLoopback)
		}
		return out
	case system && strings.HasPrefix(u.Username, prefixSA):
		out = serviceAccountFindings(out, e, credential, minor)
	case system && strings.HasPrefix(u.Username, prefixNode):
		if !nodes || len(u.Username) == len(prefixNode) {
			out = append(out, FindingNodeMalformed)
		}
	case system && strings.HasPrefix(u.Username, prefixBootstrap):
		if !bootstrapGroups(u.Groups) {
			out = append(out, FindingBootstrapGroups)
		}
	case system && !componentName(u.Username):
		out = append(out, FindingReservedName)
	}
	if nodes && !strings.HasPrefix(u.Username, prefixNode) {
		out = append(out, FindingNodeMalformed)
	}
	if masters && len(credential) > 0 {
		out = append(out, FindingMastersExternal)
	}
	switch {
	case authenticated > 0 && unauthenticated:
		out = append(out, FindingGroupBoth)
	case authenticated == 0 && !unauthenticated:
		out = append(out, FindingGroupMissing)
	case authenticated > 1:
		out = append(out, FindingGroupDuplicate)
	}
	return out
}

func serviceAccountFindings(out []string, e *event.Event, credential []string, minor int) []string {
	u := &e.User
	namespace, _, ok, _ := splitServiceAccount(u.Username)
	if !ok {
		return append(out, FindingSAMalformed)
	}
	if !serviceAccountGroups(u.Groups, namespace) {
		out = append(out, FindingSAGroups)
	}
	if (len(u.Extra.Get(extraPodName)) == 0) != (len(u.Extra.Get(extraPodUID)) == 0) {
		out = append(out, FindingSAPodPartial)
	}
	_, legacy := e.Annotations.Get(annotationLegacyToken)
	if legacy {
		out = append(out, FindingSALegacyToken)
	}
	if _, stale := e.Annotations.Get(annotationStaleToken); stale {
		out = append(out, FindingStaleToken)
	}
	// Credential IDs came with 1.32; before, a token left no trace.
	if !legacy && len(credential) == 0 && (minor == 0 || minor >= 32) {
		out = append(out, FindingSANoCredential)
	}
	return out
}

// serviceAccountGroups reports whether these are exactly the three groups of a service
// account token, in any order.
func serviceAccountGroups(groups []string, namespace string) bool {
	if len(groups) != 3 {
		return false
	}
	var all, own, auth bool
	for _, g := range groups {
		switch {
		case g == groupSAs:
			all = true
		case g == groupAuthenticated:
			auth = true
		case len(g) == len(groupSAs)+1+len(namespace) && g[:len(groupSAs)] == groupSAs && g[len(groupSAs)] == ':' && g[len(groupSAs)+1:] == namespace:
			own = true
		}
	}
	return all && own && auth
}

// bootstrapGroups: system:bootstrappers, any number below it, and system:authenticated.
func bootstrapGroups(groups []string) bool {
	for _, g := range groups {
		if g != groupBootstrappers && g != groupAuthenticated && !strings.HasPrefix(g, groupBootstrappers+":") {
			return false
		}
	}
	return slices.Contains(groups, groupBootstrappers)
}

func credentialShaped(values []string) bool {
	if len(values) != 1 {
		return false
	}
	v := values[0]
	if hex, ok := strings.CutPrefix(v, "X509SHA256="); ok {
		return len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.HasPrefix(v, "JTI=") && len(v) > len("JTI=")
}

func fromLoopback(ips []string) bool {
	if len(ips) == 0 {
		return false
	}
	// Only the last entry is the apiserver's own observation.
	ip, err := netip.ParseAddr(ips[len(ips)-1])
	return err == nil && ip.IsLoopback()
}

// componentName lists the user names under "system:" that Kubernetes' own bootstrap policy
// and the usual control-plane components use.
func componentName(username string) bool {
	switch username {
	case "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy", "system:kube-dns",
		"system:volume-scheduler", "system:monitoring", "system:aggregator", "system:cloud-controller-manager",
		"system:konnectivity-server", "system:konnectivity-agent", "system:unsecured", "system:admin":
		return true
	}
	return false
}

// objectRefContradicts reports whether the recorded objectRef names something else than
// the URI. Fields the URI leaves empty are completed from the body and prove nothing.
func objectRefContradicts(ref *event.ObjectRef, a *Attributes) bool {
	if ref == nil || !a.ResourceRequest {
		return false
	}
	differs := func(uri, ref string) bool { return uri != "" && uri != ref }
	return differs(a.Resource, ref.Resource) || differs(a.Subresource, ref.Subresource) || differs(a.Namespace, ref.Namespace) ||
		differs(a.Name, ref.Name) || differs(a.APIGroup, ref.APIGroup) || differs(a.APIVersion, ref.APIVersion)
}
