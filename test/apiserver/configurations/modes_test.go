package configurations

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

// policyFile has each kind of line that ABAC knows.
const policyFile = `# people
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"team-a","resource":"*","apiGroup":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"team-b","resource":"pods","readonly":true}}

{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"*","resource":"deployments","apiGroup":"apps","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"system:authenticated","readonly":true,"nonResourcePath":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"org:ops","readonly":true,"namespace":"*","resource":"*","apiGroup":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"carol","group":"org:ops","namespace":"*","resource":"configmaps"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"dave","resource":"namespaces"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"namespace":"*","resource":"*","apiGroup":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"system:serviceaccount:team-b:robot","namespace":"team-b","resource":"*","apiGroup":"apps"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"erin","nonResourcePath":"/logs/*"}}
{"user":"frank","resource":"pods","readonly":true}
# the end
`

// TestABAC: a policy file before RBAC.
func TestABAC(t *testing.T) {
	r := recorder.Start(t, recorder.Config{
		Name:     "abac",
		Flags:    []string{"--authorization-mode=ABAC,RBAC", "--authorization-policy-file=DIR/abac.jsonl"},
		Files:    map[string][]byte{"abac.jsonl": []byte(policyFile)},
		Manifest: true,
	})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, roles+`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: User, name: bob}, {kind: Group, name: "org:readers"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: acts-as}
rules:
- {apiGroups: [""], resources: [users], resourceNames: [bob], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: acts-as}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: acts-as}
subjects: [{kind: User, name: ivan}]
`)
	r.Decided(t, true, "bob", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps", Namespace: "team-a"})
	r.Decided(t, true, "ivan", nil, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: "bob"})

	r.Scenario("abac")
	alice := r.Actor(t, "alice", "x509", r.User(t, "alice"))
	alice.By("abac").May(t, "GET /api/v1/namespaces/team-a/pods", "GET /api/v1/namespaces/team-a/pods/p0/log",
		"POST /api/v1/namespaces/team-a/configmaps {}",
		"PATCH /apis/apps/v1/namespaces/team-a/deployments/x/scale application/merge-patch+json {}", "GET /api/v1/namespaces/team-a",
		"GET /version", "GET /nowhere",
		"GET /api/v1/namespaces/team-a/secrets", "DELETE /api/v1/namespaces/team-a/pods?labelSelector=a%3Db")
	alice.MayNot(t, "GET /api/v1/namespaces/team-b/pods", "GET /api/v1/pods", "GET /api/v1/nodes", "POST /nowhere {}", "HEAD /version")
	alice.Sweep(t, "team-a", "team-b")
	alice.Try(t, hostile...)

	bob := r.Actor(t, "bob", "x509", r.User(t, "bob"))
	bob.By("abac").May(t, "GET /api/v1/namespaces/team-b/pods", "GET /api/v1/namespaces/team-b/pods/p0/log",
		"GET /apis/apps/v1/namespaces/team-a/deployments",
		"GET /apis/apps/v1/deployments", "GET /api/v1/namespaces/team-b/pods?watch=1&timeoutSeconds=1")
	bob.By("rbac").May(t, "GET /api/v1/namespaces/team-a/configmaps", "GET /api/v1/namespaces/team-a/pods")
	bob.MayNot(t, "DELETE /api/v1/namespaces/team-b/pods/p0", "POST /api/v1/namespaces/team-b/pods/p0/eviction {}", "GET /api/v1/pods",
		"GET /api/v1/namespaces/team-b/configmaps")
	bob.Sweep(t, "team-a", "team-b")

	ops := r.Actor(t, "olga", "x509", r.User(t, "olga", "org:ops"))
	ops.By("abac").May(t, "GET /api/v1/namespaces/team-b/secrets", "GET /api/v1/pods?watch=1&timeoutSeconds=1",
		"GET /apis/nowhere.example/v1/widgets")
	ops.MayNot(t, "DELETE /api/v1/namespaces/team-b/secrets/x", "PUT /api/v1/namespaces/team-b/configmaps/x {}")
	ops.Sweep(t, "team-b")
	carol := r.Actor(t, "carol", "x509", r.User(t, "carol", "org:ops"))
	carol.By("abac").May(t, "PUT /api/v1/namespaces/team-b/configmaps/x {}", "POST /api/v1/namespaces/team-a/configmaps {}")
	carol.MayNot(t, "PUT /api/v1/namespaces/team-b/secrets/x {}")
	r.Actor(t, "carol without her group", "x509", r.User(t, "carol")).MayNot(t, "PUT /api/v1/namespaces/team-b/configmaps/x {}",
		"GET /api/v1/namespaces/team-b/configmaps/x")

	dave := r.Actor(t, "dave", "x509", r.User(t, "dave"))
	dave.By("abac").May(t, "GET /api/v1/namespaces", "POST /api/v1/namespaces {}")
	dave.MayNot(t, "GET /api/v1/namespaces/team-a", "GET /api/v1/nodes")
	erin := r.Actor(t, "erin", "x509", r.User(t, "erin"))
	erin.By("abac").May(t, "GET /logs/", "GET /logs/x/y", "POST /logs/x {}", "HEAD /logs/x")
	erin.MayNot(t, "HEAD /nowhere", "POST /nowhere {}")
	frank := r.Actor(t, "frank", "x509", r.User(t, "frank"))
	frank.By("abac").May(t, "GET /api/v1/namespaces/team-b/pods", "GET /api/v1/pods", "GET /api/v1/namespaces/team-a/pods/p0")
	frank.MayNot(t, "GET /api/v1/namespaces/team-a/configmaps", "DELETE /api/v1/namespaces/team-a/pods/p0")

	r.Scenario("impersonation")
	ivan := r.Actor(t, "ivan", "x509", r.User(t, "ivan")).As("Impersonate-User", "bob")
	ivan.By("abac").May(t, "GET /api/v1/namespaces/team-b/pods")
	ivan.By("rbac").May(t, "GET /api/v1/namespaces/team-a/configmaps")
	ivan.MayNot(t, "DELETE /api/v1/namespaces/team-b/pods/p0")
	r.Admin.As("Impersonate-User", "alice").By("abac").May(t, "GET /api/v1/namespaces/team-a/pods")
	r.Admin.As("Impersonate-User", "carol", "Impersonate-Group", "org:ops").By("abac").May(t, "GET /api/v1/namespaces/team-a/secrets")
	alice.As("Impersonate-User", "bob").Nobody(t, 403, "GET /api/v1/namespaces/team-b/pods")

	credentials(t, r, "node-unknown")
	r.Scenario("anonymous")
	anybody := r.Actor(t, "anonymous", "anonymous", r.Anonymous())
	anybody.By("rbac").May(t, "GET /version", "GET /healthz")
	anybody.MayNot(t, "GET /api/v1/pods", "GET /nowhere")
	judge(t, r.Finish(t))
}

