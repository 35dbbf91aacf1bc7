package authorizer

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/retrial-io/retrial/rbacindex"
)

// refusal returns the reason of a request that no grant allows.
func refusal(s *rbacindex.Snapshot, request *rbacindex.Attributes, res *rbacindex.Result) string {
	switch errs := res.Errors(); len(errs) {
	case 0:
		return ""
	case 1:
		return "RBAC: " + errs[0]
	}
	return "RBAC: " + unresolved(s, request.User, request.Groups, request.Namespace).Error()
}

// unresolved returns the error of everything bound to the user whose role cannot be had, put
// together as the RBAC authorizer puts it: one error a binding, of the types a lister returns,
// those of ClusterRoleBindings first; in the text each once. nil if there is none.
func unresolved(s *rbacindex.Snapshot, name string, groups []string, namespace string) error {
	var errs []error
	s.BindingsOf(name, groups, namespace, func(binding, role rbacindex.Key, _ rbacv1.Subject) bool {
		switch role.Kind {
		case rbacindex.KindRole, rbacindex.KindClusterRole:
			if _, ok := s.Get(role); ok {
				return true
			}
			resource := "role"
			if role.Kind == rbacindex.KindClusterRole {
				resource = "clusterrole"
			}
			errs = append(errs, apierrors.NewNotFound(rbacv1.Resource(resource), role.Name))
		default:
			errs = append(errs, fmt.Errorf("unsupported role reference kind: %q", roleKind(s, binding)))
		}
		return true
	})
	return utilerrors.NewAggregate(errs)
}

// roleKind returns the text of a binding for the kind of its role.
func roleKind(s *rbacindex.Snapshot, binding rbacindex.Key) string {
	switch o, _ := s.Get(binding); b := o.(type) {
	case *rbacv1.ClusterRoleBinding:
		return b.RoleRef.Kind
	case *rbacv1.RoleBinding:
		return b.RoleRef.Kind
	}
	return ""
}
