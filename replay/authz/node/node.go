// Package node is the node authorizer of a kube-apiserver: what kubelets may do, decided by
// the compiled-in rules of role system:node and by which pods run on the node.
package node

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state/graph"
)

// Known is a three-valued answer.
type Known = graph.Known

// Graph answers the relation questions of the node authorizer: does a path lead from an
// object to a node, through the pods bound to it (pod → node, secret → pod, claim → pod,
// volume → claim …). resource is the plural, lower-case resource name; namespace is empty
// for cluster-scoped ones. Implementations answer graph.Unknown rather than guess and must be
// safe for concurrent use.
type Graph interface {
	Related(at time.Time, node, group, resource, namespace, name string) Known
}

// Answer is the node authorizer's answer.
type Answer struct {
	// Allowed is graph.Present for an allow and graph.Absent for no opinion, which leaves the
	// question to the next authorizer; it never denies.
	Allowed Known
	Reason  string // contribution of no opinion to the recorded reason; may be empty
	Missing string // what graph.Unknown would need
}

func nodeAllows() Answer              { return Answer{Allowed: graph.Present} }
func nodeSilent(why string) Answer    { return Answer{Allowed: graph.Absent, Reason: why} }
func nodeName(username string) string { return username[len(authn.PrefixNode):] }
func nodeQuote(s string) string       { return "'" + s + "'" }
func oneOf(s string, set ...string) bool {
	for _, v := range set {
		if s == v {
			return true
		}
	}
	return false
}

// Is reports whether the node authorizer feels addressed: the name and the group.
func Is(username string, groups []string) bool {
	if !strings.HasPrefix(username, authn.PrefixNode) {
		return false
	}
	for _, g := range groups {
		if g == authn.GroupNodes {
			return true
		}
	}
	return false
}

// Authorize mirrors the node authorizer of Kubernetes 1.32 and later (with the
// selector-aware rules for nodes and pods) for a user Is accepts. g may be nil.
func Authorize(user string, a *request.Attributes, g Graph, at time.Time) Answer {
	node := nodeName(user)
	if node == "" {
		return nodeSilent(`unknown node for user "system:node:"`)
	}
	n := nodeRequest{node: node, a: a, graph: g, at: at}
	if a.ResourceRequest {
		switch a.APIGroup {
		case "":
			switch a.Resource {
			case "secrets", "configmaps":
				return n.readNamespaced()
			case "persistentvolumeclaims":
				if a.Subresource == "status" {
					return n.writeStatus()
				}
				return n.get()
			case "persistentvolumes":
				return n.get()
			case "serviceaccounts":
				return n.serviceAccount()
			case "nodes":
				return n.nodes()
			case "pods":
				return n.pods()
			}
		case "resource.k8s.io":
			switch a.Resource {
			case "resourceclaims":
				return n.get()
			case "resourceslices":
				return n.resourceSlice()
			}
		case "storage.k8s.io":
			switch a.Resource {
			case "volumeattachments":
				return n.get()
			case "csinodes":
				return n.csiNode()
			}
		case "coordination.k8s.io":
			if a.Resource == "leases" {
				return n.lease()
			}
		}
	}
	if nodeRuleAllows(a) {
		return nodeAllows()
	}
	return nodeSilent("")
}

// nodeRequest is one request of one node.
type nodeRequest struct {
	node  string
	a     *request.Attributes
	graph Graph
	at    time.Time
}

// related asks the graph for a path from the requested object to the node.
func (n *nodeRequest) related() Answer {
	if n.a.Name == "" {
		return nodeSilent("No Object name found")
	}
	return n.path()
}

func (n *nodeRequest) path() Answer {
	known := graph.Unknown
	if n.graph != nil {
		known = n.graph.Related(n.at, n.node, n.a.APIGroup, n.a.Resource, n.a.Namespace, n.a.Name)
	}
	switch known {
	case graph.Present:
		return nodeAllows()
	case graph.Absent:
		return nodeSilent("no relationship found between node " + nodeQuote(n.node) + " and this object")
	}
	object := n.a.Resource + "/" + n.a.Name
	if n.a.Namespace != "" {
		object = n.a.Resource + "/" + n.a.Namespace + "/" + n.a.Name
	}
	return Answer{Missing: "pods bound to node " + n.node + " (path to " + object + ")"}
}

func (n *nodeRequest) readNamespaced() Answer {
	switch {
	case !oneOf(n.a.Verb, request.VerbGet, request.VerbList, request.VerbWatch):
		return nodeSilent("can only read resources of this type")
	case n.a.Subresource != "":
		return nodeSilent("cannot read subresource")
	case n.a.Namespace == "":
		return nodeSilent("can only read namespaced object of this type")
	}
	return n.related()
}

func (n *nodeRequest) get() Answer {
	switch {
	case n.a.Verb != request.VerbGet:
		return nodeSilent("can only get individual resources of this type")
	case n.a.Subresource != "":
		return nodeSilent("cannot get subresource")
	}
	return n.related()
}

func (n *nodeRequest) writeStatus() Answer {
	if !oneOf(n.a.Verb, request.VerbUpdate, request.VerbPatch) {
		return nodeSilent("can only get/update/patch this type")
	}
	return n.related()
}

func (n *nodeRequest) serviceAccount() Answer {
	switch {
	case n.a.Verb == request.VerbGet && n.a.Subresource == "":
		return n.related()
	case n.a.Verb != request.VerbCreate || n.a.Name == "":
		return nodeSilent("can only create tokens for individual service accounts")
	case n.a.Subresource != "token":
		return nodeSilent("can only create token subresource of serviceaccount")
	}
	return n.path()
}