// TestAlwaysAllow: what people ran before they ran RBAC. Nobody is refused, and nobody may be
// anonymous.
func TestAlwaysAllow(t *testing.T) {
	r := recorder.Start(t, recorder.Config{Name: "always-allow", Flags: []string{"--authorization-mode=AlwaysAllow"}})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, roles)
	r.Scenario("allowed")
	alice := r.Actor(t, "alice", "x509", r.User(t, "alice", "org:dev")).By("alwaysallow")
	alice.May(t, "GET /api/v1/secrets", "GET /api/v1/namespaces/team-b/pods", "POST /api/v1/namespaces/team-a/configmaps {}",
		"GET /metrics", "DELETE /api/v1/namespaces/absent",
		"GET /apis/nowhere.example/v1/widgets", "POST /api/v1/namespaces/team-b/serviceaccounts/robot/token {}")
	alice.Sweep(t, "team-a", "team-b")
	alice.Try(t, hostile...)
	r.Scenario("impersonation")
	alice.As("Impersonate-User", "bob").May(t, "GET /api/v1/secrets")
	alice.As("Impersonate-User", "system:serviceaccount:team-b:robot").May(t, "GET /api/v1/namespaces/team-b/secrets")
	alice.As("Impersonate-User", "system:node:node-1").May(t, "GET /api/v1/nodes")
	r.Scenario("escalation")
	alice.May(t, `POST /apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings {"metadata":{"name":"b"},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},`+
		`"subjects":[{"kind":"User","name":"eve"}]}`)
	credentials(t, r, "node-unknown")
	r.Scenario("anonymous")
	r.Actor(t, "nobody", "", r.Anonymous()).Nobody(t, 401, "GET /version", "GET /api/v1/pods", "GET /healthz")
	judge(t, r.Finish(t))
}

// TestAlwaysDeny: it has no opinion on anything, so RBAC behind it still allows; the reason
// of a refusal is its own.
func TestAlwaysDeny(t *testing.T) {
	r := recorder.Start(t, recorder.Config{Name: "always-deny", Flags: []string{"--authorization-mode=AlwaysDeny,RBAC",
		"--anonymous-auth=false"}, Manifest: true, Late: true})
	r.Apply(t, teams)
	r.Apply(t, roles+`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dangling, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: absent}
subjects: [{kind: User, name: alice}]
`)
	r.Decided(t, true, "alice", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps", Namespace: "team-a"})
	r.State(t)
	r.Scenario("denied")
	alice := r.Actor(t, "alice", "x509", r.User(t, "alice"))
	alice.By("rbac").May(t, "GET /api/v1/namespaces/team-a/pods", "GET /version")
	alice.MayNot(t, "GET /api/v1/namespaces/team-b/pods", "GET /api/v1/pods", "GET /metrics")
	alice.Sweep(t, "team-a", "team-b")
	r.Admin.By("masters").May(t, "GET /api/v1/secrets")
	r.Admin.As("Impersonate-User", "alice").MayNot(t, "GET /api/v1/secrets")
	credentials(t, r)
	r.Actor(t, "nobody", "", r.Anonymous()).Nobody(t, 401, "GET /version", "GET /api/v1/pods")
	judge(t, r.Finish(t))
}
