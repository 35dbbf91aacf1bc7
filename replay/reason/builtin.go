package reason

import "strings"

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
