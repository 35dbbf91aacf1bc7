// Package rbacindex answers Kubernetes RBAC questions from an immutable, indexed Snapshot
// of Roles, ClusterRoles, RoleBindings and ClusterRoleBindings: the decision the
// Kubernetes RBAC authorizer would take (plugin/pkg/auth/authorizer/rbac), and every grant
// that makes it possible, without scanning bindings.
//
// The package is pure and imports no other room of Retrial.
package rbacindex

// Attributes is what RBAC decides about: k8s.io/apiserver authorizer.Attributes reduced to
// the fields the RBAC authorizer reads. Name is empty on create and on collections.
type Attributes struct {
	User            string
	Groups          []string
	Verb            string
	Namespace       string
	APIGroup        string
	Resource        string
	Subresource     string
	Name            string
	ResourceRequest bool
	Path            string // non-resource requests: decoded URL path without query
}

// Kind names one of the four RBAC kinds.
type Kind uint8

// The RBAC kinds.
const (
	KindRole Kind = iota + 1
	KindClusterRole
	KindRoleBinding
	KindClusterRoleBinding
)

// String returns the Kubernetes kind, for example "ClusterRoleBinding".
func (k Kind) String() string {
	switch k {
	case KindRole:
		return "Role"
	case KindClusterRole:
		return "ClusterRole"
	case KindRoleBinding:
		return "RoleBinding"
	case KindClusterRoleBinding:
		return "ClusterRoleBinding"
	}
	return "Unknown"
}

// Key names one RBAC object. Namespace is empty for the cluster-scoped kinds.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string
}
