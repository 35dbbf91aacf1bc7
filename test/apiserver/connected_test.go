package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// policy is what the people of TestConnected may do.
const policy = `
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
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: developer, namespace: team-a}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch, create, update, patch, delete, deletecollection]}
- {apiGroups: [""], resources: [pods/log, pods/attach], verbs: [get]}
- {apiGroups: [""], resources: [pods/exec], verbs: [get, create]}
- {apiGroups: [""], resources: [configmaps], verbs: ["*"]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: developers, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: developer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}, {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "team:a"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: ["", apps], resources: [pods, services, deployments, replicasets, namespaces], verbs: [get, list, watch]}
- {nonResourceURLs: ["/metrics", "/debug/*"], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "org:readers"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everywhere-readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: team-b}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, create, update, patch, delete]}
- {apiGroups: [apps], resources: [deployments/scale], verbs: [get, update, patch]}
- {apiGroups: [""], resources: [secrets], resourceNames: [registry], verbs: [get]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{kind: ServiceAccount, name: robot, namespace: team-b}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: acts-as}
rules:
- {apiGroups: [""], resources: [users], resourceNames: [carol], verbs: [impersonate]}
- {apiGroups: [""], resources: [groups], resourceNames: ["org:readers"], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [users], resourceNames: [dave], verbs: ["impersonate:user-info"]}
- {apiGroups: [""], resources: [pods], verbs: ["impersonate-on:user-info:list"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: acts-as}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: acts-as}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ivan}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dave, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: dave}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dangling, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: does-not-exist}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
`

// TestConnected: an apiserver that was started as connect said, watched by an account that
// may do no more than its manifest says; people make all kinds of requests; every event
// arrives, and the product comes to the decision the apiserver came to.
func TestConnected(t *testing.T) {
	t.Parallel()
	l := connect(t)
	t.Run("nothing but what was printed", l.nothingElse)
	l.follow(t)
	t.Run("the watch reads no secrets", l.watchReadsNoSecrets)

	l.objects.mustPut(t, decode(t, []byte(policy)))
	l.settled(t)

	alice := newPerson(t, l.ledger, "alice", l.User(t, "alice"))
	l.developer(t, alice)
	l.streams(t, "alice", l.User(t, "alice"))
	l.robot(t)
	l.impersonations(t)
	l.oddities(t, alice)
	l.changes(t)
	l.strangers(t)

	ours := l.ledger.all() // what follows asks how far the product is
	l.arrived(t)
	l.judged(t, ours)
	t.Run("connect and doctor say so", l.sayConnected)
	t.Run("who-can is the apiserver's answer", l.whoCan)
}

// settled waits until the authorizer knows the policy: each kind of object reaches it on a
// watch of its own.
func (l *live) settled(t *testing.T) {
	t.Helper()
	l.decided(t, true, "dave", nil, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "team-a"})
	l.decided(t, true, "alice", nil, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "team-a"})
	l.decided(t, true, "system:serviceaccount:team-b:robot", nil, authorizationv1.ResourceAttributes{Verb: "get", Group: "apps",
		Resource: "deployments", Namespace: "team-b"})
	l.decided(t, true, "carol", nil, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"})
	l.decided(t, true, "ivan", nil, authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: "carol"})
}

// nothingElse: all that the running apiserver was told about auditing is what connect
// printed, which is what connect wrote, and lies where it says.
func (l *live) nothingElse(t *testing.T) {
	got := auditFlags(l.Apiserver().Arguments(t))
	if !slices.Equal(got, l.printed) {
		t.Errorf("the apiserver runs with %q, connect printed %q", got, l.printed)
	}
	if more := auditFlags(l.Base()); len(more) > 0 {
		t.Errorf("beside what was printed: %q", more)
	}
	written := readLines(t, l.folder+"/flags")
	if !slices.Equal(written, l.printed) {
		t.Errorf("the file of flags says %q, connect printed %q", written, l.printed)
	}
}

// watchReadsNoSecrets: the account the server follows the cluster with is refused them, and
// whatever else is not in its manifest.
func (l *live) watchReadsNoSecrets(t *testing.T) {
	watcher := newPerson(t, l.ledger, "watcher", l.ServiceAccount(t, l.admin, "retrial", "retrial-watch"))
	watcher.mayNot(t, "GET /api/v1/secrets", "GET /api/v1/namespaces/kube-system/secrets/x", "GET /api/v1/configmaps",
		"GET /api/v1/namespaces/team-a/pods/p0/log",
		"POST /api/v1/namespaces {}", "DELETE /apis/rbac.authorization.k8s.io/v1/clusterroles/reader")
	watcher.may(t, "GET /apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1", "GET /api/v1/serviceaccounts?limit=1",
		"GET /api/v1/pods?limit=1")
}

