package configurations

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

// volumes returns what a node may read because of a pod that runs on it, for each of some nodes.
func volumes(node string) string {
	return strings.ReplaceAll(`
{apiVersion: v1, kind: Node, metadata: {name: NODE}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner-NODE, namespace: team-a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: env-NODE, namespace: team-a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull-NODE, namespace: team-a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: csi-publish-NODE, namespace: team-a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: csi-controller-NODE, namespace: team-a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: env-NODE, namespace: team-a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: volume-NODE, namespace: team-a}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-NODE}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: team-a, name: data-NODE}
  csi:
    driver: csi.example.org
    volumeHandle: v-NODE
    nodePublishSecretRef: {name: csi-publish-NODE, namespace: team-a}
    controllerPublishSecretRef: {name: csi-controller-NODE, namespace: team-a}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-NODE, namespace: team-a}
spec: {accessModes: [ReadWriteOnce], volumeName: pv-NODE, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: app-NODE, namespace: team-a, labels: {app: x}}
spec:
  nodeName: NODE
  serviceAccountName: runner-NODE
  imagePullSecrets: [{name: pull-NODE}]
  containers:
  - name: c
    image: i
    env: [{name: S, valueFrom: {secretKeyRef: {name: env-NODE, key: k}}}]
    envFrom: [{configMapRef: {name: env-NODE}}]
  volumes:
  - {name: v, configMap: {name: volume-NODE}}
  - {name: d, persistentVolumeClaim: {claimName: data-NODE}}
  - {name: e, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: app-NODE-e, namespace: team-a}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: va-NODE}
spec: {attacher: csi.example.org, nodeName: NODE, source: {persistentVolumeName: pv-NODE}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-NODE}
spec: {driver: gpu.example.org, nodeName: NODE, pool: {name: NODE, generation: 1, resourceSliceCount: 1}, devices: [{name: d0}]}
---
`, "NODE", node)
}

// reads returns what a node may read when app-NODE runs on it, and nobody else.
func reads(node string) []string {
	const ns = "GET /api/v1/namespaces/team-a/"
	return []string{
		ns + "secrets/env-" + node, ns + "secrets/pull-" + node, ns + "secrets/csi-publish-" + node, ns + "configmaps/env-" + node,
		ns + "configmaps/volume-" + node,
		ns + "secrets?fieldSelector=metadata.name%3Denv-" + node,
		ns + "configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Denv-" + node,
		ns + "persistentvolumeclaims/data-" + node, ns + "persistentvolumeclaims/app-" + node + "-e",
		"GET /api/v1/persistentvolumes/pv-" + node,
		ns + "serviceaccounts/runner-" + node, ns + "pods/app-" + node,
		"PATCH /api/v1/namespaces/team-a/persistentvolumeclaims/data-" + node + "/status application/merge-patch+json {}",
	}
}

// own returns what a node may do whatever runs on it.
func own(node string) []string {
	const leases, csi, slices = " /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", " /apis/storage.k8s.io/v1/csinodes",
		"/apis/resource.k8s.io/v1/resourceslices"
	return []string{
		"GET /api/v1/nodes/" + node, "PATCH /api/v1/nodes/" + node + "/status application/merge-patch+json {}",
		"GET /api/v1/pods?fieldSelector=spec.nodeName%3D" + node,
		"GET /api/v1/pods?watch=1&timeoutSeconds=1&fieldSelector=spec.nodeName%3D" + node, "GET /api/v1/services?limit=1", "GET /version",
		"POST" + leases + fmt.Sprintf(` {"metadata":{"name":%q}}`, node), "GET" + leases + "/" + node, "PUT" + leases + "/" + node + " {}",
		"POST" + csi + fmt.Sprintf(` {"metadata":{"name":%q},"spec":{"drivers":[]}}`, node), "GET" + csi + "/" + node,
		"GET " + slices + "?fieldSelector=spec.nodeName%3D" + node, "GET " + slices + "/slice-" + node,
		"GET /apis/storage.k8s.io/v1/volumeattachments/va-" + node,
		"GET /api/v1/nodes?fieldSelector=metadata.name%3D" + node,
	}
}

