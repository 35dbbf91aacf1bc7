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

// Reasons that are the same in every answer.
const (
	ABAC       = "No policy matched."
	AlwaysDeny = "Everything is forbidden."
)

// BuiltIn reports whether every line of a recorded reason is in the words of an authorizer that is
// built into kube-apiserver, whatever it says: RBAC's grants and errors, the node authorizer's
// texts, those of ABAC and AlwaysDeny. Since Kubernetes 1.37 the name of the authorizer stands
// before each, and in what an aggregated server records the name of its webhook before that.
func BuiltIn(reason string) bool {
	for line := range strings.Lines(reason) {
		rest := strings.TrimSuffix(line, "\n")
		for names := 0; !builtIn(rest); names++ {
			var named bool
			if _, rest, named = strings.Cut(rest, ": "); !named || names == 2 {
				return false
			}
		}
	}
	return true
}

func builtIn(line string) bool {
	return strings.HasPrefix(line, "RBAC: ") || line == ABAC || line == AlwaysDeny || node(line)
}

// nodeTexts is how the texts begin in which the node authorizer leaves a request to the next one.
var nodeTexts = [...]string{
	"no relationship found between node ", "No Object name found", "unknown node for user ",
	"can only read resources of this type", "can only read namespaced object of this type", "cannot read subresource",
	"can only get individual resources of this type", "cannot get subresource", "can only get/update/patch this type",
	"not allowed to get service accounts", "can only create tokens for individual service accounts",
	"can only create token subresource of serviceaccount",
	"can only get, create, update, patch, or delete a node lease", `can only access leases in the "kube-node-lease" system namespace`,
	"can only access node lease with the same name as the requesting node",
	"can only get, create, update, patch, or delete a CSINode", "cannot authorize CSINode subresources",
	"can only access CSINode with the same name as the requesting node", "CSINode status access requires CSIVolumeHealth feature",
	"can only get, update, or patch CSINode status", "cannot authorize ResourceSlice subresources",
	"can only list/watch/deletecollection resourceslices with nodeName field selector", "only the following verbs are allowed for a " +
		"ResourceSlice: ", "can only get, create, update, patch, or delete a ResourceSlice",
	"nodes may not ", "can only list/watch podcertificaterequests with nodeName field selector",
	"can only list/watch pods with spec.nodeName field selector",
}

// node reports whether a line of a recorded reason is in the words of the node authorizer of any
// version.
func node(line string) bool {
	for _, text := range nodeTexts {
		if strings.HasPrefix(line, text) {
			return true
		}
	}
	rest, ok := strings.CutPrefix(line, "node '")
	return ok && strings.HasSuffix(rest, ", only its own Node object")
}
