package node

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/retrial-io/retrial/verdict"
)

// target is a sort of object nodes ask for.
type target struct {
	group, resource string
	cluster         bool // in no namespace
	names           func(g *generator) string
	subresources    []string // besides none
}

var targets = []target{
	{"", "secrets", false, func(g *generator) string { return g.secret().Name }, []string{"x"}},
	{"", "secrets", false, func(g *generator) string { return g.secret().Name }, nil},
	{"", "configmaps", false, func(g *generator) string { return g.config().Name }, []string{"x"}},
	{"", "persistentvolumeclaims", false, (*generator).claimName, []string{"status", "status", "x"}},
	{"", "persistentvolumes", true, (*generator).volumeName, []string{"status"}},
	{"", "persistentvolumes", true, (*generator).volumeName, nil},
	{"", "serviceaccounts", false, func(g *generator) string { return pick(g, g.accounts) }, []string{"token", "token", "token", "x"}},
	{"", "pods", false, func(g *generator) string { return pick(g, g.pods) }, []string{"status", "eviction", "log", "exec", "binding"}},
	{"", "nodes", true, func(g *generator) string { return pick(g, g.nodes) }, []string{"status", "proxy"}},
	{"resource.k8s.io", "resourceclaims", false, func(g *generator) string { return pick(g, g.gadget) }, []string{"status"}},
	{"resource.k8s.io", "resourceslices", true, func(g *generator) string { return "slice" + strconv.Itoa(g.IntN(7)) }, []string{"status"}},
	{"storage.k8s.io", "volumeattachments", true, func(g *generator) string { return "va" + strconv.Itoa(g.IntN(7)) }, []string{"status"}},
	{"storage.k8s.io", "csinodes", true, func(g *generator) string { return pick(g, g.nodes) }, []string{"status"}},
	{"coordination.k8s.io", "leases", false, func(g *generator) string { return pick(g, g.nodes) }, []string{"x"}},
	{"certificates.k8s.io", "podcertificaterequests", false, func(g *generator) string { return "pcr" + strconv.Itoa(g.IntN(5)) },
		[]string{"status"}},
}

// fixed are the resources of which every node may do the same, and some none may touch.
var fixed = []struct{ group, resource string }{
	{"", "services"}, {"", "endpoints"}, {"", "events"}, {"", "namespaces"}, {"events.k8s.io", "events"}, {"", "tokenreviews"},
	{"authentication.k8s.io", "tokenreviews"}, {"authorization.k8s.io", "subjectaccessreviews"}, {"authorization.k8s.io",
		"localsubjectaccessreviews"},
	{"authorization.k8s.io", "selfsubjectaccessreviews"}, {"certificates.k8s.io", "certificatesigningrequests"}, {"certificates.k8s.io",
		"clustertrustbundles"},
	{"storage.k8s.io", "csidrivers"}, {"storage.k8s.io", "storageclasses"}, {"node.k8s.io", "runtimeclasses"}, {"apps", "deployments"},
	{"apps", "pods"}, {"v1", "secrets"}, {"*", "*"}, {"", "*"}, {"resource.k8s.io", "deviceclasses"},
}

var allVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy", "", "*", "GET",
	"impersonate"}

func (g *generator) claimName() string {
	if g.one(4) {
		return pick(g, g.pods) + "-v" + strconv.Itoa(g.IntN(3))
	}
	return pick(g, g.claims)
}

func (g *generator) volumeName() string {
	if v := live(g, g.liveVolumes); v != nil && !g.one(4) {
		return v.Name
	}
	return "pv" + strconv.Itoa(g.IntN(8))
}

// request makes a request of a node, now and then of somebody else.
func (g *generator) request() asked {
	node := pick(g, g.nodes)
	q := asked{username: "system:node:" + node, groups: []string{"system:nodes", "system:authenticated"}}
	switch g.IntN(40) {
	case 0:
		q.groups = []string{"system:authenticated"}
	case 1:
		q.username = "system:node:"
	case 2:
		node = "stranger"
		q.username = "system:node:" + node
	case 3:
		q.username = "alice"
	case 4:
		node = `odd"node's\name`
		q.username = "system:node:" + node
	}
	if p := live(g, g.livePods); p != nil && p.Spec.NodeName != "" && g.one(2) {
		q.username = "system:node:" + p.Spec.NodeName
		q.a = g.aimed(p)
		return q
	}
	q.a = g.attributes(node)
	return q
}

