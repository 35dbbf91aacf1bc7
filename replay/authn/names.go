// Package authn evaluates who a recorded user really was: which of a kube-apiserver's
// authenticators can have produced the identity of an event, which cannot, and where the
// event contradicts itself, the configuration or the state of the cluster. It mirrors the
// authenticators of k8s.io/kubernetes (pkg/kubeapiserver/authenticator) as far as an event
// shows them.
//
// The package is pure.
package authn

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Names and groups the apiserver gives meaning to.
const (
	UserAnonymous = "system:anonymous"
	UserLoopback  = "system:apiserver"

	GroupAuthenticated   = "system:authenticated"
	GroupUnauthenticated = "system:unauthenticated"
	GroupMasters         = "system:masters"
	GroupNodes           = "system:nodes"
	GroupServiceAccounts = "system:serviceaccounts"
	GroupBootstrappers   = "system:bootstrappers"

	PrefixServiceAccount = "system:serviceaccount:"
	PrefixNode           = "system:node:"
	PrefixBootstrap      = "system:bootstrap:"

	ExtraCredentialID = "authentication.kubernetes.io/credential-id"
	ExtraPodName      = "authentication.kubernetes.io/pod-name"
	ExtraPodUID       = "authentication.kubernetes.io/pod-uid"
	ExtraNodeName     = "authentication.kubernetes.io/node-name"

	AnnotationLegacyToken = "authentication.k8s.io/legacy-token"
	AnnotationStaleToken  = "authentication.k8s.io/stale-token"
)

// SplitServiceAccount takes "system:serviceaccount:namespace:name" apart. ok is false when
// the name does not have that prefix or not that shape; prefixed tells the two apart.
func SplitServiceAccount(username string) (namespace, name string, ok, prefixed bool) {
	rest, prefixed := strings.CutPrefix(username, PrefixServiceAccount)
	if !prefixed {
		return "", "", false, false
	}
	namespace, name, cut := strings.Cut(rest, ":")
	if !cut || namespace == "" || name == "" || strings.Contains(name, ":") {
		return "", "", false, true
	}
	return namespace, name, true, true
}

// ServiceAccountUsername takes the name of a service account apart; a name whose parts no
// object could have is a plain user name to impersonation.
func ServiceAccountUsername(username string) (namespace, name string, ok bool) {
	namespace, name, ok, _ = SplitServiceAccount(username)
	if !ok || len(validation.NameIsDNSLabel(namespace, false)) > 0 || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}

// NodeUsername returns the node of "system:node:<dns subdomain>".
func NodeUsername(username string) (string, bool) {
	node, ok := strings.CutPrefix(username, PrefixNode)
	if !ok || len(validation.NameIsDNSSubdomain(node, false)) > 0 {
		return "", false
	}
	return node, true
}

// ServiceAccountGroups reports whether these are exactly the three groups of a service
// account token, in any order.
func ServiceAccountGroups(groups []string, namespace string) bool {
	if len(groups) != 3 {
		return false
	}
	var all, own, auth bool
	for _, g := range groups {
		switch {
		case g == GroupServiceAccounts:
			all = true
		case g == GroupAuthenticated:
			auth = true
		case len(g) == len(GroupServiceAccounts)+1+len(namespace) && g[:len(GroupServiceAccounts)] == GroupServiceAccounts && g[len(GroupServiceAccounts)] == ':' && g[len(GroupServiceAccounts)+1:] == namespace:
			own = true
		}
	}
	return all && own && auth
}
