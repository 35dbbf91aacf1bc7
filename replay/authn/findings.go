package authn

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
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

// Findings checks that the recorded user could have been produced by the
// authenticators of a kube-apiserver: names, groups and extra have fixed shapes for the
// identities Kubernetes itself issues. It looks at the event alone and returns findings in
// a fixed order, nil when nothing is wrong.
//
// minor is the Kubernetes minor version of the apiserver, 0 for a current one.
func Findings(e *event.Event, minor int) (out []string) {
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
		case GroupAuthenticated:
			authenticated++
		case GroupUnauthenticated:
			unauthenticated = true
		case GroupMasters:
			masters = true
		case GroupNodes:
			nodes = true
		}
	}
	credential := u.Extra.Get(ExtraCredentialID)
	if len(credential) > 0 && !credentialShaped(credential) {
		out = append(out, FindingCredentialFormat)
	}

	system := strings.HasPrefix(u.Username, "system:")
	switch {
	case u.Username == UserAnonymous:
		if u.UID != "" || len(u.Groups) != 1 || !unauthenticated {
			out = append(out, FindingAnonymous)
		}
		return out
	case u.Username == UserLoopback:
		if len(u.Groups) != 2 || u.Groups[0] != GroupAuthenticated || u.Groups[1] != GroupMasters ||
			u.UID == "" || len(credential) > 0 || !fromLoopback(e.SourceIPs) {
			out = append(out, FindingLoopback)
		}
		return out
	case system && strings.HasPrefix(u.Username, PrefixServiceAccount):
		out = serviceAccountFindings(out, e, credential, minor)
	case system && strings.HasPrefix(u.Username, PrefixNode):
		if !nodes || len(u.Username) == len(PrefixNode) {
			out = append(out, FindingNodeMalformed)
		}
	case system && strings.HasPrefix(u.Username, PrefixBootstrap):
		if !bootstrapGroups(u.Groups) {
			out = append(out, FindingBootstrapGroups)
		}
	case system && !componentName(u.Username):
		out = append(out, FindingReservedName)
	}
	if nodes && !strings.HasPrefix(u.Username, PrefixNode) {
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
	namespace, _, ok, _ := SplitServiceAccount(u.Username)
	if !ok {
		return append(out, FindingSAMalformed)
	}
	if !ServiceAccountGroups(u.Groups, namespace) {
		out = append(out, FindingSAGroups)
	}
	if (len(u.Extra.Get(ExtraPodName)) == 0) != (len(u.Extra.Get(ExtraPodUID)) == 0) {
		out = append(out, FindingSAPodPartial)
	}
	_, legacy := e.Annotations.Get(AnnotationLegacyToken)
	if legacy {
		out = append(out, FindingSALegacyToken)
	}
	if _, stale := e.Annotations.Get(AnnotationStaleToken); stale {
		out = append(out, FindingStaleToken)
	}
	// Credential IDs came with 1.32; before, a token left no trace.
	if !legacy && len(credential) == 0 && (minor == 0 || minor >= 32) {
		out = append(out, FindingSANoCredential)
	}
	return out
}

// bootstrapGroups: system:bootstrappers, any number below it, and system:authenticated.
func bootstrapGroups(groups []string) bool {
	for _, g := range groups {
		if g != GroupBootstrappers && g != GroupAuthenticated && !strings.HasPrefix(g, GroupBootstrappers+":") {
			return false
		}
	}
	return slices.Contains(groups, GroupBootstrappers)
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