// never returns what no node may, and what one may not because it is another's.
func never(node, other string) []string {
	const ns = "GET /api/v1/namespaces/team-a/"
	return []string{
		"GET /api/v1/nodes", "GET /api/v1/nodes/" + other, "GET /api/v1/pods", "GET /api/v1/pods?fieldSelector=spec.nodeName!%3D" + other,
		ns + "secrets", ns + "configmaps",
		ns + "secrets/csi-controller-" + node, ns + "secrets/s0", "GET /api/v1/persistentvolumes", ns + "persistentvolumeclaims",
		"DELETE /api/v1/namespaces/team-a/secrets/env-" + node,
		ns + "secrets/absent", ns + "configmaps/absent", "GET /api/v1/persistentvolumes/absent",
		"GET /apis/storage.k8s.io/v1/volumeattachments", "GET /api/v1/secrets",
		"GET /apis/resource.k8s.io/v1/resourceslices", "GET /apis/resource.k8s.io/v1/resourceslices/slice-" + other,
		"GET /apis/coordination.k8s.io/v1/namespaces/default/leases/" + node,
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + other,
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
		"GET /apis/storage.k8s.io/v1/csinodes/" + other, "GET /apis/storage.k8s.io/v1/csinodes",
		"GET /apis/storage.k8s.io/v1/volumeattachments/va-" + other,
		"POST /api/v1/namespaces/team-a/serviceaccounts/runner-" + other + "/token {}", "GET /api/v1/namespaces/team-a/serviceaccounts",
		"GET /apis/rbac.authorization.k8s.io/v1/clusterroles",
	}
}

// related waits until the graph of the apiserver has a way from an object to a node, or none:
// each kind reaches it on a watch of its own.
func related(t *testing.T, r *recorder.Recorder, want bool, node string, a authorizationv1.ResourceAttributes) {
	t.Helper()
	a.Verb = "get"
	r.Decided(t, want, "system:node:"+node, []string{"system:nodes"}, a)
}

// settled waits until the graph knows all that volumes makes.
func settled(t *testing.T, r *recorder.Recorder, node string) {
	t.Helper()
	related(t, r, true, node, authorizationv1.ResourceAttributes{Resource: "secrets", Namespace: "team-a", Name: "csi-publish-" + node})
	related(t, r, true, node, authorizationv1.ResourceAttributes{Group: "storage.k8s.io", Resource: "volumeattachments",
		Name: "va-" + node})
	related(t, r, true, node, authorizationv1.ResourceAttributes{Group: "resource.k8s.io", Resource: "resourceslices",
		Name: "slice-" + node})
}

