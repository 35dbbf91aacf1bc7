package node

import (
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// relations is a Graph that knows some paths.
type relations map[string]Known

func (r relations) Related(_ time.Time, node, _, resource, namespace, name string) Known {
	return r[node+" "+resource+" "+namespace+"/"+name]
}

func TestAuthorize(t *testing.T) {
	const no = "no relationship found between node 'n1' and this object"
	g := relations{"n1 secrets d/s": graph.Present, "n1 secrets d/t": graph.Absent, "n1 serviceaccounts d/sa": graph.Present,
		"n1 pods d/p": graph.Present}
	a := func(verb, group, ns, resource, sub, name string) verdict.Attributes {
		return verdict.Attributes{Verb: verb, ResourceRequest: true, APIGroup: group, Namespace: ns, Resource: resource, Subresource: sub,
			Name: name}
	}
	selecting := func(a verdict.Attributes, selector string) verdict.Attributes {
		a.FieldSelector = selector
		return a
	}
	cases := []struct {
		name   string
		a      verdict.Attributes
		want   Known
		reason string
	}{
		{"own secret", a("get", "", "d", "secrets", "", "s"), graph.Present, ""},
		{"foreign secret", a("watch", "", "d", "secrets", "", "t"), graph.Absent, no},
		{"secret nobody knows about", a("get", "", "d", "secrets", "", "u"), graph.Unknown, ""},
		{"all secrets", a("list", "", "d", "secrets", "", ""), graph.Absent, "No Object name found"},
		{"write a secret", a("update", "", "d", "secrets", "", "s"), graph.Absent, "can only read resources of this type"},
		{"subresource of a configmap", a("get", "", "d", "configmaps", "x", "s"), graph.Absent, "cannot read subresource"},
		{"secrets of all namespaces", a("list", "", "", "secrets", "", ""), graph.Absent, "can only read namespaced object of this type"},
		{"list volumes", a("list", "", "", "persistentvolumes", "", ""), graph.Absent, "can only get individual resources of this type"},
		{"claim status", a("patch", "", "d", "persistentvolumeclaims", "status", "c"), graph.Unknown, ""},
		{"get claim status", a("get", "", "d", "persistentvolumeclaims", "status", "c"), graph.Absent,
			"can only get/update/patch this type"},
		{"attachment subresource", a("get", "storage.k8s.io", "", "volumeattachments", "status", "v"), graph.Absent,
			"cannot get subresource"},
		{"token of a related account", a("create", "", "d", "serviceaccounts", "token", "sa"), graph.Present, ""},
		{"token without a name", a("create", "", "d", "serviceaccounts", "token", ""), graph.Absent,
			"can only create tokens for individual service accounts"},
		{"another subresource of an account", a("create", "", "d", "serviceaccounts", "x", "sa"), graph.Absent,
			"can only create token subresource of serviceaccount"},
		{"list accounts", a("list", "", "d", "serviceaccounts", "", ""), graph.Absent,
			"can only create tokens for individual service accounts"},
		{"own lease", a("update", "coordination.k8s.io", "kube-node-lease", "leases", "", "n1"), graph.Present, ""},
		{"other lease", a("update", "coordination.k8s.io", "kube-node-lease", "leases", "", "n2"), graph.Absent,
			"can only access node lease with the same name as the requesting node"},
		{"lease elsewhere", a("get", "coordination.k8s.io", "d", "leases", "", "n1"), graph.Absent,
			`can only access leases in the "kube-node-lease" system namespace`},
		{"list leases", a("list", "coordination.k8s.io", "kube-node-lease", "leases", "", ""), graph.Absent,
			"can only get, create, update, patch, or delete a node lease"},
		{"new lease", a("create", "coordination.k8s.io", "kube-node-lease", "leases", "", ""), graph.Present, ""},
		{"other csinode", a("get", "storage.k8s.io", "", "csinodes", "", "n2"), graph.Absent,
			"can only access CSINode with the same name as the requesting node"},
		{"list csinodes", a("list", "storage.k8s.io", "", "csinodes", "", ""), graph.Absent,
			"can only get, create, update, patch, or delete a CSINode"},
		{"new slice", a("create", "resource.k8s.io", "", "resourceslices", "", ""), graph.Present, ""},
		{"own slices", selecting(a("list", "resource.k8s.io", "", "resourceslices", "", ""), "spec.nodeName=n1"), graph.Present, ""},
		{"all slices", a("watch", "resource.k8s.io", "", "resourceslices", "", ""), graph.Absent,
			"can only list/watch/deletecollection resourceslices with nodeName field selector"},
		{"all nodes", a("list", "", "", "nodes", "", ""), graph.Absent, "node 'n1' cannot read all nodes, only its own Node object"},
		{"other node", a("get", "", "", "nodes", "", "n2"), graph.Absent, "node 'n1' cannot read 'n2', only its own Node object"},
		{"own node", a("watch", "", "", "nodes", "", "n1"), graph.Present, ""},
		{"any node's status", a("patch", "", "", "nodes", "status", "n2"), graph.Present, ""},
		{"delete a node", a("delete", "", "", "nodes", "", "n1"), graph.Absent, ""},
		{"own pods", selecting(a("list", "", "", "pods", "", ""), "spec.nodeName=n1"), graph.Present, ""},
		{"own pods by exclusion", selecting(a("list", "", "", "pods", "", ""), "spec.nodeName!=n2"), graph.Absent,
			"can only list/watch pods with spec.nodeName field selector"},
		{"own pods among more", selecting(a("watch", "", "", "pods", "", ""), "metadata.namespace=d,spec.nodeName==n1"), graph.Present, ""},
		{"one pod by name", a("list", "", "d", "pods", "", "p"), graph.Present, ""},
		{"evict", a("create", "", "d", "pods", "eviction", "p"), graph.Present, ""},
		{"log", a("get", "", "d", "pods", "log", "p"), graph.Absent, ""},
		{"services", a("list", "", "", "services", "", ""), graph.Present, ""},
		{"write services", a("update", "", "d", "services", "", "x"), graph.Absent, ""},
		{"events", a("create", "", "d", "events", "", ""), graph.Present, ""},
		{"signing request", a("create", "certificates.k8s.io", "", "certificatesigningrequests", "", ""), graph.Present, ""},
		{"approval", a("update", "certificates.k8s.io", "", "certificatesigningrequests", "approval", "x"), graph.Absent, ""},
		{"access review", a("create", "authorization.k8s.io", "", "subjectaccessreviews", "", ""), graph.Present, ""},
		{"non-resource", verdict.Attributes{Verb: "get", Path: "/healthz"}, graph.Absent, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := RulesOf(nil).Authorize("system:node:n1", &tc.a, g, time.Time{})
			if got.Allowed != tc.want || got.Reason != tc.reason {
				t.Fatalf("got %v %q, want %v %q", got.Allowed, got.Reason, tc.want, tc.reason)
			}
			if (got.Missing != "") != (tc.want == graph.Unknown) {
				t.Fatalf("missing %q", got.Missing)
			}
		})
	}
	own := a("get", "", "", "nodes", "", "")
	if got := RulesOf(nil).Authorize("system:node:", &own, g, time.Time{}); got.Reason != `unknown node for user "system:node:"` {
		t.Errorf("nameless node: %q", got.Reason)
	}
	if Is("system:node:n1", []string{authn.GroupAuthenticated}) || Is("alice", []string{authn.GroupNodes}) ||
		!Is("system:node:n1", []string{authn.GroupNodes}) {
		t.Error("the node authorizer is addressed by name and group together")
	}
}