func pod(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":"x"}},"spec":{"nodeName":"node-1",`+
		`"containers":[{"name":"c","image":"i"}]}}`, name)
}

// developer works in a namespace of its own and looks over the fence.
func (l *live) developer(t *testing.T, p *person) {
	t.Helper()
	const pods = "/api/v1/namespaces/team-a/pods"
	for i := range 8 {
		name := fmt.Sprintf("p%d", i)
		p.may(t, "POST "+pods+" "+pod(name), "GET "+pods+"/"+name, "GET "+pods+"?fieldSelector=metadata.name%3D"+name,
			"GET "+pods+"/"+name+"/log",
			`PATCH `+pods+"/"+name+` application/merge-patch+json {"metadata":{"labels":{"a":"b"}}}`,
			`PATCH `+pods+"/"+name+` application/strategic-merge-patch+json {"metadata":{"labels":{"c":"d"}}}`,
			`PATCH `+pods+"/"+name+` application/json-patch+json [{"op":"add","path":"/metadata/labels/e","value":"f"}]`)
		p.mayNot(t, "PUT "+pods+"/"+name+"/status "+pod(name), "POST "+pods+"/"+name+"/eviction {}", "GET "+pods+"/"+name+"/proxy/",
			"DELETE /api/v1/namespaces/team-b/pods/"+name, "GET /api/v1/namespaces/team-b/pods/"+name)
	}
	p.may(t, "GET "+pods, "GET "+pods+"?watch=1&timeoutSeconds=1", "GET "+pods+"?labelSelector=app%3Dx&limit=3", "DELETE "+pods+"/p7",
		"POST "+pods+"?dryRun=All "+pod("dry"), "DELETE "+pods+"?labelSelector=none%3Dof-them",
		`PATCH `+pods+`/applied?fieldManager=t&force=true application/apply-patch+yaml {"apiVersion":"v1","kind":"Pod",`+
			`"metadata":{"name":"applied"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	p.mayNot(t, "GET /api/v1/pods", "GET /api/v1/nodes", "GET /api/v1/namespaces", "GET /api/v1/namespaces/team-a",
		"GET /api/v1/namespaces/team-a/secrets",
		"GET /api/v1/namespaces/team-a/secrets/s", "GET /apis/apps/v1/namespaces/team-a/deployments", "DELETE /api/v1/namespaces/team-a",
		"GET /metrics", "GET /logs/",
		"POST /apis/authentication.k8s.io/v1/tokenreviews {}", "POST /api/v1/namespaces/team-a/serviceaccounts/default/token {}",
		"GET /apis/nowhere.example/v1/widgets", "POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings {}")
	for i := range 6 {
		cm := fmt.Sprintf("/api/v1/namespaces/team-a/configmaps/c%d", i)
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"k":"%d"}}`, i, i)
		p.may(t, "POST /api/v1/namespaces/team-a/configmaps "+body, "PUT "+cm+" "+body, "GET "+cm, "DELETE "+cm)
		p.mayNot(t, "GET "+strings.Replace(cm, "team-a", "team-b", 1))
	}
	// What everybody who logged in may.
	p.may(t, "GET /api", "GET /apis", "GET /apis/apps/v1", "GET /version", "GET /openapi/v2", "GET /healthz", "GET /livez", "GET /readyz",
		`POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {"spec":{"resourceAttributes":{"verb":"list","resource":"secrets",`+
			`"namespace":"team-a"}}}`,
		`POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews {"spec":{"namespace":"team-a"}}`,
		`POST /apis/authentication.k8s.io/v1/selfsubjectreviews {}`)
	// Allowed, and refused by a second check: a role with rules its maker does not hold.
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":%q},"rules":[{"apiGroups":[""],` +
		`"resources":[%q],"verbs":["get"]}]}`
	p.may(t, "POST /apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles "+fmt.Sprintf(role, "held", "pods"))
	p.mayNot(t, "POST /apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles "+fmt.Sprintf(role, "not-held", "secrets"))
}

