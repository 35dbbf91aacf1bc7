package rbacindex

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// ErrUnsupportedObject is returned for anything that is not one of the four RBAC kinds.
var ErrUnsupportedObject = errors.New("not an rbac.authorization.k8s.io/v1 object")

// KeyOf returns the Key of a *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding or
// *rbacv1.ClusterRoleBinding. The namespace of a cluster-scoped object is ignored; a
// namespaced object without one is an error, as is any other type (ErrUnsupportedObject).
func KeyOf(object any) (Key, error) {
	var k Key
	switch o := object.(type) {
	case *rbacv1.Role:
		if o != nil {
			k = Key{Kind: KindRole, Namespace: o.Namespace, Name: o.Name}
		}
	case *rbacv1.ClusterRole:
		if o != nil {
			k = Key{Kind: KindClusterRole, Name: o.Name}
		}
	case *rbacv1.RoleBinding:
		if o != nil {
			k = Key{Kind: KindRoleBinding, Namespace: o.Namespace, Name: o.Name}
		}
	case *rbacv1.ClusterRoleBinding:
		if o != nil {
			k = Key{Kind: KindClusterRoleBinding, Name: o.Name}
		}
	}
	if k.Kind == 0 {
		return Key{}, fmt.Errorf("key of %T: %w", object, ErrUnsupportedObject)
	}
	if k.Namespace == "" && (k.Kind == KindRole || k.Kind == KindRoleBinding) {
		return Key{}, fmt.Errorf("key of %s %q: no namespace", k.Kind, k.Name)
	}
	return k, nil
}

// FromJSON decodes one object of the given kind ("Role", "ClusterRole", "RoleBinding" or
// "ClusterRoleBinding", version v1) into its k8s.io/api/rbac/v1 type. Unknown members are
// ignored. The object does not alias raw.
func FromJSON(kind string, raw []byte) (any, Key, error) {
	var object any
	switch kind {
	case "Role":
		object = new(rbacv1.Role)
	case "ClusterRole":
		object = new(rbacv1.ClusterRole)
	case "RoleBinding":
		object = new(rbacv1.RoleBinding)
	case "ClusterRoleBinding":
		object = new(rbacv1.ClusterRoleBinding)
	default:
		return nil, Key{}, fmt.Errorf("decode %q: %w", kind, ErrUnsupportedObject)
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, Key{}, fmt.Errorf("decode %s: %w", kind, err)
	}
	k, err := KeyOf(object)
	if err != nil {
		return nil, Key{}, fmt.Errorf("decode %s: %w", kind, err)
	}
	return object, k, nil
}

// RulesOf returns the rules of a *rbacv1.Role or *rbacv1.ClusterRole; ok is false for anything else.
func RulesOf(object any) (rules []rbacv1.PolicyRule, ok bool) {
	switch r := object.(type) {
	case *rbacv1.Role:
		return r.Rules, true
	case *rbacv1.ClusterRole:
		return r.Rules, true
	}
	return nil, false
}

// BindingOf returns the subjects of a *rbacv1.RoleBinding or *rbacv1.ClusterRoleBinding and the role it names; ok is false for
// anything else.
func BindingOf(object any) (subjects []rbacv1.Subject, role rbacv1.RoleRef, ok bool) {
	switch b := object.(type) {
	case *rbacv1.RoleBinding:
		return b.Subjects, b.RoleRef, true
	case *rbacv1.ClusterRoleBinding:
		return b.Subjects, b.RoleRef, true
	}
	return nil, rbacv1.RoleRef{}, false
}

// RoleKey returns the key of the role that a binding in a namespace, "" for the whole cluster, names. Its Kind is 0 if that is one
// that RBAC does not know. A ClusterRoleBinding to a Role looks it up in no namespace, where none exists.
func RoleKey(role *rbacv1.RoleRef, namespace string) Key {
	switch role.Kind {
	case "ClusterRole":
		return Key{Kind: KindClusterRole, Name: role.Name}
	case "Role":
		return Key{Kind: KindRole, Namespace: namespace, Name: role.Name}
	}
	return Key{Name: role.Name}
}

// Compare orders keys by kind, namespace and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// String returns "ClusterRole/name" or "Role/namespace/name".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.String() + "/" + k.Name
	}
	return k.Kind.String() + "/" + k.Namespace + "/" + k.Name
}

