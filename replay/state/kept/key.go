package kept

import "github.com/retrial-io/retrial/rbacindex"

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

// RBAC is the key in the index.
func (k Key) RBAC() rbacindex.Key {
	return rbacindex.Key{Kind: k.Resource.RBACKind(), Namespace: k.Namespace, Name: k.Name}
}

// Less is the fixed order of keys, used to break ties in time.
func (k Key) Less(l Key) bool {
	if k.Resource != l.Resource {
		return k.Resource < l.Resource
	}
	if k.Namespace != l.Namespace {
		return k.Namespace < l.Namespace
	}
	return k.Name < l.Name
}

// CompareKeys compares two keys in the order of Less.
func CompareKeys(a, b Key) int {
	switch {
	case a == b:
		return 0
	case a.Less(b):
		return -1
	}
	return 1
}
