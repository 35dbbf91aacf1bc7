package escalation

import (
	"cmp"
	"strings"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// Edge names a way from rights to more rights. The names are part of the interface.
type Edge string

// Ways. docs/escalations.md says what each takes, gives and presumes.
const (
	Bind          Edge = "bind"           // write a binding to a role that the subject may bind
	Escalate      Edge = "escalate"       // rewrite a role that the subject holds
	Impersonate   Edge = "impersonate"    // make requests as another user
	PodCreate     Edge = "pod-create"     // run a pod as any service account of the namespace
	WorkloadWrite Edge = "workload-write" // have a controller run one
	TokenRequest  Edge = "token-request"  // ask for a service account's token
	SecretToken   Edge = "secret-token"   // have one written into a Secret, or read it there
	PodExec       Edge = "pod-exec"       // take the token of a running pod
	NodeProxy     Edge = "node-proxy"     // the same through the kubelets
	CSRSign       Edge = "csr-sign"       // have a client certificate signed
	WebhookWrite  Edge = "webhook-write"  // change or read what others write
	PolicyWrite   Edge = "policy-write"   // the same through an admission policy
)

// Edges returns all ways, in the order in which paths of equal length prefer them.
func Edges() []Edge {
	return []Edge{Bind, Escalate, TokenRequest, Impersonate, SecretToken, PodCreate, WorkloadWrite, CSRSign, PodExec, NodeProxy,
		PolicyWrite, WebhookWrite}
}

// Kind is the kind of a node on a path.
type Kind string

// Kinds of nodes.
const (
	User           Kind = "User"
	Group          Kind = "Group"
	ServiceAccount Kind = "ServiceAccount"
	// Namespace stands for everything in one namespace.
	Namespace Kind = "Namespace"
	// Bound is the preceding identity with roles that it has bound to itself.
	Bound Kind = "Bound"
	// Goal is one of the two goals, by name.
	Goal Kind = "Goal"
)

// Names of goals.
const (
	ClusterAdmin = "cluster-admin"   // all verbs on all resources, by RBAC
	Masters      = kubenames.Masters // everything, regardless of RBAC
)

// Node is an identity, a namespace or a goal.
type Node struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // of a ServiceAccount
	Name      string `json:"name"`
}

// String formats the node: "ServiceAccount kube-system/x", "cluster-admin".
func (n Node) String() string {
	switch n.Kind {
	case Goal:
		return n.Name
	case ServiceAccount:
		return string(n.Kind) + " " + n.Namespace + "/" + n.Name
	case Namespace:
		return "everything in namespace " + n.Name
	}
	return string(n.Kind) + " " + n.Name
}

func (n *Node) compare(m *Node) int {
	return cmp.Or(strings.Compare(string(n.Kind), string(m.Kind)), strings.Compare(n.Namespace, m.Namespace), strings.Compare(n.Name,
		m.Name))
}

// System reports whether the node belongs to Kubernetes itself: workload owners need not care about it.
func (n Node) System() bool {
	if n.Kind == ServiceAccount {
		return kubenames.OwnNamespace(n.Namespace)
	}
	return kubenames.Own(n.Name)
}

// Request is one request that a step takes, with everything that grants it.
type Request struct {
	Attributes rbacindex.Attributes // of the identity the step starts from; without implied groups
	// Grants are all granting paths, ordered by role and binding.
	Grants []rbacindex.Grant
	// Role grants it if Grants is empty: a role that an earlier step has bound or rewritten. Its
	// Name is "" for one that was made for the purpose.
	Role *rbacindex.Key

	needs needed
}

// Step is one edge of a path.
type Step struct {
	Edge Edge
	From Node
	To   Node
	// Impersonated means that From is assumed by impersonation; the requests carry its name in
	// headers.
	Impersonated bool
	// Namespace is where the step is taken and its rights hold, "" for the whole cluster.
	Namespace string
	// Roles are the roles that a bind step binds, or the role that an escalate step rewrites.
	Roles []RoleAt
	// Requests must all be allowed.
	Requests []Request
	// Presumes lists what must exist besides the rights; empty if they suffice.
	Presumes []string
}

// RoleAt is a role as held: with a namespace if by a RoleBinding there.
type RoleAt struct {
	Role      rbacindex.Key
	Namespace string
}

// Path is a way from a subject to a node, with the fewest steps, and of those with the fewest
// presumptions.
type Path struct {
	From  Node
	To    Node
	Steps []Step
	// Holds is the right that makes the last identity a cluster administrator, if the last step did
	// not give it; empty for other ends.
	Holds []Request
	// Doubted are objects that the path rests on and that have one of two contents, only one of which
	// grants what it takes: a write of them may have been done, and its answer was lost. A [Closure]'s
	// paths have none.
	Doubted []rbacindex.Key
	// TooLarge means that building the path exhausted the budget of steps: the last of its steps,
	// or the grants of their requests, are missing.
	TooLarge bool
}

// Presumptions counts what the steps presume besides rights.
func (p *Path) Presumptions() int {
	n := 0
	for i := range p.Steps {
		n += len(p.Steps[i].Presumes)
	}
	return n
}
