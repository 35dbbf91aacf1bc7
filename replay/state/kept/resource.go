// Package kept says which objects of a cluster the replica keeps, and reads what it keeps of each.
//
// Objects of numerous or sensitive kinds are reduced on the way in, to the metadata that State works with and the facts that answers need.
// They are stored as a small [Object] of the same kind with a member "reduced", which never has a field of a Secret's data except the
// public ones of bootstrap tokens.
//
// The package is pure: no I/O of its own, no clock, no logging.
package kept

import (
	"github.com/retrial-io/retrial/rbacindex"
)

// Resources the replica keeps, as group resources: plural name, dot, API group.
const (
	Roles               = "roles.rbac.authorization.k8s.io"
	ClusterRoles        = "clusterroles.rbac.authorization.k8s.io"
	RoleBindings        = "rolebindings.rbac.authorization.k8s.io"
	ClusterRoleBindings = "clusterrolebindings.rbac.authorization.k8s.io"
	Namespaces          = "namespaces"
	ServiceAccounts     = "serviceaccounts"

	Pods               = "pods"
	Nodes              = "nodes"
	Secrets            = "secrets" // what is public of them, never their data
	PersistentVolumes  = "persistentvolumes"
	VolumeAttachments  = "volumeattachments.storage.k8s.io"
	ResourceSlices     = "resourceslices.resource.k8s.io"
	CertificateSigning = "certificatesigningrequests.certificates.k8s.io"
	PodCertificates    = "podcertificaterequests.certificates.k8s.io"

	// Credentials is not a resource of Kubernetes: the tokens and certificates whose issue was recorded, by credential id.
	Credentials = "credentials"
)

// Resources returns the resources the replica keeps, in a fixed order.
func Resources() []string {
	out := make([]string, 0, ResCount-1)
	for res := ResNone + 1; res < ResCount; res++ {
		out = append(out, res.String())
	}
	return out
}

// Resource is the small number a State uses for a kept resource.
type Resource uint8

// The kept resources.
const (
	ResNone Resource = iota
	ResRole
	ResClusterRole
	ResRoleBinding
	ResClusterRoleBinding
	ResNamespace
	ResServiceAccount
	ResNode
	ResSecret
	ResVolume
	ResAttachment
	ResSlice
	ResSigning
	ResPodCertificate
	ResPod
	ResCredential
	ResCount
)

// resources are the kept resources: their group resource, and group and kind of their objects.
var resources = [ResCount]struct {
	name, group, kind string
	namespaced        bool
}{
	ResRole:               {Roles, groupRBAC, "Role", true},
	ResClusterRole:        {ClusterRoles, groupRBAC, "ClusterRole", false},
	ResRoleBinding:        {RoleBindings, groupRBAC, "RoleBinding", true},
	ResClusterRoleBinding: {ClusterRoleBindings, groupRBAC, "ClusterRoleBinding", false},
	ResNamespace:          {Namespaces, "", "Namespace", false},
	ResServiceAccount:     {ServiceAccounts, "", "ServiceAccount", true},
	ResNode:               {Nodes, "", "Node", false},
	ResSecret:             {Secrets, "", "Secret", true},
	ResVolume:             {PersistentVolumes, "", "PersistentVolume", false},
	ResAttachment:         {VolumeAttachments, "storage.k8s.io", "VolumeAttachment", false},
	ResSlice:              {ResourceSlices, "resource.k8s.io", "ResourceSlice", false},
	ResSigning:            {CertificateSigning, groupCertificates, "CertificateSigningRequest", false},
	ResPodCertificate:     {PodCertificates, groupCertificates, "PodCertificateRequest", true},
	ResPod:                {Pods, "", "Pod", true},
	ResCredential:         {Credentials, groupRetrial, "Credential", true},
}

const (
	groupRBAC         = "rbac.authorization.k8s.io"
	groupCertificates = "certificates.k8s.io"
	groupRetrial      = "retrial.io" // of what Kubernetes has no kind for
)

// ResourceOf returns the number of a group resource, resNone if it is not kept.
func ResourceOf(name string) Resource {
	for res := ResNone + 1; res < ResCount; res++ {
		if resources[res].name == name {
			return res
		}
	}
	return ResNone
}

// ResourceOfKind returns the number for an object's apiVersion group and kind.
func ResourceOfKind(group, kind string) Resource {
	for res := ResNone + 1; res < ResCount; res++ {
		if r := &resources[res]; r.kind == kind && r.group == group {
			return res
		}
	}
	return ResNone
}

// String returns the group resource.
func (r Resource) String() string { return resources[r].name }

// ObjectKind returns the kind of its objects.
func (r Resource) ObjectKind() string { return resources[r].kind }

// RBACKind returns the RBAC kind, 0 for resources that are not RBAC's.
func (r Resource) RBACKind() rbacindex.Kind {
	switch r {
	case ResRole:
		return rbacindex.KindRole
	case ResClusterRole:
		return rbacindex.KindClusterRole
	case ResRoleBinding:
		return rbacindex.KindRoleBinding
	case ResClusterRoleBinding:
		return rbacindex.KindClusterRoleBinding
	}
	return 0
}

// ResourceOfRBAC is the inverse of RBACKind.
func ResourceOfRBAC(k rbacindex.Kind) Resource {
	switch k {
	case rbacindex.KindRole:
		return ResRole
	case rbacindex.KindClusterRole:
		return ResClusterRole
	case rbacindex.KindRoleBinding:
		return ResRoleBinding
	case rbacindex.KindClusterRoleBinding:
		return ResClusterRoleBinding
	}
	return ResNone
}

// Namespaced reports whether objects of the resource live in namespaces.
func (r Resource) Namespaced() bool { return resources[r].namespaced }

// ResourceOfPath returns the number for a plural of an API group.
func ResourceOfPath(group, plural string) Resource {
	for res := ResNone + 1; res < ResCredential; res++ {
		r := &resources[res]
		if r.group == group && len(r.name) >= len(plural) && r.name[:len(plural)] == plural &&
			(len(r.name) == len(plural) || r.name[len(plural)] == '.') {
			return res
		}
	}
	return ResNone
}