// TestNodes: what nodes may read follows from what runs on them. Half of it is there before
// the log begins, half comes while it is written, and some of it goes.
func TestNodes(t *testing.T) {
	r := recorder.Start(t, recorder.Config{Name: "nodes", Late: true, Manifest: true})
	r.Apply(t, teams)
	r.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-node-lease}}")
	r.Apply(t, volumes("node-1"))
	settled(t, r, "node-1")
	r.State(t)
	node := func(name string) *recorder.Actor {
		return r.Actor(t, name, "x509", r.User(t, "system:node:"+name, "system:nodes"))
	}
	r.Scenario("from the state")
	one := node("node-1")
	one.By("node").May(t, reads("node-1")...)
	one.Try(t, own("node-1")...)
	one.MayNot(t, never("node-1", "node-2")...)

	r.Scenario("from the log")
	two := node("node-2")
	two.MayNot(t, reads("node-2")...)
	r.Apply(t, volumes("node-2"))
	settled(t, r, "node-2")
	two.By("node").May(t, reads("node-2")...)
	two.Try(t, own("node-2")...)
	two.MayNot(t, never("node-2", "node-1")...)
	two.MayNot(t, reads("node-1")...)
	one.MayNot(t, reads("node-2")...)

	r.Scenario("a pod that is bound")
	const late = `
{apiVersion: v1, kind: Secret, metadata: {name: late, namespace: team-a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: debug, namespace: team-a}}
---
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: team-a, labels: {app: late}}
spec: {containers: [{name: c, image: i, env: [{name: S, valueFrom: {secretKeyRef: {name: late, key: k}}}]}]}
`
	const secretLate, secretDebug = "GET /api/v1/namespaces/team-a/secrets/late", "GET /api/v1/namespaces/team-a/secrets/debug"
	of := func(name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Resource: "secrets", Namespace: "team-a", Name: name}
	}
	r.Apply(t, late)
	one.MayNot(t, secretLate, "GET /api/v1/namespaces/team-a/pods/late")
	r.Admin.May(t, `POST /api/v1/namespaces/team-a/pods/late/binding {"apiVersion":"v1","kind":"Binding","metadata":{"name":"late"},`+
		`"target":{"kind":"Node","name":"node-1"}}`)
	related(t, r, true, "node-1", of("late"))
	one.By("node").May(t, secretLate, "GET /api/v1/namespaces/team-a/pods/late")
	two.MayNot(t, secretLate)
	one.MayNot(t, secretDebug)
	r.Admin.May(t, `PATCH /api/v1/namespaces/team-a/pods/late/ephemeralcontainers application/strategic-merge-patch+json `+
		`{"spec":{"ephemeralContainers":[{"name":"d","image":"i","env":[{"name":"S",`+
		`"valueFrom":{"secretKeyRef":{"name":"debug","key":"k"}}}]}]}}`)
	related(t, r, true, "node-1", of("debug"))
	one.By("node").May(t, secretDebug)

	r.Scenario("a mirror pod")
	uid := r.UID(t, "Node", "", "node-1")
	one.Try(t, fmt.Sprintf(`POST /api/v1/namespaces/team-a/pods {"metadata":{"name":"mirror-node-1",`+
		`"annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"node-1","uid":%q,`+
		`"controller":true}]},"spec":{"nodeName":"node-1","containers":[{"name":"c","image":"i"}]}}`, uid))
	related(t, r, true, "node-1", authorizationv1.ResourceAttributes{Resource: "pods", Namespace: "team-a", Name: "mirror-node-1"})
	one.By("node").May(t, "GET /api/v1/namespaces/team-a/pods/mirror-node-1")

	r.Scenario("tokens")
	// Authorized, and refused by the admission plugin: the token is bound to no pod.
	one.By("node").Refused(t, "POST /api/v1/namespaces/team-a/serviceaccounts/runner-node-1/token {}")
	one.By("node").May(t, fmt.Sprintf(`POST /api/v1/namespaces/team-a/serviceaccounts/runner-node-1/token `+
		`{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"app-node-1","uid":%q}}}`, r.UID(t, "Pod", "team-a",
		"app-node-1")))

	r.Scenario("what goes")
	r.Remove(t, "Pod", "team-a", "app-node-1")
	related(t, r, false, "node-1", of("env-node-1"))
	related(t, r, false, "node-1", of("csi-publish-node-1"))
	one.MayNot(t, reads("node-1")...)
	r.Remove(t, "PersistentVolume", "", "pv-node-2")
	r.Remove(t, "VolumeAttachment", "", "va-node-2")
	r.Remove(t, "ResourceSlice", "", "slice-node-2")
	related(t, r, false, "node-2", authorizationv1.ResourceAttributes{Group: "storage.k8s.io", Resource: "volumeattachments",
		Name: "va-node-2"})
	related(t, r, false, "node-2", authorizationv1.ResourceAttributes{Group: "resource.k8s.io", Resource: "resourceslices",
		Name: "slice-node-2"})
	two.MayNot(t, "GET /apis/storage.k8s.io/v1/volumeattachments/va-node-2", "GET /apis/resource.k8s.io/v1/resourceslices/slice-node-2")
	two.Try(t, reads("node-2")...)
	r.Admin.May(t, "DELETE /api/v1/namespaces/team-a/pods?labelSelector=app%3Dlate&gracePeriodSeconds=0")
	related(t, r, false, "node-1", of("late"))
	one.MayNot(t, secretLate, secretDebug)
	two.By("node").May(t, "GET /api/v1/namespaces/team-a/secrets/env-node-2")

	r.Scenario("other names")
	r.Actor(t, "node-2 without the group", "x509", r.User(t, "system:node:node-2")).Found(t, "node-identity-malformed").MayNot(t,
		"GET /api/v1/nodes/node-2", "GET /api/v1/namespaces/team-a/secrets/env-node-2")
	r.Actor(t, "a node without a name", "x509", r.User(t, "system:node:", "system:nodes")).Found(t, "node-identity-malformed").Try(t,
		"GET /api/v1/nodes/node-2", "GET /version")
	r.Admin.As("Impersonate-User", "system:node:node-2", "Impersonate-Group", "system:nodes").By("node").May(t,
		"GET /api/v1/namespaces/team-a/secrets/env-node-2")
	r.Admin.As("Impersonate-User", "system:node:node-2").MayNot(t, "GET /api/v1/namespaces/team-a/secrets/env-node-2")
	judge(t, r.Finish(t))
}