// streams are what kubectl exec and attach do, by both protocols. There is no kubelet: each
// fails, as it should, when it has been authorized.
func (l *live) streams(t *testing.T, who string, cfg *rest.Config) {
	t.Helper()
	cfg = l.ledger.watch(who, cfg)
	for _, s := range []struct{ sub, namespace, query string }{
		{"exec", "team-a", "command=sh&stdin=true&stdout=true"},
		{"attach", "team-a", "stdout=true"}, // may get it, may not create it
		{"exec", "team-b", "command=sh&stdout=true"},
	} {
		u, err := url.Parse(cfg.Host + "/api/v1/namespaces/" + s.namespace + "/pods/p0/" + s.sub + "?" + s.query)
		if err != nil {
			t.Fatal(err)
		}
		spdy, err := remotecommand.NewSPDYExecutor(cfg, http.MethodPost, u)
		if err != nil {
			t.Fatal(err)
		}
		socket, err := remotecommand.NewWebSocketExecutor(cfg, http.MethodGet, u.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []remotecommand.Executor{spdy, socket} {
			ctx, cancel := context.WithTimeout(t.Context(), controlplane.Patience)
			err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
			cancel()
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s of a pod on no node: %v", s.sub, err)
			}
		}
	}
}

// robot is a service account with tokens of its own.
func (l *live) robot(t *testing.T) {
	t.Helper()
	p := newPerson(t, l.ledger, "robot", l.ServiceAccount(t, l.admin, "team-b", "robot"))
	const deployments = "/apis/apps/v1/namespaces/team-b/deployments"
	for i := range 5 {
		name := fmt.Sprintf("d%d", i)
		body := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},`+
			`"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c",`+
			`"image":"i"}]}}}}`, name)
		p.may(t, "POST "+deployments+" "+body, "GET "+deployments+"/"+name, "GET "+deployments+"/"+name+"/scale", "PUT "+deployments+"/"+
			name+" "+body,
			`PATCH `+deployments+"/"+name+`/scale application/merge-patch+json {"spec":{"replicas":2}}`, "GET "+deployments,
			"DELETE "+deployments+"/"+name)
		p.mayNot(t, "GET "+deployments+"/"+name+"/status", "GET "+strings.Replace(deployments, "team-b", "team-a", 1),
			"GET /api/v1/namespaces/team-b/secrets/other", "GET /api/v1/namespaces/team-b/pods", "GET /apis/apps/v1/deployments")
	}
	p.may(t, "GET /api/v1/namespaces/team-b/secrets/registry",
		`POST /apis/coordination.k8s.io/v1/namespaces/team-b/leases {"apiVersion":"coordination.k8s.io/v1","kind":"Lease",`+
			`"metadata":{"name":"robot"}}`,
		"GET /apis/coordination.k8s.io/v1/namespaces/team-b/leases/robot")
	p.mayNot(t, "GET /api/v1/namespaces/team-b/secrets", "DELETE /apis/coordination.k8s.io/v1/namespaces/team-b/leases/robot")
}

// impersonations are requests as somebody else: granted in the old way and in the
// constrained one, and refused.
func (l *live) impersonations(t *testing.T) {
	t.Helper()
	ivan := newPerson(t, l.ledger, "ivan", l.User(t, "ivan"))
	carol := ivan.as("Impersonate-User", "carol")
	carol.may(t, "GET /api/v1/pods", "GET /api/v1/namespaces", "GET /metrics", "GET /api/v1/namespaces/team-a/pods/p1")
	carol.mayNot(t, "GET /api/v1/secrets", "DELETE /api/v1/namespaces/team-a/pods/p1")
	reader := ivan.as("Impersonate-User", "carol", "Impersonate-Group", "org:readers")
	reader.may(t, "GET /api/v1/namespaces/team-b/pods", "GET /apis/apps/v1/namespaces/team-b/deployments")
	reader.mayNot(t, "GET /api/v1/namespaces/team-b/secrets")
	dave := ivan.as("Impersonate-User", "dave")
	dave.may(t, "GET /api/v1/namespaces/team-a/pods")
	dave.mayNot(t, "GET /api/v1/namespaces/team-a/pods/p1", // it may act as dave on list alone
		"GET /api/v1/namespaces/team-b/pods")
	ivan.as("Impersonate-User", "alice").mayNot(t, "GET /api/v1/namespaces/team-a/pods")
	ivan.as("Impersonate-User", "carol", "Impersonate-Group", "system:masters").mayNot(t, "GET /api/v1/secrets")
	ivan.as("Impersonate-User", "system:serviceaccount:team-b:robot").mayNot(t, "GET /apis/apps/v1/namespaces/team-b/deployments")
	ivan.as("Impersonate-Group", "org:readers").must(t, ask{line: "GET /api/v1/namespaces/team-b/pods", want: []int{http.StatusBadRequest}})
	ivan.mayNot(t, "GET /api/v1/pods")
	super := l.root.as("Impersonate-User", "system:serviceaccount:team-b:robot")
	super.may(t, "GET /apis/apps/v1/namespaces/team-b/deployments")
	super.mayNot(t, "GET /api/v1/pods")
	l.root.as("Impersonate-User", "alice", "Impersonate-Group", "team:a", "Impersonate-Extra-Reason", "test").may(t,
		"GET /api/v1/namespaces/team-a/pods")
}

// oddities are requests whose meaning is not what it looks like.
func (l *live) oddities(t *testing.T, p *person) {
	t.Helper()
	any := []int{200, 400, 403, 404, 405, 406, 415, 422, 301, 500}
	for _, line := range []string{
		"HEAD /api/v1/namespaces/team-a/pods", "HEAD /api/v1/namespaces/team-a/pods/p0", "OPTIONS /api/v1/namespaces/team-a/pods",
		"TRACE /version",
		"GET /api/v1/namespaces/team-a/pods/", "GET //api/v1/namespaces/team-a/pods", "GET /api/v1//namespaces/team-a/pods",
		"GET /api/v1/namespaces/team-a/pods%2Fp0", "GET /api/v1/namespaces/team-a/pods/p0%2Flog",
		"GET /api/v1/watch/namespaces/team-a/pods?timeoutSeconds=1",
		"GET /api/v1/proxy/namespaces/team-a/pods/p0", "GET /api/v1/namespaces/team-a/pods?watch=false",
		"GET /api/v1/namespaces/team-a/pods?limit=abc&fieldSelector=metadata.name%3Dp0",
		"GET /api/v1/namespaces/team-a/pods?fieldSelector=metadata.name%3Dp0%2Cspec.nodeName%3Dnode-1",
		"GET /api/v1/namespaces/team-a/pods?fieldSelector=%3D%3D",
		"GET /api/v1/namespaces/team-a/status", "PUT /api/v1/namespaces/team-a/finalize {}", "GET /api/v1/namespaces",
		"GET /apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles/held",
		"GET /apis/apps/v1", "GET /apis/apps", "GET /nowhere", "GET /", "GET /apis/apps/v1/namespaces/team-a",
		"GET /api/v1/namespaces/team-a/pods/p0/log/more/parts",
		"POST /api/v1/namespaces/nowhere/pods " + pod("x"), "POST /api/v1/namespaces/team-a/pods/p0/exec?command=%1b%5b31m",
		"GET /api/v1/namespaces/team-a/pods?pretty=%00%0a",
	} {
		line, body := cutBody(line)
		p.do(t, ask{line: line, body: body, want: any})
	}
}

// changes: a right is given, used, taken, and missed.
func (l *live) changes(t *testing.T) {
	t.Helper()
	erin := newPerson(t, l.ledger, "erin", l.User(t, "erin"))
	binding := decode(t, []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: erin, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: erin}]
`))[0]
	question := authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "team-b"}
	for range 3 {
		erin.mayNot(t, "GET /api/v1/namespaces/team-b/pods")
		l.objects.mustPut(t, decode(t, mustJSON(t, binding)))
		l.decided(t, true, "erin", nil, question)
		erin.may(t, "GET /api/v1/namespaces/team-b/pods", "GET /api/v1/namespaces/team-b/services")
		l.objects.delete(t, binding)
		l.decided(t, false, "erin", nil, question)
		erin.mayNot(t, "GET /api/v1/namespaces/team-b/pods")
	}
}

