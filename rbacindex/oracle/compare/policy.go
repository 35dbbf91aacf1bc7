package compare

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/retrial-io/retrial/rbacindex"
)

// Policy is a set of RBAC objects, served to the real code the way its informers would. It
// is not safe for concurrent use. Objects are never modified, only replaced.
type Policy struct {
	keys            []rbacindex.Key // in the order of their first write
	objects         map[rbacindex.Key]any
	bindings        map[string][]*rbacv1.RoleBinding // by namespace
	clusterBindings []*rbacv1.ClusterRoleBinding
}

// NewPolicy returns a Policy after the writes.
func NewPolicy(writes ...rbacindex.Change) *Policy {
	p := &Policy{objects: map[rbacindex.Key]any{}, bindings: map[string][]*rbacv1.RoleBinding{}}
	p.Apply(writes...)
	return p
}

// Clone returns a copy that goes its own way.
func (p *Policy) Clone() *Policy {
	c := NewPolicy()
	for _, k := range p.keys {
		c.set(k, p.objects[k])
	}
	return c
}

// Apply makes writes in order.
func (p *Policy) Apply(writes ...rbacindex.Change) {
	for _, w := range writes {
		p.set(w.Key, w.Object)
	}
}

func (p *Policy) set(k rbacindex.Key, object any) {
	_, had := p.objects[k]
	switch {
	case object != nil:
		if p.objects[k] = object; !had {
			p.keys = append(p.keys, k)
		}
	case had:
		delete(p.objects, k)
		p.keys = slices.DeleteFunc(p.keys, func(o rbacindex.Key) bool { return o == k })
	default:
		return
	}
	switch k.Kind {
	case rbacindex.KindRoleBinding:
		list := p.bindings[k.Namespace]
		if had {
			list = slices.DeleteFunc(slices.Clone(list), func(b *rbacv1.RoleBinding) bool { return b.Name == k.Name })
		}
		if object != nil {
			list = append(list, object.(*rbacv1.RoleBinding))
		}
		p.bindings[k.Namespace] = list
	case rbacindex.KindClusterRoleBinding:
		if had {
			p.clusterBindings = slices.DeleteFunc(slices.Clone(p.clusterBindings), func(b *rbacv1.ClusterRoleBinding) bool {
				return b.Name == k.Name
			})
		}
		if object != nil {
			p.clusterBindings = append(p.clusterBindings, object.(*rbacv1.ClusterRoleBinding))
		}
	default: // roles are found by key
	}
}

// Objects returns the objects in the order of their first write.
func (p *Policy) Objects() []any {
	out := make([]any, len(p.keys))
	for i, k := range p.keys {
		out[i] = p.objects[k]
	}
	return out
}

// GetRole implements the real code's RoleGetter, with the error of a lister.
func (p *Policy) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	if o, ok := p.objects[rbacindex.Key{Kind: rbacindex.KindRole, Namespace: namespace, Name: name}]; ok {
		return o.(*rbacv1.Role), nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("role"), name)
}

// GetClusterRole implements the real code's ClusterRoleGetter, with the error of a lister.
func (p *Policy) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	if o, ok := p.objects[rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name}]; ok {
		return o.(*rbacv1.ClusterRole), nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), name)
}

// ListRoleBindings implements the real code's RoleBindingLister.
func (p *Policy) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return p.bindings[namespace], nil
}

// ListClusterRoleBindings implements the real code's ClusterRoleBindingLister.
func (p *Policy) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return p.clusterBindings, nil
}

// rulesOf returns the rules a roleRef stands for in a binding of that namespace, nil when
// there are none.
func (p *Policy) rulesOf(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	k := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: ref.Name}
	switch ref.Kind {
	case "Role":
		k = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: namespace, Name: ref.Name}
	case "ClusterRole":
	default:
		return nil
	}
	return rulesIn(p.objects[k])
}

// rulesIn returns the rules of a role, nil for anything else.
func rulesIn(object any) []rbacv1.PolicyRule {
	switch r := object.(type) {
	case *rbacv1.Role:
		return r.Rules
	case *rbacv1.ClusterRole:
		return r.Rules
	}
	return nil
}

// bindingOf takes a binding apart; ok is false for anything else.
func bindingOf(object any) (ref rbacv1.RoleRef, namespace string, subjects []rbacv1.Subject, ok bool) {
	switch b := object.(type) {
	case *rbacv1.RoleBinding:
		return b.RoleRef, b.Namespace, b.Subjects, true
	case *rbacv1.ClusterRoleBinding:
		return b.RoleRef, "", b.Subjects, true
	}
	return rbacv1.RoleRef{}, "", nil, false
}