// aimed makes a request that a pod may well be the reason for.
func (g *generator) aimed(p *corev1.Pod) verdict.Attributes {
	a := verdict.Attributes{ResourceRequest: true, APIVersion: "v1", Verb: "get"}
	t := pick(g, targets[:10])
	a.APIGroup, a.Resource, a.Name = t.group, t.resource, t.names(g)
	if t.cluster {
		return a
	}
	a.Namespace = p.Namespace
	switch {
	case a.Resource == "pods":
		a.Name = p.Name
	case a.Resource == "serviceaccounts" && g.one(2):
		a.Verb, a.Subresource = "create", "token"
	case a.Resource == "serviceaccounts" && p.Spec.ServiceAccountName != "":
		a.Name = p.Spec.ServiceAccountName
	case a.Resource == "persistentvolumeclaims" && g.one(3):
		a.Verb, a.Subresource = "patch", "status"
	case a.Resource == "persistentvolumeclaims" && len(p.Spec.Volumes) > 0 && g.one(2):
		a.Name = p.Name + "-" + pick(g, p.Spec.Volumes).Name // as generic ephemeral volumes have it
	}
	if v := live(g, g.liveVolumes); v != nil && v.Spec.ClaimRef != nil && a.Resource == "secrets" {
		a.Namespace = v.Spec.ClaimRef.Namespace
	}
	return a
}

func (g *generator) attributes(node string) verdict.Attributes {
	if g.one(40) {
		return verdict.Attributes{Verb: pick(g, allVerbs), Path: pick(g, []string{"/healthz", "/api", "/metrics", "/"})}
	}
	a := verdict.Attributes{ResourceRequest: true, APIVersion: "v1", Verb: pick(g, allVerbs[:7])}
	if g.one(8) {
		a.Verb = pick(g, allVerbs)
	}
	if g.one(8) {
		f := pick(g, fixed)
		a.APIGroup, a.Resource = f.group, f.resource
		if g.one(2) {
			a.Name = "x"
		}
		if g.one(6) {
			a.Subresource = pick(g, []string{"status", "approval", "x", "finalize"})
		}
		if g.one(2) {
			a.Namespace = pick(g, g.namespaces)
		}
		return a
	}
	t := pick(g, targets)
	a.APIGroup, a.Resource = t.group, t.resource
	if !t.cluster != g.one(30) { // now and then where it cannot be
		a.Namespace = pick(g, g.namespaces)
	}
	if g.one(60) {
		a.APIGroup = pick(g, fixed).group
	}
	if !g.one(8) {
		a.Name = t.names(g)
	}
	// Half of the time what kubelets do, which leads to the graph.
	if g.one(2) {
		a.Verb = "get"
	}
	if len(t.subresources) > 0 && g.one(4) {
		a.Subresource = pick(g, t.subresources)
		switch a.Subresource {
		case "token", "eviction":
			a.Verb = "create"
		case "status":
			a.Verb = pick(g, []string{"update", "patch", "get"})
		}
		if g.one(5) {
			a.Verb = pick(g, allVerbs)
		}
	}
	switch a.Resource {
	case "nodes", "csinodes", "leases":
		if g.one(2) {
			a.Name = node
		}
	case "pods", "resourceslices", "podcertificaterequests":
		if g.one(3) {
			a.Verb, a.FieldSelector = pick(g, []string{"list", "watch", "deletecollection", "get"}), g.selector(node)
			if g.one(2) {
				a.Name = ""
			}
		}
	}
	return a
}

// selector returns a field selector: that of a kubelet, one that is nearly it, or none.
func (g *generator) selector(node string) string {
	return pick(g, []string{
		"spec.nodeName=" + node, "spec.nodeName==" + node, "spec.nodeName=" + node + ",status.phase!=Failed",
		"metadata.namespace=x,spec.nodeName=" + node,
		"spec.nodeName!=" + node, "spec.nodename=" + node, "spec.nodeName=" + node + "x", "spec.nodeName", "spec.nodeName=", "",
		"nodeName=" + node,
		"spec.nodeName=" + node + ",", "spec.nodeName=other,spec.nodeName=" + node, " spec.nodeName=" + node, `spec.nodeName=\` + node,
		"spec.nodeName = " + node,
		"metadata.name=" + node, "spec.nodeName>" + node,
	})
}
