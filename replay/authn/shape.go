package authn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/release"
)

// shape checks that the recorded user has the form of what a kube-apiserver's authenticators
// produce: names, groups and extra have fixed shapes for the identities Kubernetes itself
// issues. It looks at the event alone.
func (x *subject) shape(out []Contradiction) []Contradiction {
	if len(x.credentials) > 0 && !x.jti && !x.fingerprint && x.kind != kindNobody {
		out = append(out, Contradiction{ContradictionCredentialFormat, fmt.Sprintf("credential id is %q", x.credentials)})
	}
	switch x.kind {
	case kindNobody:
		return x.nobody(out)
	case kindAnonymous:
		if x.u.UID != "" || len(x.u.Groups) != 1 || !x.unauthenticated {
			out = append(out, Contradiction{ContradictionAnonymous, fmt.Sprintf("%s has groups %q and uid %q; it has the group %s alone",
				UserAnonymous, x.u.Groups, x.u.UID, GroupUnauthenticated)})
		}
		return out
	case kindLoopback:
		if !x.loopbackShaped() && !x.proxied {
			out = append(out, Contradiction{ContradictionLoopback, fmt.Sprintf("%s has uid %q, groups %q, credential id %q and comes "+
				"from %q; it has a uid, the groups %s (since 1.29 to 1.32) and %s in that order, no credential id, and "+
				"comes from its own host",
				UserLoopback, x.u.UID, x.u.Groups, x.credentials, last(x.e.SourceIPs), GroupAuthenticated, GroupMasters)})
		}
		return out
	case kindAccount:
		out = x.accountShape(out)
	case kindNode:
		if !x.nodes || x.name == "" {
			out = append(out, Contradiction{ContradictionNodeMalformed,
				fmt.Sprintf("user %q has groups %q; a node has a name and the group %s", x.u.Username, x.u.Groups, GroupNodes)})
		}
	case kindBootstrap:
		if !bootstrapGroups(x.u.Groups) {
			out = append(out, Contradiction{ContradictionBootstrapGroups,
				fmt.Sprintf("groups %q; a bootstrap token has %s, groups below it, and %s", x.u.Groups, GroupBootstrappers,
					GroupAuthenticated)})
		}
	case kindSystem:
		if !componentName(x.u.Username) {
			out = append(out, Contradiction{ContradictionReservedName, fmt.Sprintf("user %q is none of Kubernetes' own", x.u.Username)})
		}
	}
	if x.nodes && x.kind != kindNode {
		out = append(out, Contradiction{
			ContradictionNodeMalformed, fmt.Sprintf("user %q has the group %s but is not a node", x.u.Username, GroupNodes)})
	}
	if x.masters && len(x.credentials) > 0 {
		out = append(out, Contradiction{ContradictionMastersExternal, fmt.Sprintf("%s has the group %s by %s", x.u.Username, GroupMasters,
			x.credentials[0])})
	}
	switch {
	case x.authenticated > 0 && x.unauthenticated:
		out = append(out, Contradiction{ContradictionGroupBoth, fmt.Sprintf("groups %q", x.u.Groups)})
	case x.authenticated == 0 && !x.unauthenticated:
		out = append(out, Contradiction{ContradictionGroupMissing, fmt.Sprintf("groups %q", x.u.Groups)})
	case x.authenticated > 1 && x.since(10):
		out = append(out, Contradiction{ContradictionGroupDuplicate, fmt.Sprintf("groups %q", x.u.Groups)})
	}
	return out
}

// nobody: an empty user is recorded of requests that did not get past authentication, and of
// those alone.
func (x *subject) nobody(out []Contradiction) []Contradiction {
	if len(x.u.Groups) > 0 || x.u.UID != "" {
		return append(out, Contradiction{ContradictionEmptyUser, fmt.Sprintf("no name with uid %q and groups %q", x.u.UID, x.u.Groups)})
	}
	switch code := x.e.Code(); {
	case !x.since(10): // the port without authentication recorded nobody
		return out
	case code == 401 || code == 400 || code == 0 || x.e.Stage == event.StageRequestReceived:
		return out
	default:
		return append(out, Contradiction{ContradictionEmptyUser, fmt.Sprintf("nobody was authenticated, yet the answer is %d", code)})
	}
}

func (x *subject) accountShape(out []Contradiction) []Contradiction {
	if x.name == "" {
		return append(out, Contradiction{ContradictionSAMalformed, fmt.Sprintf("user %q", x.u.Username)})
	}
	if !ServiceAccountGroups(x.u.Groups, x.namespace) {
		out = append(out, Contradiction{ContradictionSAGroups, fmt.Sprintf("groups %q; a token of namespace %s gives %s, %s:%s and %s",
			x.u.Groups, x.namespace, GroupServiceAccounts, GroupServiceAccounts, x.namespace, GroupAuthenticated)})
	}
	if (x.podName == "") != (x.podUID == "") {
		out = append(out, Contradiction{ContradictionSAPodPartial, fmt.Sprintf("pod name %q, pod uid %q", x.podName, x.podUID)})
	}
	if x.legacy {
		out = append(out, Contradiction{ContradictionSALegacyToken, fmt.Sprintf("token of Secret %s/%s", x.namespace, x.legacySecret)})
	}
	if stale, ok := x.e.Annotations.Get(AnnotationStaleToken); ok {
		out = append(out, Contradiction{ContradictionStaleToken, stale})
	}
	if !x.legacy && len(x.credentials) == 0 && x.since(32) {
		// Credential ids came with 1.32; before, a token left no trace.
		out = append(out, Contradiction{ContradictionSANoCredential, fmt.Sprintf("neither a credential id nor the annotation of a legacy "+
			"token, uid %q", x.u.UID)})
	}
	return out
}

// loopbackShaped reports whether system:apiserver is as the apiserver's own token has it: some
// releases put it into system:masters alone.
func (x *subject) loopbackShaped() bool {
	g, r := x.u.Groups, release.Of(x.minor)
	switch {
	case len(g) == 1 && g[0] == GroupMasters && (x.minor == 0 || r.MayLack(release.LoopbackAuthenticated)):
	case len(g) == 2 && g[0] == GroupAuthenticated && g[1] == GroupMasters && r.Has(release.LoopbackAuthenticated):
	default:
		return false
	}
	return x.u.UID != "" && len(x.u.Extra) == 0 && x.fromLoopback()
}

// bootstrapGroups: system:bootstrappers, any number below it, and system:authenticated.
func bootstrapGroups(groups []string) bool {
	for _, g := range groups {
		if g != GroupBootstrappers && g != GroupAuthenticated && !(len(g) > len(GroupBootstrappers) &&
			g[:len(GroupBootstrappers)] == GroupBootstrappers && g[len(GroupBootstrappers)] == ':') {
			return false
		}
	}
	return slices.Contains(groups, GroupBootstrappers)
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// componentName lists the user names under "system:" that Kubernetes' own bootstrap policy
// and the usual control-plane components use.
func componentName(username string) bool {
	switch strings.TrimPrefix(username, "system:") {
	case "kube-controller-manager", "kube-scheduler", "kube-proxy", "kube-dns",
		"volume-scheduler", "monitoring", "aggregator", "kube-aggregator", "cloud-controller-manager",
		"konnectivity-server", "konnectivity-agent", "unsecured", "admin":
		return true
	}
	return false
}