func (n *nodeRequest) lease() Answer {
	switch {
	case !oneOf(n.a.Verb, request.VerbGet, request.VerbCreate, request.VerbUpdate, request.VerbPatch, request.VerbDelete):
		return nodeSilent("can only get, create, update, patch, or delete a node lease")
	case n.a.Namespace != "kube-node-lease":
		return nodeSilent(`can only access leases in the "kube-node-lease" system namespace`)
	case n.a.Verb != request.VerbCreate && n.a.Name != n.node:
		return nodeSilent("can only access node lease with the same name as the requesting node")
	}
	return nodeAllows()
}

func (n *nodeRequest) csiNode() Answer {
	switch {
	case !oneOf(n.a.Verb, request.VerbGet, request.VerbCreate, request.VerbUpdate, request.VerbPatch, request.VerbDelete):
		return nodeSilent("can only get, create, update, patch, or delete a CSINode")
	case n.a.Subresource != "":
		return nodeSilent("cannot authorize CSINode subresources")
	case n.a.Verb != request.VerbCreate && n.a.Name != n.node:
		return nodeSilent("can only access CSINode with the same name as the requesting node")
	}
	return nodeAllows()
}

func (n *nodeRequest) resourceSlice() Answer {
	if n.a.Subresource != "" {
		return nodeSilent("cannot authorize ResourceSlice subresources")
	}
	switch n.a.Verb {
	case request.VerbCreate:
		return nodeAllows() // admission checks the node name
	case request.VerbGet, request.VerbUpdate, request.VerbPatch, request.VerbDelete:
		return n.related()
	case request.VerbList, request.VerbWatch, request.VerbDeleteCollection:
		if n.selectsOwnNode() {
			return nodeAllows()
		}
		return nodeSilent("can only list/watch/deletecollection resourceslices with nodeName field selector")
	}
	return nodeSilent("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection")
}

func (n *nodeRequest) nodes() Answer {
	switch n.a.Subresource {
	case "":
		switch n.a.Verb {
		case request.VerbCreate, request.VerbUpdate, request.VerbPatch:
			return nodeAllows() // admission limits it to the node's own object
		case request.VerbGet, request.VerbList, request.VerbWatch:
			switch n.a.Name {
			case n.node:
				return nodeAllows()
			case "":
				return nodeSilent("node " + nodeQuote(n.node) + " cannot read all nodes, only its own Node object")
			}
			return nodeSilent("node " + nodeQuote(n.node) + " cannot read " + nodeQuote(n.a.Name) + ", only its own Node object")
		}
	case "status":
		if oneOf(n.a.Verb, request.VerbUpdate, request.VerbPatch) {
			return nodeAllows()
		}
	}
	return nodeSilent("")
}

func (n *nodeRequest) pods() Answer {
	switch n.a.Subresource {
	case "":
		switch n.a.Verb {
		case request.VerbGet:
			return n.related()
		case request.VerbList, request.VerbWatch:
			if n.selectsOwnNode() {
				return nodeAllows()
			}
			if n.a.Name != "" {
				return n.related()
			}
			return nodeSilent("can only list/watch pods with spec.nodeName field selector")
		case request.VerbCreate, request.VerbDelete:
			return nodeAllows() // admission limits it to mirror pods of this node
		}
	case "status":
		if oneOf(n.a.Verb, request.VerbUpdate, request.VerbPatch) {
			return nodeAllows()
		}
	case "eviction":
		if n.a.Verb == request.VerbCreate {
			return nodeAllows()
		}
	}
	return nodeSilent("")
}

// selectsOwnNode reports whether the field selector requires spec.nodeName to be the node.
func (n *nodeRequest) selectsOwnNode() bool {
	if n.a.FieldSelector == "" {
		return false
	}
	sel, err := fields.ParseSelector(n.a.FieldSelector)
	if err != nil {
		return false
	}
	for _, req := range sel.Requirements() {
		if req.Field == "spec.nodeName" && req.Operator == selection.Equals && req.Value == n.node {
			return true
		}
	}
	return false
}

// nodeRuleAllows evaluates the rules of the bootstrap role system:node that are not
// subdivided above: what every node may do alike. The node authorizer has them compiled
// in; the ClusterRole of that name in the cluster does not matter to it.
func nodeRuleAllows(a *request.Attributes) bool {
	if !a.ResourceRequest {
		return false
	}
	resource := a.Resource
	if a.Subresource != "" {
		return false // every rule with a subresource belongs to a subdivided resource
	}
	read := oneOf(a.Verb, request.VerbGet, request.VerbList, request.VerbWatch)
	switch a.APIGroup {
	case "":
		switch resource {
		case "services":
			return read
		case "endpoints":
			return a.Verb == request.VerbGet
		case "events":
			return oneOf(a.Verb, request.VerbCreate, request.VerbUpdate, request.VerbPatch)
		}
	case "events.k8s.io":
		return resource == "events" && oneOf(a.Verb, request.VerbCreate, request.VerbUpdate, request.VerbPatch)
	case "authentication.k8s.io":
		return resource == "tokenreviews" && a.Verb == request.VerbCreate
	case "authorization.k8s.io":
		return oneOf(resource, "subjectaccessreviews", "localsubjectaccessreviews") && a.Verb == request.VerbCreate
	case "certificates.k8s.io":
		return resource == "certificatesigningrequests" && (read || a.Verb == request.VerbCreate)
	case "storage.k8s.io":
		return resource == "csidrivers" && read
	case "node.k8s.io":
		return resource == "runtimeclasses" && read
	}
	return false
}