// strangers are those nobody knows, and a node, whose rights depend on what runs on it.
func (l *live) strangers(t *testing.T) {
	t.Helper()
	anybody := newPerson(t, l.ledger, "anonymous", l.Anonymous())
	anybody.may(t, "GET /version", "GET /healthz")
	anybody.mayNot(t, "GET /api/v1/namespaces/kube-system/secrets", "GET /api", "POST /api/v1/namespaces/team-a/pods "+pod("x"))
	forged := newPerson(t, l.ledger, "forged", l.Bearer("not-a-token"))
	forged.must(t, ask{line: "GET /api/v1/pods", want: []int{401}}, ask{line: "GET /version", want: []int{401}})
	newPerson(t, l.ledger, "mallory", l.User(t, "mallory")).mayNot(t, "GET /api/v1/namespaces/team-a/pods",
		"GET /api/v1/namespaces/team-b/pods", "GET /api/v1/pods")
	node := newPerson(t, l.ledger, "node", l.User(t, "system:node:node-1", "system:nodes"))
	node.may(t, "GET /api/v1/nodes/node-1", "GET /api/v1/services?limit=1")
	node.mayNot(t, "GET /api/v1/nodes", "GET /api/v1/namespaces/team-a/secrets/s", "GET /api/v1/namespaces/team-a/configmaps/c")
}

