package node

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// asked is one request of one node.
type asked struct {
	Rules
	node  string
	a     *verdict.Attributes
	graph Graph
	at    time.Time
}

// divided answers for the resources of which nodes do not all see the same; false for others.
func (q *asked) divided() (Answer, bool) {
	switch group, resource := q.a.APIGroup, q.a.Resource; {
	case group == "" && (resource == "secrets" || resource == "configmaps"):
		return q.readNamespaced(), true
	case group == "" && resource == "persistentvolumeclaims" && q.a.Subresource == "status":
		return q.writeStatus(), true
	case group == "" && (resource == "persistentvolumeclaims" || resource == "persistentvolumes"),
		group == "resource.k8s.io" && resource == "resourceclaims" && q.claims,
		group == "storage.k8s.io" && resource == "volumeattachments":
		return q.get(), true
	case group == "" && resource == "serviceaccounts":
		return q.serviceAccount(), true
	case group == "" && resource == "nodes" && q.selectors:
		return q.nodes(), true
	case group == "" && resource == "pods" && q.selectors:
		return q.pods(), true
	case group == "resource.k8s.io" && resource == "resourceslices" && q.slices:
		return q.resourceSlice(), true
	case group == "storage.k8s.io" && resource == "csinodes":
		return q.csiNode(), true
	case group == "coordination.k8s.io" && resource == "leases":
		return q.lease(), true
	case group == "certificates.k8s.io" && resource == "podcertificaterequests":
		return q.certificateRequest(), true
	}
	return Answer{}, false
}

// related asks the graph for a path from the requested object to the node.
func (q *asked) related() Answer {
	if q.a.Name == "" {
		return silent("No Object name found")
	}
	return q.path()
}

func (q *asked) path() Answer {
	known := graph.Unknown
	if q.graph != nil {
		known = q.graph.Related(q.at, q.node, q.a.APIGroup, q.a.Resource, q.a.Namespace, q.a.Name)
	}
	if known == graph.Late {
		known = graph.Absent
		if q.ephemeral {
			known = graph.Present
		}
	}
	switch known {
	case graph.Present:
		return allow()
	case graph.Absent:
		name := quote(q.node)
		if q.doubleQuotes {
			name = strconv.Quote(q.node)
		}
		return silent("no relationship found between node " + name + " and this object")
	}
	object := q.a.Resource + "/" + q.a.Name
	if q.a.Namespace != "" {
		object = q.a.Resource + "/" + q.a.Namespace + "/" + q.a.Name
	}
	return Answer{Missing: "pods bound to node " + q.node + " (path to " + object + ")"}
}

func quote(s string) string { return "'" + s + "'" }

// does reports whether the verb is one of a set.
func (q *asked) does(v verbs) bool { return verbOf(q.a.Verb)&v != 0 }

// upkeep are the verbs that a node needs for an object of its own.
const upkeep = get | create | write | remove

func (q *asked) readNamespaced() Answer {
	switch {
	case !q.does(read):
		return silent("can only read resources of this type")
	case q.a.Subresource != "":
		return silent("cannot read subresource")
	case q.a.Namespace == "":
		return silent("can only read namespaced object of this type")
	}
	return q.related()
}

func (q *asked) get() Answer {
	switch {
	case q.a.Verb != request.VerbGet:
		return silent("can only get individual resources of this type")
	case q.a.Subresource != "":
		return silent("cannot get subresource")
	}
	return q.related()
}

func (q *asked) writeStatus() Answer {
	if !q.does(write) {
		return silent("can only get/update/patch this type")
	}
	return q.related()
}

func (q *asked) serviceAccount() Answer {
	switch {
	case q.a.Verb == request.VerbGet && q.a.Subresource == "" && !q.oldAccounts:
		if !q.accounts {
			return silent("not allowed to get service accounts")
		}
		return q.readNamespaced()
	case q.a.Verb != request.VerbCreate || q.a.Name == "":
		return silent("can only create tokens for individual service accounts")
	case q.a.Subresource != "token":
		return silent("can only create token subresource of serviceaccount")
	}
	return q.path()
}

func (q *asked) lease() Answer {
	switch {
	case !q.does(upkeep):
		return silent("can only get, create, update, patch, or delete a node lease")
	case q.a.Namespace != "kube-node-lease":
		return silent(`can only access leases in the "kube-node-lease" system namespace`)
	case q.a.Verb != request.VerbCreate && q.a.Name != q.node:
		return silent("can only access node lease with the same name as the requesting node")
	}
	return allow()
}

