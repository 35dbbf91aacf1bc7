package authz

import (
	"strings"

	"github.com/retrial-io/retrial/replay/authz/node"
)

// BuiltIn tells whether every line of a recorded reason is in the words of an authorizer that is
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
	return strings.HasPrefix(line, "RBAC: ") || line == reasonABAC || line == reasonAlwaysDeny || node.Says(line)
}
