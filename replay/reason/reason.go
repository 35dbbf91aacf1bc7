// Package reason reads the reasons that a kube-apiserver records with its decisions: the grant
// that RBAC names, and whether the words are those of an authorizer that is built in.
//
// The package is pure.
package reason

import (
	"slices"
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
	w := Words{Rest: reason}
	w.Take("RBAC: allowed by ")
	g.BindingKind, g.Binding = w.To(" "), w.Quoted(strconv.Unquote)
	w.Take(" of ")
	g.RoleKind, g.Role = w.To(" "), w.Quoted(strconv.Unquote)
	w.Take(" to ")
	if g.BindingKind == "RoleBinding" {
		i := strings.LastIndexByte(g.Binding, '/')
		if i < 0 {
			return g, false
		}
		g.Binding, g.BindingNamespace = g.Binding[:i], g.Binding[i+1:]
	}
	return g, !w.Failed
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

// Words takes a text apart from its beginning. Once a part is not as expected it has failed, and nothing of it is left.
type Words struct {
	Rest   string
	Failed bool
}

func (w *Words) part(text, rest string, ok bool) string {
	if w.Failed = w.Failed || !ok; w.Failed {
		text, rest = "", ""
	}
	w.Rest = rest
	return text
}

// Has takes a part that may be there and reports whether it is.
func (w *Words) Has(text string) (ok bool) {
	w.Rest, ok = strings.CutPrefix(w.Rest, text)
	return ok
}

// Take takes a part that must be there.
func (w *Words) Take(text string) {
	rest, ok := strings.CutPrefix(w.Rest, text)
	w.part(text, rest, ok)
}

// To takes what stands before a text, and the text.
func (w *Words) To(text string) string { return w.part(strings.Cut(w.Rest, text)) }

// Quoted takes a quoted text and returns what unquote makes of it.
func (w *Words) Quoted(unquote func(string) (string, error)) string {
	quoted, err := strconv.QuotedPrefix(w.Rest)
	rest := w.Rest[len(quoted):]
	if err == nil {
		quoted, err = unquote(quoted)
	}
	return w.part(quoted, rest, err == nil)
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
	return slices.ContainsFunc(nodeTexts[:], func(text string) bool { return strings.HasPrefix(line, text) }) ||
		strings.HasPrefix(line, "node '") && strings.HasSuffix(line, ", only its own Node object")
}