// TestRules: versions and gates change single answers. The real code at emulated versions says
// the same in the oracle's tests.
func TestRules(t *testing.T) {
	cfg := func(minor int, gates ...string) *config.APIServer {
		c := &config.APIServer{Minor: minor, Gates: map[string]bool{}}
		for _, g := range gates {
			name, off := g, false
			if name[0] == '!' {
				name, off = name[1:], true
			}
			c.Gates[name] = !off
		}
		return c
	}
	const (
		accounts = "KubeletServiceAccountTokenForCredentialProviders"
		no       = "no relationship found between node 'n1' and this object"
	)
	a := func(verb, group, ns, resource, sub, name string) verdict.Attributes {
		return verdict.Attributes{Verb: verb, ResourceRequest: true, APIGroup: group, Namespace: ns, Resource: resource, Subresource: sub,
			Name: name}
	}
	own := func(a verdict.Attributes) verdict.Attributes {
		a.FieldSelector = "spec.nodeName=n1"
		return a
	}
	pods, account := a("list", "", "", "pods", "", ""), a("get", "", "d", "serviceaccounts", "", "sa")
	pcr := a("get", "certificates.k8s.io", "d", "podcertificaterequests", "", "r")
	bundle := a("watch", "certificates.k8s.io", "", "clustertrustbundles", "", "")
	for _, tc := range []struct {
		name   string
		cfg    *config.APIServer
		a      verdict.Attributes
		want   Known
		reason string
	}{
		{"all pods before 1.32", cfg(31), pods, graph.Present, ""},
		{"all pods in 1.31 with the gate", cfg(31, "AuthorizeNodeWithSelectors"), pods, graph.Absent,
			"can only list/watch pods with spec.nodeName field selector"},
		{"all pods in 1.30, which has no such gate", cfg(30, "AuthorizeNodeWithSelectors"), pods, graph.Present, ""},
		{"all pods in 1.33 without the gate", cfg(33, "!AuthorizeNodeWithSelectors"), pods, graph.Present, ""},
		{"all pods in 1.34, where the gate is locked", cfg(34, "!AuthorizeNodeWithSelectors"), pods, graph.Absent,
			"can only list/watch pods with spec.nodeName field selector"},
		{"any pod before 1.32", cfg(31), a("get", "", "d", "pods", "", "x"), graph.Present, ""},
		{"any node before 1.32", cfg(31), a("get", "", "", "nodes", "", "n2"), graph.Present, ""},
		{"delete a node before 1.32", cfg(31), a("delete", "", "", "nodes", "", "n1"), graph.Absent, ""},
		{"evict before 1.32", cfg(31), a("create", "", "d", "pods", "eviction", "p"), graph.Present, ""},
		{"all slices before 1.32", cfg(31), a("list", "resource.k8s.io", "", "resourceslices", "", ""), graph.Present, ""},
		{"slices before there were any", cfg(29), a("list", "resource.k8s.io", "", "resourceslices", "", ""), graph.Absent, ""},
		{"claims before there were any", cfg(25), a("get", "resource.k8s.io", "d", "resourceclaims", "", "c"), graph.Absent, ""},
		{"an account", nil, account, graph.Absent, no},
		{"an account in 1.33", cfg(33), account, graph.Absent, "not allowed to get service accounts"},
		{"an account in 1.33 with the gate", cfg(33, accounts), account, graph.Absent, no},
		{"an account in 1.36 without the gate", cfg(36, "!"+accounts), account, graph.Absent, "not allowed to get service accounts"},
		{"an account for pod certificates", cfg(36, "!"+accounts, "PodCertificateRequest"), account, graph.Absent, no},
		{"an account in 1.32", cfg(32), account, graph.Absent, "can only create tokens for individual service accounts"},
		{"no account's name", nil, a("get", "", "d", "serviceaccounts", "", ""), graph.Absent, "No Object name found"},
		{"pod certificates by default", nil, pcr, graph.Absent, ""},
		{"a pod certificate", cfg(36, "PodCertificateRequest"), pcr, graph.Absent, no},
		{"a new pod certificate", cfg(36, "PodCertificateRequest"), a("create", "certificates.k8s.io", "d", "podcertificaterequests", "",
			""), graph.Present, ""},
		{"all pod certificates", cfg(36, "PodCertificateRequest"), a("list", "certificates.k8s.io", "", "podcertificaterequests", "", ""),
			graph.Absent, "can only list/watch podcertificaterequests with nodeName field selector"},
		{"its pod certificates", cfg(36, "PodCertificateRequest"), own(a("list", "certificates.k8s.io", "", "podcertificaterequests", "",
			"")), graph.Present, ""},
		{"delete a pod certificate", cfg(36, "PodCertificateRequest"), a("delete", "certificates.k8s.io", "d", "podcertificaterequests", "",
			"r"), graph.Absent, "nodes may not delete podcertificaterequests"},
		{"a pod certificate's status", cfg(36, "PodCertificateRequest"), a("get", "certificates.k8s.io", "d", "podcertificaterequests",
			"status", "r"), graph.Absent, "nodes may not access the status subresource of PodCertificateRequests"},
		{"trust bundles by default", nil, bundle, graph.Absent, ""},
		{"trust bundles", cfg(36, "ClusterTrustBundle"), bundle, graph.Present, ""},
		{"trust bundles in 1.37", cfg(37), bundle, graph.Present, ""},
		{"pod certificates in 1.37", cfg(37), pcr, graph.Absent, no},
		{"events of events.k8s.io in 1.34", cfg(34), a("create", "events.k8s.io", "d", "events", "", ""), graph.Absent, ""},
		{"events of events.k8s.io in 1.35", cfg(35), a("create", "events.k8s.io", "d", "events", "", ""), graph.Present, ""},
		{"selectors nobody looks at", cfg(33, "!AuthorizeWithSelectors"), own(pods), graph.Absent,
			"can only list/watch pods with spec.nodeName field selector"},
		{"a CSINode's status in 1.36", cfg(36), a("get", "storage.k8s.io", "", "csinodes", "status", "n1"), graph.Absent,
			"cannot authorize CSINode subresources"},
		{"another verb on it in 1.36", cfg(36), a("list", "storage.k8s.io", "", "csinodes", "status", "n1"), graph.Absent,
			"can only get, create, update, patch, or delete a CSINode"},
		{"a CSINode's status in 1.37", cfg(37), a("get", "storage.k8s.io", "", "csinodes", "status", "n1"), graph.Absent,
			"CSINode status access requires CSIVolumeHealth feature"},
		{"it with the gate", cfg(37, "CSIVolumeHealth"), a("patch", "storage.k8s.io", "", "csinodes", "status", "n1"), graph.Present, ""},
		{"creating it", cfg(37, "CSIVolumeHealth"), a("create", "storage.k8s.io", "", "csinodes", "status", "n1"), graph.Absent,
			"can only get, update, or patch CSINode status"},
		{"another's status", cfg(37, "CSIVolumeHealth"), a("patch", "storage.k8s.io", "", "csinodes", "status", "n2"), graph.Absent,
			"can only access CSINode with the same name as the requesting node"},
		{"another subresource in 1.37", cfg(37), a("list", "storage.k8s.io", "", "csinodes", "x", "n1"), graph.Absent,
			"cannot authorize CSINode subresources"},
		{"the words of old versions", cfg(18), a("get", "", "d", "secrets", "", "s"), graph.Absent,
			`no relationship found between node "n1" and this object`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := RulesOf(tc.cfg).Authorize("system:node:n1", &tc.a, assuming(graph.Absent), time.Time{})
			if got.Allowed != tc.want || got.Reason != tc.reason {
				t.Fatalf("got %v %q, want %v %q", got.Allowed, got.Reason, tc.want, tc.reason)
			}
		})
	}
}

