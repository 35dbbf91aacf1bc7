package authz

import (
	"strings"

	"github.com/retrial-io/retrial/replay/authz/node"
)

// BuiltIn tells whether every line of a recorded reason is in the words of an authorizer that is
// built into kube-apiserver, whatever it says: RBAC's grants and errors, the node authorizer's
// texts, those of ABAC and AlwaysDeny. Since Kubernetes 1.37 the name of the authorizer may stand
// before each.
func BuiltIn(reason string) bool {
	for line := range strings.Lines(reason) {
		line = strings.TrimSuffix(line, "\n")
		if !builtIn(line) {
			if _, rest, named := strings.Cut(line, ": "); !named || !builtIn(rest) {
				return false
			}
		}
	}
	return true
}

func builtIn(line string) bool {
	return strings.HasPrefix(line, "RBAC: ") || line == reasonABAC || line == reasonAlwaysDeny || node.Says(line)
}