// verdict is a request as the product's API lists it.
type verdict struct {
	AuditID, User, Verb, RequestURI, Recorded, Replayed, Outcome, Class, Cause, Stage string
	Code, Grants                                                                      int
}

// verdicts returns all requests of the cluster.
func (l *live) verdicts(t *testing.T) []verdict {
	t.Helper()
	var all []verdict
	for query := (url.Values{"cluster": {clusterName}, "limit": {"500"}}); ; {
		var page struct {
			Events []verdict
			Older  string
		}
		l.Ask(t, "events", query, &page)
		all = append(all, page.Events...)
		if page.Older == "" {
			return all
		}
		query.Set("before", page.Older)
	}
}

// judged: every request of the ledger is there, and the product came to the decision the
// apiserver came to; what it could not decide it says why, and that is little.
func (l *live) judged(t *testing.T, ours map[string]call) {
	t.Helper()
	all := l.verdicts(t)
	outcomes, classes := map[string]int{}, map[string]int{}
	byID := map[string]verdict{}
	for _, v := range all {
		outcomes[v.Outcome]++
		if v.Class != "" {
			classes[v.Outcome+"/"+v.Class]++
		}
		if v.Outcome == "drift" {
			t.Errorf("drift: %s %s by %s: %s: %s", v.Verb, v.RequestURI, v.User, v.Class, v.Cause)
		}
		byID[v.AuditID] = v
	}
	missing, seen := 0, map[string]int{}
	for id, c := range ours {
		v, ok := byID[id]
		if !ok {
			if !unlogged(c) {
				if missing++; missing <= 10 {
					t.Errorf("never arrived: %s: %s %s, answered %d", id, c.who, c.line, c.status)
				}
			}
			continue
		}
		seen[v.Recorded]++
		if class := wantClass(c, v); v.Outcome != "match" && v.Class != class {
			t.Errorf("%s %s (%d): %s %s %s", c.who, c.line, c.status, v.Outcome, v.Class, v.Cause)
		}
	}
	if missing > 0 {
		t.Errorf("%d requests never arrived", missing)
	}
	t.Logf("requests: %d in all, %d of them ours (recorded: %v); outcomes %v, classes %v", len(all), len(ours), seen, outcomes, classes)
	if seen["allow"] < 150 || seen["forbid"] < 100 {
		t.Errorf("too few requests to say anything: %v", seen)
	}
	if n := outcomes["indeterminate"]; n > 5 {
		t.Errorf("%d requests are indeterminate: %v", n, classes)
	}
	for _, k := range slices.Sorted(maps.Keys(classes)) {
		if strings.HasPrefix(k, "ambiguous/") {
			t.Errorf("%d %s, though nobody asked while the policy changed", classes[k], k)
		}
	}
}

// wantClass returns why a request of the ledger may have no matching decision.
func wantClass(c call, v verdict) string {
	switch {
	case c.status == http.StatusUnauthorized:
		return "unauthenticated"
	case c.who == "node":
		return "node-graph"
	case c.who == "ivan" && v.Recorded == "none" && c.status == http.StatusForbidden:
		return "impersonation-refused"
	case c.who == "ivan" && c.status == http.StatusBadRequest:
		return "impersonation-bad-request"
	}
	return ""
}

// unlogged requests are those the shipped audit policy leaves out: probes by nobody.
func unlogged(c call) bool {
	return c.who == "anonymous" && strings.HasPrefix(c.line, "GET /healthz")
}
