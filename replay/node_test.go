package replay

import (
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/authn"
)

// relations is a NodeGraph that knows some paths.
type relations map[string]Known

func (r relations) Related(_ time.Time, node, _, resource, namespace, name string) Known {
	return r[node+" "+resource+" "+namespace+"/"+name]
}

func TestNodeAuthorize(t *testing.T) {
	const no = "no relationship found between node 'n1' and this object"
	graph := relations{"n1 secrets d/s": KnownYes, "n1 secrets d/t": KnownNo, "n1 serviceaccounts d/sa": KnownYes, "n1 pods d/p": KnownYes}
	a := func(verb, group, ns, resource, sub, name string) Attributes {
		return Attributes{Verb: verb, ResourceRequest: true, APIGroup: group, Namespace: ns, Resource: resource, Subresource: sub, Name: name}
	}
	selecting := func(a Attributes, selector string) Attributes {
		a.FieldSelector = selector
		return a
	}
	cases := []struct {
		name   string
		a      Attributes
		want   Known
		reason string
	}{
		{"own secret", a("get", "", "d", "secrets", "", "s"), KnownYes, ""},
		{"foreign secret", a("watch", "", "d", "secrets", "", "t"), KnownNo, no},
		{"secret nobody knows about", a("get", "", "d", "secrets", "", "u"), NotKnown, ""},
		{"all secrets", a("list", "", "d", "secrets", "", ""), KnownNo, "No Object name found"},
		{"write a secret", a("update", "", "d", "secrets", "", "s"), KnownNo, "can only read resources of this type"},
		{"subresource of a configmap", a("get", "", "d", "configmaps", "x", "s"), KnownNo, "cannot read subresource"},
		{"secrets of all namespaces", a("list", "", "", "secrets", "", ""), KnownNo, "can only read namespaced object of this type"},
		{"list volumes", a("list", "", "", "persistentvolumes", "", ""), KnownNo, "can only get individual resources of this type"},
		{"claim status", a("patch", "", "d", "persistentvolumeclaims", "status", "c"), NotKnown, ""},
		{"get claim status", a("get", "", "d", "persistentvolumeclaims", "status", "c"), KnownNo, "can only get/update/patch this type"},
		{"attachment subresource", a("get", "storage.k8s.io", "", "volumeattachments", "status", "v"), KnownNo, "cannot get subresource"},
		{"token of a related account", a("create", "", "d", "serviceaccounts", "token", "sa"), KnownYes, ""},
		{"token without a name", a("create", "", "d", "serviceaccounts", "token", ""), KnownNo, "can only create tokens for individual service accounts"},
		{"another subresource of an account", a("create", "", "d", "serviceaccounts", "x", "sa"), KnownNo, "can only create token subresource of serviceaccount"},
		{"list accounts", a("list", "", "d", "serviceaccounts", "", ""), KnownNo, "can only create tokens for individual service accounts"},
		{"own lease", a("update", "coordination.k8s.io", "kube-node-lease", "leases", "", "n1"), KnownYes, ""},
		{"other lease", a("update", "coordination.k8s.io", "kube-node-lease", "leases", "", "n2"), KnownNo, "can only access node lease with the same name as the requesting node"},
		{"lease elsewhere", a("get", "coordination.k8s.io", "d", "leases", "", "n1"), KnownNo, `can only access leases in the "kube-node-lease" system namespace`},
		{"list leases", a("list", "coordination.k8s.io", "kube-node-lease", "leases", "", ""), KnownNo, "can only get, create, update, patch, or delete a node lease"},
		{"new lease", a("create", "coordination.k8s.io", "kube-node-lease", "leases", "", ""), KnownYes, ""},
		{"other csinode", a("get", "storage.k8s.io", "", "csinodes", "", "n2"), KnownNo, "can only access CSINode with the same name as the requesting node"},
		{"list csinodes", a("list", "storage.k8s.io", "", "csinodes", "", ""), KnownNo, "can only get, create, update, patch, or delete a CSINode"},
		{"new slice", a("create", "resource.k8s.io", "", "resourceslices", "", ""), KnownYes, ""},
		{"own slices", selecting(a("list", "resource.k8s.io", "", "resourceslices", "", ""), "spec.nodeName=n1"), KnownYes, ""},
		{"all slices", a("watch", "resource.k8s.io", "", "resourceslices", "", ""), KnownNo, "can only list/watch/deletecollection resourceslices with nodeName field selector"},
		{"all nodes", a("list", "", "", "nodes", "", ""), KnownNo, "node 'n1' cannot read all nodes, only its own Node object"},
		{"other node", a("get", "", "", "nodes", "", "n2"), KnownNo, "node 'n1' cannot read 'n2', only its own Node object"},
		{"own node", a("watch", "", "", "nodes", "", "n1"), KnownYes, ""},
		{"any node's status", a("patch", "", "", "nodes", "status", "n2"), KnownYes, ""},
		{"delete a node", a("delete", "", "", "nodes", "", "n1"), KnownNo, ""},
		{"own pods", selecting(a("list", "", "", "pods", "", ""), "spec.nodeName=n1"), KnownYes, ""},
		{"own pods by exclusion", selecting(a("list", "", "", "pods", "", ""), "spec.nodeName!=n2"), KnownNo, "can only list/watch pods with spec.nodeName field selector"},
		{"own pods among more", selecting(a("watch", "", "", "pods", "", ""), "metadata.namespace=d,spec.nodeName==n1"), KnownYes, ""},
		{"one pod by name", a("list", "", "d", "pods", "", "p"), KnownYes, ""},
		{"evict", a("create", "", "d", "pods", "eviction", "p"), KnownYes, ""},
		{"log", a("get", "", "d", "pods", "log", "p"), KnownNo, ""},
		{"services", a("list", "", "", "services", "", ""), KnownYes, ""},
		{"write services", a("update", "", "d", "services", "", "x"), KnownNo, ""},
		{"events", a("create", "", "d", "events", "", ""), KnownYes, ""},
		{"signing request", a("create", "certificates.k8s.io", "", "certificatesigningrequests", "", ""), KnownYes, ""},
		{"approval", a("update", "certificates.k8s.io", "", "certificatesigningrequests", "approval", "x"), KnownNo, ""},
		{"access review", a("create", "authorization.k8s.io", "", "subjectaccessreviews", "", ""), KnownYes, ""},
		{"non-resource", Attributes{Verb: "get", Path: "/healthz"}, KnownNo, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := nodeAuthorize("system:node:n1", &tc.a, graph, time.Time{})
			if got.allowed != tc.want || got.reason != tc.reason {
				t.Fatalf("got %v %q, want %v %q", got.allowed, got.reason, tc.want, tc.reason)
			}
			if (got.missing != "") != (tc.want == NotKnown) {
				t.Fatalf("missing %q", got.missing)
			}
		})
	}
	own := a("get", "", "", "nodes", "", "")
	if got := nodeAuthorize("system:node:", &own, graph, time.Time{}); got.reason != `unknown node for user "system:node:"` {
		t.Errorf("nameless node: %q", got.reason)
	}
	if isNode("system:node:n1", []string{authn.GroupAuthenticated}) || isNode("alice", []string{authn.GroupNodes}) || !isNode("system:node:n1", []string{authn.GroupNodes}) {
		t.Error("the node authorizer is addressed by name and group together")
	}
}
