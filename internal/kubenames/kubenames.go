// Package kubenames names the users, groups and annotations that Kubernetes itself gives meaning to, for the rooms
// that must not import k8s.io/apiserver and k8s.io/api/core, which have the same names. A test holds the two equal.
//
// The package is pure.
package kubenames

import "strings"

// Users and groups.
const (
	Anonymous = "system:anonymous" // who presents no credential
	APIServer = "system:apiserver" // the apiserver's own client

	Masters         = "system:masters" // may do everything, whatever authorizers say
	Nodes           = "system:nodes"
	Authenticated   = "system:authenticated"
	Unauthenticated = "system:unauthenticated"
	ServiceAccounts = "system:serviceaccounts"
)

// Beginnings of names.
const (
	SystemPrefix         = "system:" // of what belongs to Kubernetes, and of service accounts
	NodePrefix           = "system:node:"
	ServiceAccountPrefix = "system:serviceaccount:"
)

// LastApplied is the annotation in which kubectl apply keeps a copy of the object, for itself.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ServiceAccount returns the user name of a service account.
func ServiceAccount(namespace, name string) string {
	return ServiceAccountPrefix + namespace + ":" + name
}

// ServiceAccountsOf returns the group of a namespace's service accounts.
func ServiceAccountsOf(namespace string) string { return ServiceAccounts + ":" + namespace }

// Node returns the user name of a node.
func Node(name string) string { return NodePrefix + name }

// Own reports whether a user or group belongs to Kubernetes itself: a name that begins with "system:", but
// for service accounts of namespaces that are not its own.
func Own(name string) bool {
	if account, ok := strings.CutPrefix(name, ServiceAccountPrefix); ok {
		return OwnNamespace(account)
	}
	return strings.HasPrefix(name, SystemPrefix)
}

// OwnNamespace reports whether a namespace belongs to Kubernetes itself, by the beginning of its name, which
// Kubernetes keeps for its own.
func OwnNamespace(name string) bool { return strings.HasPrefix(name, "kube-") }

// SplitServiceAccount takes the user name of a service account apart; ok is false for every other.
// Parts that no object can have as its name are not told apart.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, ServiceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok || namespace == "" || name == "" || strings.Contains(name, ":") {
		return "", "", false
	}
	return namespace, name, true
}
