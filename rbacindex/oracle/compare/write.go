package compare

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	internal "k8s.io/kubernetes/pkg/apis/rbac"
	convert "k8s.io/kubernetes/pkg/apis/rbac/v1"
)

// Write puts the write of an RBAC object to the real storages that check it, and returns their
// refusal, nil if it is let through. Without an old object it is a create, else an update of
// that object, which a patch is too by then.
func (r *Real) Write(who string, groups []string, old, next any) error {
	info := request.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: rbacv1.GroupName, APIVersion: "v1"}
	to, err := internalOf(next)
	if err != nil {
		return err
	}
	name := to.GetName()
	var store rest.StandardStorage
	switch to.(type) {
	case *internal.Role:
		info.Resource, store = "roles", r.roles
	case *internal.ClusterRole:
		info.Resource, store = "clusterroles", r.clusterRoles
	case *internal.RoleBinding:
		info.Resource, store = "rolebindings", r.roleBindings
	case *internal.ClusterRoleBinding:
		info.Resource, store = "clusterrolebindings", r.clusterRoleBindings
	}
	info.Namespace = to.GetNamespace()
	if old != nil {
		info.Verb, info.Name = "update", name
	}
	ctx := request.WithNamespace(context.Background(), info.Namespace)
	ctx = request.WithRequestInfo(request.WithUser(ctx, &user.DefaultInfo{Name: who, Groups: groups}), &info)
	if old == nil {
		_, err = store.Create(ctx, to, nil, nil)
		return err
	}
	if r.store.old, err = internalOf(old); err != nil {
		return err
	}
	_, _, err = store.Update(ctx, name, rest.DefaultUpdatedObjectInfo(to), nil, nil, false, nil)
	return err
}

// object is what the internal types have in common.
type object interface {
	runtime.Object
	GetName() string
	GetNamespace() string
}

// internalOf converts as decoding a request does.
func internalOf(o any) (object, error) {
	switch in := o.(type) {
	case *rbacv1.Role:
		out := new(internal.Role)
		return out, convert.Convert_v1_Role_To_rbac_Role(in.DeepCopy(), out, nil)
	case *rbacv1.ClusterRole:
		out := new(internal.ClusterRole)
		return out, convert.Convert_v1_ClusterRole_To_rbac_ClusterRole(in.DeepCopy(), out, nil)
	case *rbacv1.RoleBinding:
		out := new(internal.RoleBinding)
		return out, convert.Convert_v1_RoleBinding_To_rbac_RoleBinding(in.DeepCopy(), out, nil)
	case *rbacv1.ClusterRoleBinding:
		out := new(internal.ClusterRoleBinding)
		return out, convert.Convert_v1_ClusterRoleBinding_To_rbac_ClusterRoleBinding(in.DeepCopy(), out, nil)
	}
	return nil, fmt.Errorf("unknown type %T: want an RBAC object", o)
}
