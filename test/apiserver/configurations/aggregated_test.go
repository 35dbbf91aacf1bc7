package configurations

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
	"github.com/retrial-io/retrial/test/apiserver/recorder"
)

const flunderers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flunders}
rules:
- {apiGroups: [wardle.example.com], resources: [flunders], verbs: ["*"]}
- {apiGroups: [wardle.example.com], resources: [fischers], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: flunders, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: flunders}
subjects: [{kind: User, name: alice}, {kind: ServiceAccount, name: robot, namespace: team-b}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: asks}
rules:
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews, localsubjectaccessreviews], verbs: [create]}
- {apiGroups: [""], resources: [users], resourceNames: [alice], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: asks}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: asks}
subjects: [{kind: User, name: ivan}]
`

// TestAggregated: an API server behind the aggregator with a log of its own. Requests come
// through the kube-apiserver, as they should, and past it.
func TestAggregated(t *testing.T) {
	front := newFrontProxy(t)
	live := receive(t, append([]string{"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=sa.pub", "--client-ca-file=ca.crt"}, front.flags...))
	r := recorder.Start(t, recorder.Config{Name: "aggregated", Flags: append(front.flags, live.posts(t, "")...), Files: front.files,
		Recorded: front.recorded})
	r.State(t)
	r.Apply(t, teams)
	r.Apply(t, controlplane.AggregatedAccount)
	r.Apply(t, flunderers)
	r.Decided(t, true, "system:serviceaccount:wardle:apiserver", nil, authorizationv1.ResourceAttributes{Verb: "list",
		Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"})
	r.Decided(t, true, "alice", nil, authorizationv1.ResourceAttributes{Verb: "list", Group: "wardle.example.com", Resource: "flunders",
		Namespace: "team-a"})
	r.Decided(t, true, "ivan", nil, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: "alice"})
	dir := t.TempDir()
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(recorder.Policy), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "wardle.log")
	// The account's own requests are not of the recording, but in the log.
	server := r.Aggregated(t, r.ServiceAccount(t, r.Client, "wardle", "apiserver"),
		append(live.posts(t, "wardle"), "--audit-policy-file="+policy, "--audit-log-path="+log)...)
	flags := server.Arguments(t)
	r.Beside("wardle", flags, func() []byte {
		server.Stop(t)
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return text
	})
	r.Hide(dir, live.Dir, filepath.Dir(argument(flags, "--kubeconfig=")))
	r.Apply(t, controlplane.ExternalName+server.APIService)
	const flunders = "/apis/wardle.example.com/v1alpha1/namespaces/team-a/flunders"
	controlplane.Poll(t, "the aggregated API", func(context.Context) (bool, string) {
		code, text := r.Admin.Do(t, "GET "+flunders, &recorder.Scenario{})
		return code == 200, text
	})

	r.Scenario("through the kube-apiserver")
	alice := r.Actor(t, "alice", "x509", r.User(t, "alice", "org:dev"))
	flunder := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"wardle.example.com/v1alpha1","kind":"Flunder","metadata":{"name":%q},"spec":{}}`, name)
	}
	for i := range 4 {
		name := fmt.Sprintf("f%d", i)
		alice.May(t, "POST "+flunders+" "+flunder(name), "GET "+flunders+"/"+name, `PATCH `+flunders+"/"+name+
			` application/merge-patch+json {"metadata":{"labels":{"a":"b"}}}`)
	}
	alice.May(t, "GET "+flunders+"?limit=2&labelSelector=a%3Db", "GET "+flunders+"?watch=1&timeoutSeconds=1", "DELETE "+flunders+"/f3",
		"GET "+flunders+"/absent",
		"GET "+flunders+"?fieldSelector=metadata.name%3Df1&pretty=1", "GET /apis/wardle.example.com/v1alpha1",
		"GET /apis/wardle.example.com",
		"DELETE "+flunders+"?labelSelector=none%3Dof-them")
	alice.MayNot(t, "GET /apis/wardle.example.com/v1alpha1/flunders", "GET "+strings.Replace(flunders, "team-a", "team-b", 1),
		"GET /apis/wardle.example.com/v1alpha1/fischers")
	robot := r.Actor(t, "robot", "service-account-bound", r.ServiceAccount(t, r.Client, "team-b", "robot"))
	robot.May(t, "GET "+flunders, "GET "+flunders+"/f0", "POST "+flunders+" "+flunder("by-robot"))
	robot.MayNot(t, "GET "+strings.Replace(flunders, "team-a", "team-b", 1))
	ivan := r.Actor(t, "ivan", "x509", r.User(t, "ivan"))
	ivan.As("Impersonate-User", "alice").May(t, "GET "+flunders)
	ivan.As("Impersonate-User", "alice").MayNot(t, "GET /apis/wardle.example.com/v1alpha1/flunders")
	ivan.As("Impersonate-User", "bob").Nobody(t, 403, "GET "+flunders)
	r.Admin.May(t, "GET "+flunders, "GET /apis/wardle.example.com/v1alpha1/fischers",
		`POST /apis/wardle.example.com/v1alpha1/fischers {"apiVersion":"wardle.example.com/v1alpha1","kind":"Fischer",`+
			`"metadata":{"name":"no"},"disallowedFlunders":["banned"]}`)
	r.Actor(t, "forged", "", r.Bearer("not-a-token")).Nobody(t, 401, "GET "+flunders)
	anybody := r.Actor(t, "anonymous", "anonymous", r.Anonymous())
	anybody.MayNot(t, "GET "+flunders)

	r.Scenario("past the kube-apiserver")
	past := r.Actor(t, "alice", "x509", server.Direct(r.User(t, "alice", "org:dev"))).Past(t, "wardle")
	past.Try(t, "GET "+flunders, "GET "+flunders+"/f0", "GET "+strings.Replace(flunders, "team-a", "team-b", 1), "GET /healthz",
		"GET /metrics")
	token := r.Actor(t, "robot", "webhook-token", server.Direct(r.ServiceAccount(t, r.Client, "team-b", "robot"))).Past(t, "wardle")
	token.Try(t, "GET "+flunders, "GET "+strings.Replace(flunders, "team-a", "team-b", 1))
	r.Actor(t, "anonymous", "anonymous", server.Direct(r.Anonymous())).Past(t, "wardle").Try(t, "GET "+flunders, "GET /readyz",
		"GET /version")
	r.Actor(t, "forged", "", server.Direct(r.Bearer("not-a-token"))).Past(t, "wardle").Try(t, "GET "+flunders)
	proxy := r.Actor(t, "somebody with the front proxy's certificate", "request-header", front.client(t, server.Direct(r.Anonymous()),
		"front-proxy-client")).Past(t, "wardle")
	proxy.As("X-Remote-User", "mallory", "X-Remote-Group", "system:masters").Try(t, "GET "+flunders)
	proxy.As("X-Remote-User", "alice").Try(t, "GET "+flunders)

	r.Scenario("reviews")
	const (
		sar = `POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"spec":{"user":%q,"resourceAttributes":{"verb":%q,"group":"",` +
			`"resource":%q,"namespace":%q}}}`
		tr = `POST /apis/authentication.k8s.io/v1/tokenreviews {"spec":{"token":%q}}`
	)
	for _, q := range [][4]string{{"alice", "list", "secrets", "team-a"}, {"alice", "list", "pods", "team-a"}, {"ivan", "impersonate",
		"users", ""},
		{"system:serviceaccount:team-b:robot", "get", "pods", "team-b"}, {"kubernetes-admin", "list", "secrets", "kube-system"},
		{"bob", "list", "secrets", "team-b"}} {
		ivan.May(t, fmt.Sprintf(sar, q[0], q[1], q[2], q[3]))
		alice.MayNot(t, fmt.Sprintf(sar, q[0], q[1], q[2], q[3]))
	}
	ivan.May(t, `POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"spec":{"user":"x","groups":["system:masters"],`+
		`"resourceAttributes":{"verb":"list","resource":"secrets"}}}`,
		`POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"spec":{"user":"x","groups":["system:authenticated"],`+
			`"nonResourceAttributes":{"verb":"get","path":"/version"}}}`,
		`POST /apis/authorization.k8s.io/v1/namespaces/team-a/localsubjectaccessreviews {"spec":{"user":"alice",`+
			`"resourceAttributes":{"verb":"list","group":"wardle.example.com","resource":"flunders","namespace":"team-a"}}}`)
	for _, a := range []*recorder.Actor{alice, robot, ivan} {
		a.May(t, `POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {"spec":{"resourceAttributes":{"verb":"list",`+
			`"group":"wardle.example.com","resource":"flunders","namespace":"team-a"}}}`,
			`POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {"spec":{"nonResourceAttributes":{"verb":"get",`+
				`"path":"/metrics"}}}`,
			`POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews {"spec":{"namespace":"team-a"}}`)
	}
	r.Admin.May(t, fmt.Sprintf(tr, "not-a-token"), fmt.Sprintf(tr, r.ServiceAccount(t, r.Client, "team-b", "robot").BearerToken))
	recorded := r.Finish(t)
	result := judge(t, recorded)
	served(t, recorded, result, "wardle")
	live.compare(t, result)
}

// argument returns the value of a flag.
func argument(flags []string, name string) string {
	for _, f := range flags {
		if v, ok := strings.CutPrefix(f, name); ok {
			return v
		}
	}
	return ""
}
