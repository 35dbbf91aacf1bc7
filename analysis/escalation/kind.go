package escalation

import (
	"cmp"
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
)

// Edge names a way from rights to more rights. The names are part of the interface.
type Edge string

// Ways. docs/escalations.md says what each takes, gives and presumes.
const (
	Bind          Edge = "bind"           // write a binding to a role one may bind
	Escalate      Edge = "escalate"       // change a role one holds, to whatever
	Impersonate   Edge = "impersonate"    // make requests as somebody else
	PodCreate     Edge = "pod-create"     // run a pod as any service account of the namespace
	WorkloadWrite Edge = "workload-write" // have a controller run one
	TokenRequest  Edge = "token-request"  // ask for a service account's token
	SecretToken   Edge = "secret-token"   // have one written into a Secret, or read it there
	PodExec       Edge = "pod-exec"       // take a running pod's token
	NodeProxy     Edge = "node-proxy"     // the same by the kubelets
	CSRSign       Edge = "csr-sign"       // have a client certificate signed
	WebhookWrite  Edge = "webhook-write"  // change or read what others write
	PolicyWrite   Edge = "policy-write"   // the same by an admission policy
)

// Edges returns all ways, in the order in which paths of equal length prefer them.
func Edges() []Edge {
	return []Edge{Bind, Escalate, TokenRequest, Impersonate, SecretToken, PodCreate, WorkloadWrite, CSRSign, PodExec, NodeProxy, PolicyWrite, WebhookWrite}
}

// Kind tells what a path leads over.
type Kind string

// Kinds of nodes.
const (
	User           Kind = "User"
	Group          Kind = "Group"
	ServiceAccount Kind = "ServiceAccount"
	// Namespace stands for everything in one namespace.
	Namespace Kind = "Namespace"
	// Bound is the identity before it, with roles it has bound to itself.
	Bound Kind = "Bound"
	// Goal is one of the two ends, by its name.
	Goal Kind = "Goal"
)

// Goals: their names.
const (
	ClusterAdmin = "cluster-admin"  // all verbs on all resources, by RBAC
	Masters      = "system:masters" // everything, whatever RBAC says
)

// Node is an identity, a namespace or a goal.
type Node struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // of a ServiceAccount
	Name      string `json:"name"`
}

// String returns the node as it is read: "ServiceAccount kube-system/x", "cluster-admin".
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
	return cmp.Or(strings.Compare(string(n.Kind), string(m.Kind)), strings.Compare(n.Namespace, m.Namespace), strings.Compare(n.Name, m.Name))
}

// UserName is the name requests of a User or ServiceAccount carry, "" for other nodes.
func (n Node) UserName() string {
	switch n.Kind {
	case User:
		return n.Name
	case ServiceAccount:
		return accountPrefix + n.Namespace + ":" + n.Name
	}
	return ""
}

// System tells whether the node is of Kubernetes itself: a name that begins with "system:",
// a service account of kube-system, a member of which is no business of who owns workloads.
func (n Node) System() bool {
	return strings.HasPrefix(n.Name, "system:") || n.Kind == ServiceAccount && n.Namespace == "kube-system"
}

// Request is one request a step takes, with everything that grants it.
type Request struct {
	Attributes rbacindex.Attributes // of the identity the step starts from; groups without implied ones left out
	// Grants are all granting paths, ordered by role and binding.
	Grants []rbacindex.Grant
	// Role grants it where Grants are none: one that an earlier step has bound or rewritten. Its
	// Name is "" for one that was made for the purpose.
	Role *rbacindex.Key

	needs needed
}

// Step is one edge of a path.
type Step struct {
	Edge Edge
	From Node
	To   Node
	// Impersonated: From is assumed by impersonation; the requests carry its name in headers.
	Impersonated bool
	// Namespace is where the step's rights hold and it was taken, "" for the whole cluster.
	Namespace string
	// Roles are those that a bind step binds, or the one that an escalate step rewrites.
	Roles []RoleAt
	// Requests are allowed together: all of them are needed.
	Requests []Request
	// Presumes says what there must be beside the rights; nothing when they suffice.
	Presumes []string
}

// RoleAt is a role as held: with a namespace, by a RoleBinding there.
type RoleAt struct {
	Role      rbacindex.Key
	Namespace string
}

// Path is a way from a subject to a node, by as few steps as there are, and among those by as
// few that presume something.
type Path struct {
	From  Node
	To    Node
	Steps []Step
	// Holds is the right that makes the last identity a cluster administrator, where that is
	// not what the last step gave it; nothing for other ends.
	Holds []Request
	// Doubted are objects it rests on that are one of two contents, of which not both give what it
	// takes: a write of theirs may have been done, and its answer was lost. None of a [Closure]'s paths
	// has any.
	Doubted []rbacindex.Key
	// TooLarge: telling it took more steps than there were, so that the last of its steps, or what
	// grants their requests, are not told.
	TooLarge bool
}

// Presumptions counts what the steps take beside rights.
func (p *Path) Presumptions() int {
	n := 0
	for i := range p.Steps {
		n += len(p.Steps[i].Presumes)
	}
	return n
}
