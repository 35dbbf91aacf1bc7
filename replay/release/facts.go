package release

// Fact is something a release does that no table of its sources holds: it came with a minor
// version and has stayed since.
type Fact struct {
	Since  int    // minor version
	Always int    // the first of which every patch release does it, 0 if that is Since
	Text   string // what an apiserver does since
	Source string // where the sources say it
}

// Facts the replica looks at. Those of Kubernetes before 1.28 stand where they are used.
var (
	LoopbackAuthenticated = Fact{29, 32, "the apiserver's own identity is in `system:authenticated` beside `system:masters`",
		"k8s.io/apiserver pkg/server/config.go (AuthorizeClientBearerToken)"}
	NodeSlices = Fact{30, 0, "resource slices are divided among nodes",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (Authorize)"}
	NodeSliceCollections = Fact{31, 0, "nodes delete collections of resource slices",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (authorizeResourceSlice)"}
	CertificateID = Fact{32, 0, "client certificates leave a credential id",
		"k8s.io/apiserver pkg/authentication/request/x509/x509.go (CommonNameUserConversion)"}
	NodeEphemeral = Fact{33, 0, "an ephemeral container has its pod's references taken anew",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/graph_populator.go (updatePod)"}
	NodeAccounts = Fact{33, 0, "the node authorizer has a rule for reading service accounts",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (authorizeServiceAccount)"}
	NodeEvents = Fact{35, 0, "nodes write events of `events.k8s.io`",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (NodeRules)"}
	NamedReasons = Fact{37, 0, "the reason of a refusal has the authorizer's name before it: `node: …`, `rbac: …`",
		"k8s.io/apiserver pkg/authorization/union/union.go (Authorize)"}
	NodeVolumeHealth = Fact{37, 0, "the node authorizer tells the status of a CSINode from its other subresources",
		"k8s.io/kubernetes plugin/pkg/auth/authorizer/node/node_authorizer.go (authorizeCSINode)"}
)

// Facts returns all of them, in the order in which docs/versions.md lists them.
func Facts() []Fact {
	return []Fact{LoopbackAuthenticated, NodeSlices, NodeSliceCollections, CertificateID, NodeEphemeral, NodeAccounts, NodeEvents,
		NamedReasons, NodeVolumeHealth}
}

// Has reports whether a fact holds in the newest patch release.
func (r *Release) Has(f Fact) bool { return r.Minor >= f.Since }

// MayLack reports whether there are patch releases in which a fact does not hold.
func (r *Release) MayLack(f Fact) bool { return r.Minor < max(f.Since, f.Always) }
