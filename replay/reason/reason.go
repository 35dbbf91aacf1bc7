// Package reason reads the reasons that a kube-apiserver records with its decisions: the grant
// that RBAC names, and whether the words are those of an authorizer that is built in.
//
// The package is pure.
package reason

import (
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
)

// Named is the binding and role a recorded reason names.
type Named struct {
	BindingKind, BindingNamespace, Binding string
	RoleKind, Role                         string
}

// Parse takes a recorded RBAC reason apart:
//
//	RBAC: allowed by RoleBinding "name/namespace" of Role "name" to User "name"
func Parse(reason string) (g Named, ok bool) {
	rest, ok := strings.CutPrefix(reason, "RBAC: allowed by ")
	if !ok {
		return g, false
	}
	var binding string
	if g.BindingKind, binding, rest, ok = kindAndName(rest); !ok {
		return g, false
	}
	if rest, ok = strings.CutPrefix(rest, " of "); !ok {
		return g, false
	}
	if g.RoleKind, g.Role, rest, ok = kindAndName(rest); !ok || !strings.HasPrefix(rest, " to ") {
		return g, false
	}
	g.Binding = binding
	if g.BindingKind == "RoleBinding" {
		i := strings.LastIndexByte(binding, '/')
		if i < 0 {
			return g, false
		}
		g.Binding, g.BindingNamespace = binding[:i], binding[i+1:]
	}
	return g, true
}

// Keys returns the keys of the binding and of the role.
func (g *Named) Keys() (binding, role rbacindex.Key) {
	binding = rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: g.Binding}
	if g.BindingKind == "RoleBinding" {
		binding = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: g.BindingNamespace, Name: g.Binding}
	}
	role = rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: g.Role}
	if g.RoleKind == "Role" {
		role = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: g.BindingNamespace, Name: g.Role}
	}
	return binding, role
}

// Names returns the binding that a recorded RBAC reason names, for example "RoleBinding
// namespace/name"; ok is false for every other reason.
func Names(reason string) (binding string, ok bool) {
	g, ok := Parse(reason)
	if !ok {
		return "", false
	}
	k, _ := g.Keys()
	return ObjectName(k), true
}

// ObjectName words the key of an object: its kind, and its name behind its namespace.
func ObjectName(k rbacindex.Key) string {
	if k.Namespace == "" {
		return k.Kind.String() + " " + k.Name
	}
	return k.Kind.String() + " " + k.Namespace + "/" + k.Name
}

func kindAndName(s string) (kind, name, rest string, ok bool) {
	kind, rest, ok = strings.Cut(s, " ")
	if !ok {
		return "", "", "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", "", "", false
	}
	name, err = strconv.Unquote(quoted)
	return kind, name, rest[len(quoted):], err == nil
}