// TestEphemeralContainer: what only an ephemeral container names counts at once since 1.33.
func TestEphemeralContainer(t *testing.T) {
	secret := verdict.Attributes{Verb: "get", ResourceRequest: true, Namespace: "d", Resource: "secrets", Name: "s"}
	for minor, want := range map[int]Known{0: graph.Present, 28: graph.Absent, 32: graph.Absent, 33: graph.Present, 37: graph.Present} {
		if got := RulesOf(&config.APIServer{Minor: minor}).Authorize("system:node:n1", &secret, assuming(graph.Late),
			time.Time{}); got.Allowed != want {
			t.Errorf("1.%d: %v, want %v", minor, got.Allowed, want)
		}
	}
}

// assuming is the graph that has one answer to every question.
type assuming Known

func (k assuming) Related(time.Time, string, string, string, string, string) Known { return Known(k) }

func BenchmarkAuthorize(b *testing.B) {
	pods := verdict.Attributes{Verb: "list", ResourceRequest: true, Resource: "pods", FieldSelector: "spec.nodeName=n1"}
	secret := verdict.Attributes{Verb: "get", ResourceRequest: true, Namespace: "d", Resource: "secrets", Name: "s"}
	rules := RulesOf(nil)
	var g Graph = assuming(graph.Present)
	for name, a := range map[string]*verdict.Attributes{"its pods": &pods, "a secret": &secret} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if rules.Authorize("system:node:n1", a, g, time.Time{}).Allowed != graph.Present {
					b.Fatal("refused")
				}
			}
		})
	}
}
