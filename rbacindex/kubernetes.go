package rbacindex

import (
	"slices"
	"strings"
)

// OfKubernetes tells whether a user, a group, a service account or an object of RBAC belongs to
// Kubernetes itself: its name begins with "system:", or it lies in a namespace kube-*, both of which
// are reserved. Its rights are no business of who owns workloads, and taking them by what one stretch
// of time shows breaks clusters. A service account is given by its namespace and name.
func OfKubernetes(namespace, name string) bool {
	return strings.HasPrefix(name, "system:") || strings.HasPrefix(namespace, "kube-")
}

// OfKubernetes tells whether the object belongs to Kubernetes itself; cluster-admin, admin, edit and
// view do, too, which apiservers restore when they start.
func (k Key) OfKubernetes() bool {
	restored := k.Kind == KindClusterRole && slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, k.Name) ||
		k.Kind == KindClusterRoleBinding && k.Name == "cluster-admin"
	return restored || OfKubernetes(k.Namespace, k.Name)
}