// role is a Role (r) or a ClusterRole (cr).
type role struct {
	r     *rbacv1.Role
	cr    *rbacv1.ClusterRole
	table atomic.Pointer[table] // compiled rules, made on first use
}

func (r *role) id() (string, string) {
	if r.cr != nil {
		return "", r.cr.Name
	}
	return r.r.Namespace, r.r.Name
}

func (r *role) rules() []rbacv1.PolicyRule {
	if r.cr != nil {
		return r.cr.Rules
	}
	return r.r.Rules
}

func (r *role) object() any {
	if r.cr != nil {
		return r.cr
	}
	return r.r
}

// compiled returns the role's rule table. Two readers may compile at the same time; the
// tables are equal and either stays.
func (r *role) compiled(f *family) *table {
	if t := r.table.Load(); t != nil {
		return t
	}
	t := f.tables.make(f.hasher, []*role{r}, maxRoleEntries)
	r.table.Store(t)
	return t
}

// binding is a RoleBinding (rb) or a ClusterRoleBinding (crb).
type binding struct {
	rb  *rbacv1.RoleBinding
	crb *rbacv1.ClusterRoleBinding
}

// ref is a subject of a binding: what the index by subject points to.
type ref struct {
	b       *binding
	subject int32 // index into the binding's subjects
}

func (b *binding) id() (string, string) {
	if b.crb != nil {
		return "", b.crb.Name
	}
	return b.rb.Namespace, b.rb.Name
}

func (b *binding) key() Key {
	if b.crb != nil {
		return Key{Kind: KindClusterRoleBinding, Name: b.crb.Name}
	}
	return Key{Kind: KindRoleBinding, Namespace: b.rb.Namespace, Name: b.rb.Name}
}

func (b *binding) subjects() []rbacv1.Subject {
	if b.crb != nil {
		return b.crb.Subjects
	}
	return b.rb.Subjects
}

func (b *binding) roleRef() *rbacv1.RoleRef {
	if b.crb != nil {
		return &b.crb.RoleRef
	}
	return &b.rb.RoleRef
}

// roleKey returns the key of the role the binding names, as RoleKey does.
func (b *binding) roleKey() Key {
	namespace, _ := b.id()
	return RoleKey(b.roleRef(), namespace)
}

func (b *binding) object() any {
	if b.crb != nil {
		return b.crb
	}
	return b.rb
}

// id is unique inside one scope (cluster bindings, or the role bindings of a namespace),
// which is where refs are kept together.
func (r *ref) id() (string, string) {
	_, name := r.b.id()
	return "", name
}

func (r *ref) of() *rbacv1.Subject { return &r.b.subjects()[r.subject] }

// principal returns the index entry a subject of the binding is found under: a user name or
// a group name. A ServiceAccount is the user name its tokens carry; RBAC knows it by that
// name only. ok is false for subjects that never match.
func (b *binding) principal(s *rbacv1.Subject) (name string, group, ok bool) {
	namespace := ""
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name, false, true
	case rbacv1.GroupKind:
		return s.Name, true, true
	case rbacv1.ServiceAccountKind:
		if s.Namespace == "" {
			namespace, _ = b.id()
		}
	}
	name = UserOf(s, namespace)
	return name, false, name != ""
}

// UserOf returns the user name that a subject of a binding in a namespace stands for, "" for a group and for a ServiceAccount without a
// namespace: that of the subject, else of the binding.
func UserOf(s *rbacv1.Subject, namespace string) string {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name
	case rbacv1.ServiceAccountKind:
		if namespace = cmp.Or(s.Namespace, namespace); namespace != "" {
			return kubenames.ServiceAccount(namespace, s.Name)
		}
	}
	return ""
}

// SameRule reports whether two rules have the same lists in the same order; an empty list is as good as none.
func SameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

// SelectorsOf returns by which labels an aggregated ClusterRole takes the rules of others, none for any other object. Selectors that
// cannot be read select nothing, as for Kubernetes' controller.
func SelectorsOf(object any) (out []labels.Selector) {
	r, ok := object.(*rbacv1.ClusterRole)
	if !ok || r.AggregationRule == nil {
		return nil
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		if s, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i]); err == nil {
			out = append(out, s)
		}
	}
	return out
}
