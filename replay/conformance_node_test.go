package replay

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// nodeState is a cluster whose pods run on node-1, and a volume of one of them.
const nodeState = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, uid: pod-1, resourceVersion: "10"}
spec:
  nodeName: node-1
  serviceAccountName: web
  containers: [{name: c, envFrom: [{secretRef: {name: password}}, {configMapRef: {name: settings}}]}]
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
---
apiVersion: v1
kind: Pod
metadata: {name: etcd-node-1, namespace: kube-system, uid: pod-2, resourceVersion: "11", annotations: {kubernetes.io/config.mirror: hash}}
spec:
  nodeName: node-1
  serviceAccountName: admin
  containers: [{name: c, envFrom: [{secretRef: {name: stolen}}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: waiting, namespace: default, uid: pod-3, resourceVersion: "12"}
spec:
  containers: [{name: c, envFrom: [{secretRef: {name: early}}]}]
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv, uid: pv-1, resourceVersion: "13"}
spec:
  claimRef: {namespace: default, name: data}
  csi:
    driver: d
    volumeHandle: h
    controllerPublishSecretRef: {namespace: storage, name: controller}
    nodePublishSecretRef: {namespace: storage, name: publish}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: va, uid: va-1, resourceVersion: "14"}
spec: {nodeName: node-1, attacher: d, source: {persistentVolumeName: pv}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice, uid: slice-1, resourceVersion: "15"}
spec: {nodeName: node-1, driver: d, pool: {name: p, generation: 1, resourceSliceCount: 1}}
`

// TestConformanceNode: what nodes may do. Every record is what an apiserver of 1.36 says.
func TestConformanceNode(t *testing.T) {
	s := state.New("conformance")
	snap, _, err := observe.ReadSnapshot(strings.NewReader(jsonList(t, []byte(nodeState))))
	if err != nil {
		t.Fatal(err)
	}
	snap.Kinds = kept.Resources()
	snap.Began, snap.Ended = clock(t, "10:00:00"), clock(t, "10:00:00")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	const (
		ns = "/api/v1/namespaces/default/"
		no = "forbid no relationship found between node 'node-1' and this object"
	)
	for _, c := range []struct {
		name, verb, uri, record string
		user                    string // default node-1
		alone                   bool   // not in the group of nodes
	}{
		{name: "40 without the group of nodes", alone: true, verb: "get", uri: "/api/v1/nodes/node-1", record: "forbid"},
		{name: "40 without the group, nobody asks the graph", alone: true, verb: "get", uri: ns + "secrets/password", record: "forbid"},
		{name: "40 the group without the name", user: "alice", verb: "get", uri: "/api/v1/nodes/node-1", record: "forbid"},
		{name: "41 all nodes", verb: "list", uri: "/api/v1/nodes", record: "forbid node 'node-1' cannot read all nodes, only " +
			"its own Node object"},
		{name: "41 its own node, which there is none of", verb: "get", uri: "/api/v1/nodes/node-1", record: "allow"},
		{name: "41 its own node in a list", verb: "watch", uri: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch=true",
			record: "allow"},
		{name: "41 another node", verb: "get", uri: "/api/v1/nodes/other", record: "forbid node 'node-1' cannot read 'other', only " +
			"its own Node object"},
		{name: "42 a secret only its mirror pod names", verb: "get", uri: "/api/v1/namespaces/kube-system/secrets/stolen", record: no},
		{name: "42 the mirror pod's account", verb: "create", uri: "/api/v1/namespaces/kube-system/serviceaccounts/admin/token",
			record: no},
		{name: "42 the mirror pod", verb: "get", uri: "/api/v1/namespaces/kube-system/pods/etcd-node-1", record: "allow"},
		{name: "43 its own pods", verb: "list", uri: "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1", record: "allow"},
		{name: "43 pods not on another node", verb: "list", uri: "/api/v1/pods?fieldSelector=spec.nodeName%21%3Dnode-2",
			record: "forbid can only list/watch pods with spec.nodeName field selector"},
		{name: "44 a volume's secret for controllers", verb: "get", uri: "/api/v1/namespaces/storage/secrets/controller", record: no},
		{name: "44 a volume's secret for nodes", verb: "get", uri: "/api/v1/namespaces/storage/secrets/publish", record: "allow"},
		{name: "45 a lease in default", verb: "get", uri: "/apis/coordination.k8s.io/v1/namespaces/default/leases/node-1",
			record: `forbid can only access leases in the "kube-node-lease" system namespace`},
		{name: "its own lease", verb: "update", uri: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1",
			record: "allow"},
		{name: "a secret of its pod", verb: "watch", uri: ns + "secrets?fieldSelector=metadata.name%3Dpassword&watch=true",
			record: "allow"},
		{name: "a config map of its pod", verb: "get", uri: ns + "configmaps/settings", record: "allow"},
		{name: "its pod's account", verb: "get", uri: ns + "serviceaccounts/web", record: "allow"},
		{name: "a token of its pod's account", verb: "create", uri: ns + "serviceaccounts/web/token", record: "allow"},
		{name: "a claim of its pod", verb: "get", uri: ns + "persistentvolumeclaims/data", record: "allow"},
		{name: "a claim's status", verb: "patch", uri: ns + "persistentvolumeclaims/data/status", record: "allow"},
		{name: "the claim of a generic ephemeral volume", verb: "get", uri: ns + "persistentvolumeclaims/web-scratch", record: "allow"},
		{name: "the volume behind it", verb: "get", uri: "/api/v1/persistentvolumes/pv", record: "allow"},
		{name: "a resource claim", verb: "get", uri: "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu", record: "allow"},
		{name: "an attachment", verb: "get", uri: "/apis/storage.k8s.io/v1/volumeattachments/va", record: "allow"},
		{name: "a slice", verb: "update", uri: "/apis/resource.k8s.io/v1/resourceslices/slice", record: "allow"},
		{name: "a pod that is on no node", verb: "get", uri: ns + "pods/waiting", record: no},
		{name: "a secret of a pod that is on no node", verb: "get", uri: ns + "secrets/early", record: no},
		{name: "another node's secret", user: "system:node:node-2", verb: "get", uri: ns + "secrets/password",
			record: "forbid no relationship found between node 'node-2' and this object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := step{At: "11:00:00", User: "system:node:node-1", Groups: []string{"system:nodes", "system:authenticated"},
				Verb: c.verb, URI: c.uri}
			if c.user != "" {
				st.User = c.user
			}
			if c.alone {
				st.Groups = st.Groups[1:]
			}
			st.Decision, st.Reason, _ = strings.Cut(c.record, " ")
			v := New(Config{Version: "test"}).Replay(st.event(t), s)
			if v.Outcome != verdict.OutcomeMatch || v.Replayed != v.Recorded {
				t.Errorf("%s %s: %s; replayed %s", v.Outcome, v.Class, v.Cause, v.Replayed)
			}
			want := ""
			if v.Recorded == verdict.DecisionAllow {
				want = verdict.AuthorizerNode
			}
			if v.Authorizer != want {
				t.Errorf("decided by %q, want %q", v.Authorizer, want)
			}
		})
	}
}

// TestNodeBehind: a node asks while its pod is being bound, was just bound or is just gone; what was
// recorded is explained by the path that came or went, and when.
func TestNodeBehind(t *testing.T) {
	s := state.New("c")
	pod := func(resourceVersion, node string) []byte {
		return []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"default","uid":"u","resourceVersion":"` +
			resourceVersion + `"},` +
			`"spec":{` + node + `"containers":[{"name":"c","envFrom":[{"secretRef":{"name":"password"}}]}]}}`)
	}
	snap := observe.Snapshot{Began: clock(t, "10:00:00"), Ended: clock(t, "10:00:00"), Kinds: kept.Resources(),
		Objects: []observe.Observation{
			{Source: observe.SourceSnapshot, Resource: kept.Pods, Namespace: "default", Name: "p", UID: "u", ResourceVersion: "10",
				Object: pod("10", "")},
		}}
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	s.Apply(
		observe.Observation{Source: observe.SourceAudit, Resource: kept.Pods, Namespace: "default", Name: "p", UID: "u",
			ResourceVersion: "11",
			Object:          pod("11", `"nodeName":"node-1",`), NotBefore: clock(t, "11:00:00"), NotAfter: clock(t, "11:00:00.020")},
		observe.Observation{Source: observe.SourceAudit, Resource: kept.Pods, Namespace: "default", Name: "p", UID: "u", Deleted: true,
			NotBefore: clock(t, "11:30:00"), NotAfter: clock(t, "11:30:00.020")})
	const (
		no   = "forbid no relationship found between node 'node-1' and this object"
		here = "the record agrees with the pods on the node at another moment of the request's window: "
		lag  = "the record agrees with the pods on the node as they were up to 5s before, which the node authorizer had " +
			"not seen change yet: "
	)
	for _, c := range []struct{ name, at, record, cause string }{
		{"while it is being bound", "11:00:00.010", "allow", here + "there was a path to secrets/default/password, if the change that " +
			"was under way when the request arrived had been made"},
		{"just after it was bound", "11:00:00.035", no, here + "there was no path to secrets/default/password until 15.1ms before " +
			"the request arrived"},
		{"longer after it was bound", "11:00:00.420", no, lag + "there was no path to secrets/default/password until 400.1ms before " +
			"the request arrived"},
		{"just after it went", "11:30:00.024", "allow", here + "there was a path to secrets/default/password until 4.1ms before " +
			"the request arrived"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := step{At: c.at, User: "system:node:node-1", Groups: []string{"system:nodes", "system:authenticated"}, Verb: "get",
				URI: "/api/v1/namespaces/default/secrets/password"}
			st.Decision, st.Reason, _ = strings.Cut(c.record, " ")
			v := New(Config{Version: "test", Lag: DefaultLag}).Replay(st.event(t), s)
			if v.Outcome != verdict.OutcomeAmbiguous || v.Class != verdict.ClassRaced || v.Cause != c.cause {
				t.Errorf("%s %s: %s; want %s", v.Outcome, v.Class, v.Cause, c.cause)
			}
		})
	}
}
