package configurations

import (
	"testing"

	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

// teams are the objects that requests are about in most configurations.
const teams = `
{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: team-a}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: team-b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: team-b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c0, namespace: team-a}, data: {k: v}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c0, namespace: team-b}, data: {k: v}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s0, namespace: team-a}, data: {k: dg==}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p0, namespace: team-a}, spec: {nodeName: node-1, containers: [{name: c, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p0, namespace: team-b}, spec: {nodeName: node-2, serviceAccountName: robot, containers: [{name: c, image: i}]}}
`

// reader is a role that reads, and one that writes a little.
const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: ["", apps], resources: [pods, services, deployments, configmaps, namespaces], verbs: [get, list, watch]}
- {nonResourceURLs: ["/metrics", "/logs/*"], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writer}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create, update, patch, delete]}
- {apiGroups: [""], resources: [pods/exec], verbs: [get]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create, update, get]}
- {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
---
`

// hostile are requests whose meaning is not what it looks like.
var hostile = []string{
	"HEAD /api/v1/namespaces/team-a/pods", "OPTIONS /api/v1/namespaces/team-a/pods", "GET //api/v1/namespaces/team-a/pods",
	"GET /api/v1//namespaces/team-a/pods",
	"GET /api/v1/namespaces/team-a/pods%2Fp0", "GET /api/v1/watch/namespaces/team-a/pods?timeoutSeconds=1",
	"GET /api/v1/proxy/namespaces/team-a/pods/p0",
	"GET /api/v1/namespaces/team-a/pods?watch=false", "GET /api/v1/namespaces/team-a/pods?limit=abc&fieldSelector=metadata.name%3Dp0",
	"GET /api/v1/namespaces/team-a/pods?fieldSelector=metadata.name%3Dp0", "GET /api/v1/namespaces/team-a",
	"GET /api/v1/namespaces/team-a/status",
	"GET /apis/apps/v1/namespaces/team-a", "GET /apis/apps/v1", "POST /api/v1/namespaces/team-a/configmaps?dryRun=All " +
		"{\"metadata\":{\"name\":\"dry\"}}",
	`PATCH /api/v1/namespaces/team-a/configmaps/applied?fieldManager=t&force=true application/apply-patch+yaml ` +
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}`,
}

// credentials are those that each configuration lets in, or keeps out, beside its own: what
// they must not be taken for.
//
// A node they ask as does not exist; where the log or the state tells, node is what is found.
func credentials(t *testing.T, r *recorder.Recorder, node ...string) {
	t.Helper()
	r.Scenario("credentials")
	r.Actor(t, "forged", "", r.Bearer("not-a-token")).Nobody(t, 401, "GET /version", "GET /api/v1/namespaces/team-a/pods",
		"POST /api/v1/namespaces/team-a/pods {}")
	other := recorder.Outsider(t, r, "alice", "system:masters")
	r.Actor(t, "outsider", "", other).Nobody(t, 401, "GET /version", "GET /api/v1/secrets")
	robot := r.Actor(t, "robot", "service-account-bound", r.ServiceAccount(t, r.Client, "team-b", "robot"))
	robot.Sweep(t, "team-b")
	one := r.Actor(t, "node-1", "x509", r.User(t, "system:node:node-1", "system:nodes")).Found(t, node...)
	one.Sweep(t, "team-a")
	one.Try(t, "GET /api/v1/nodes/node-1", "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1",
		"GET /api/v1/namespaces/team-a/configmaps/c0", "GET /api/v1/nodes/node-2")
}