func (q *asked) csiNode() Answer {
	if q.csiStatus && q.a.Subresource != "" {
		return q.csiNodeStatus()
	}
	switch {
	case !q.does(upkeep):
		return silent("can only get, create, update, patch, or delete a CSINode")
	case q.a.Subresource != "":
		return silent("cannot authorize CSINode subresources")
	case q.a.Verb != request.VerbCreate && q.a.Name != q.node:
		return silent("can only access CSINode with the same name as the requesting node")
	}
	return allow()
}

// csiNodeStatus is csiNode of a subresource, in releases that know one.
func (q *asked) csiNodeStatus() Answer {
	switch {
	case q.a.Subresource != "status":
		return silent("cannot authorize CSINode subresources")
	case !q.csiHealth:
		return silent("CSINode status access requires CSIVolumeHealth feature")
	case q.a.Verb != request.VerbGet && !q.does(write):
		return silent("can only get, update, or patch CSINode status")
	case q.a.Name != q.node:
		return silent("can only access CSINode with the same name as the requesting node")
	}
	return allow()
}

func (q *asked) resourceSlice() Answer {
	if q.a.Subresource != "" {
		return silent("cannot authorize ResourceSlice subresources")
	}
	switch q.a.Verb {
	case request.VerbCreate:
		return allow() // admission checks the node name
	case request.VerbGet, request.VerbUpdate, request.VerbPatch, request.VerbDelete:
		return q.related()
	case request.VerbList, request.VerbWatch, request.VerbDeleteCollection:
		if q.a.Verb == request.VerbDeleteCollection && !q.collections {
			break
		}
		if !q.selectors || q.selectsOwnNode() {
			return allow()
		}
		return silent("can only list/watch/deletecollection resourceslices with nodeName field selector")
	}
	if !q.collections {
		return silent("can only get, create, update, patch, or delete a ResourceSlice")
	}
	return silent("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, " +
		"delete, deletecollection")
}

func (q *asked) certificateRequest() Answer {
	switch {
	case !q.certificates:
		return silent("")
	case q.a.Subresource != "":
		return silent("nodes may not access the status subresource of PodCertificateRequests")
	}
	switch q.a.Verb {
	case request.VerbCreate:
		return allow() // admission checks pod, node and service account
	case request.VerbGet:
		return q.related()
	case request.VerbList, request.VerbWatch:
		if q.selectsOwnNode() {
			return allow()
		}
		return silent("can only list/watch podcertificaterequests with nodeName field selector")
	}
	return silent("nodes may not " + q.a.Verb + " podcertificaterequests")
}

func (q *asked) nodes() Answer {
	sub := q.a.Subresource
	switch {
	case sub == "" && q.does(create|write), sub == "status" && q.does(write): // admission limits it to the node's own object
		return allow()
	case sub != "" || !q.does(read):
		return silent("")
	case q.a.Name == q.node:
		return allow() // whether or not it is there
	case q.a.Name == "":
		return silent("node " + quote(q.node) + " cannot read all nodes, only its own Node object")
	}
	return silent("node " + quote(q.node) + " cannot read " + quote(q.a.Name) + ", only its own Node object")
}

func (q *asked) pods() Answer {
	sub := q.a.Subresource
	switch {
	case sub == "" && q.does(get):
		return q.related()
	case sub == "" && q.does(list|watch):
		switch {
		case q.selectsOwnNode():
			return allow()
		case q.a.Name != "":
			return q.related()
		}
		return silent("can only list/watch pods with spec.nodeName field selector")
	case sub == "" && q.does(create|remove), // admission limits it to mirror pods of this node
		sub == "status" && q.does(write), sub == "eviction" && q.does(create):
		return allow()
	}
	return silent("")
}

// nodeNameField is the field of pods, slices and certificate requests that names the node.
const nodeNameField = "spec.nodeName"

// selectsOwnNode reports whether the field selector requires the node's own name.
func (q *asked) selectsOwnNode() bool {
	s := q.a.FieldSelector
	if s == "" || q.unselected {
		return false
	}
	// What kubelets send, without a parser's garbage.
	if name, ok := strings.CutPrefix(s, nodeNameField+"="); ok && name == q.node && !strings.ContainsAny(name, `,=\`) {
		return true
	}
	sel, err := fields.ParseSelector(s)
	own := fields.Requirement{Operator: selection.Equals, Field: nodeNameField, Value: q.node}
	return err == nil && slices.Contains(sel.Requirements(), own)
}
