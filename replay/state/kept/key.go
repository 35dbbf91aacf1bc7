package kept

import (
	"cmp"

	"github.com/retrial-io/retrial/rbacindex"
)

// Key names an object, or with an empty name all objects of a scope.
type Key struct {
	Resource        Resource
	Namespace, Name string
}

// String returns namespace/name.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// RBAC returns the key in the index.
func (k Key) RBAC() rbacindex.Key {
	return rbacindex.Key{Kind: k.Resource.RBACKind(), Namespace: k.Namespace, Name: k.Name}
}

// KeyOf returns the key of an object of the index.
func KeyOf(k rbacindex.Key) Key {
	return Key{Resource: ResourceOfRBAC(k.Kind), Namespace: k.Namespace, Name: k.Name}
}

// CompareKeys is the fixed order of keys, used to break ties in time.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
