package rbacindex_test

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// roleOf says which role a binding names; false for roles and unsupported kinds.
func roleOf(k rbacindex.Key, o any) (rbacindex.Key, bool) {
	var ref rbacv1.RoleRef
	switch b := o.(type) {
	case *rbacv1.RoleBinding:
		ref = b.RoleRef
	case *rbacv1.ClusterRoleBinding:
		ref = b.RoleRef
	}
	switch ref.Kind {
	case "ClusterRole":
		return rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: ref.Name}, true
	case "Role":
		return rbacindex.Key{Kind: rbacindex.KindRole, Namespace: k.Namespace, Name: ref.Name}, true
	}
	return rbacindex.Key{}, false
}
