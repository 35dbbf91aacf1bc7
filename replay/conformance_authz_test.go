package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// Conformance cases on requests and authorizers: what a real apiserver did is recorded, and
// the replica must come to the same. alice is in the groups devs and ops.

const conformanceState = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: podread}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods/exec], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a-pods, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: podread}
subjects:
- {kind: Group, name: ops}
- {kind: User, name: alice}
- {kind: ServiceAccount, name: default, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: edges}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
- {apiGroups: [""], resources: [services], verbs: ["*"]}
- {apiGroups: [""], resources: ["*/log"], verbs: [get]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [a], verbs: ["*"]}
- {apiGroups: [""], resources: [endpoints], verbs: [get, list, watch, deletecollection]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edges, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edges}
subjects:
- {kind: User, name: erin}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: discovery}
rules:
- {nonResourceURLs: ["/apis", "/apis/*", /healthz], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: discovery}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: discovery}
subjects:
- {kind: User, name: erin}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: z}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nope}
subjects:
- {kind: Group, name: devs}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: z2, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: nope2}
subjects:
- {kind: User, name: alice}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nowhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: podread}
subjects:
- {kind: ServiceAccount, name: lost}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b-pods, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: podread}
subjects:
- {kind: User, name: dora}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: c-pods, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: podread}
subjects:
- {kind: User, name: dora}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Foo, name: podread}
subjects:
- {kind: User, name: fred}
`

const (
	alicePods  = `RBAC: allowed by RoleBinding "a-pods/default" of ClusterRole "podread" to Group "ops"`
	erinEdges  = `RBAC: allowed by RoleBinding "edges/default" of ClusterRole "edges" to User "erin"`
	erinPaths  = `RBAC: allowed by ClusterRoleBinding "discovery" of ClusterRole "discovery" to User "erin"`
	aliceLacks = `RBAC: [role.rbac.authorization.k8s.io "nope2" not found, clusterrole.rbac.authorization.k8s.io "nope" not found]`
	devsLack   = `RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found`
)

// conformance is one request as recorded, with what the replica must make of it.
type conformance struct {
	name   string
	config map[string]string // files of --apiserver-config; nil: nothing is known of it
	user   string            // "alice", "name group,group", …
	verb   string
	uri    string
	record string // "allow reason", "forbid reason", "error"
	code   int32
	want   string // of a resource request "resource/sub namespace/name", else the path
	by     string // who allows it in the replica
	class  string // "" is a match
}

func (c *conformance) replay(t *testing.T, more ...string) *verdict.Verdict {
	t.Helper()
	parts := map[string]*txtar.File{"state.yaml": {Data: []byte(conformanceState)}}
	for name, text := range c.config {
		parts["config/"+name] = &txtar.File{Data: []byte(text)}
	}
	s := state.New("conformance")
	snap, _, err := observe.ReadSnapshot(strings.NewReader(jsonList(t, parts["state.yaml"].Data)))
	if err != nil {
		t.Fatal(err)
	}
	snap.Kinds = listedKinds(snap.Objects)
	snap.Began, snap.Ended = clock(t, "10:00:00"), clock(t, "10:00:00")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	st := step{At: "11:00:00", Verb: c.verb, URI: c.uri, Code: c.code}
	if len(more) > 0 {
		if err := yaml.UnmarshalStrict([]byte(more[0]), &st); err != nil {
			t.Fatal(err)
		}
	}
	name, groups, _ := strings.Cut(c.user, " ")
	st.User, st.Groups = name, append(strings.FieldsFunc(groups, func(r rune) bool { return r == ',' }), "system:authenticated")
	switch name {
	case "alice":
		st.Groups = []string{"devs", "ops", "system:authenticated"}
	case "system:anonymous":
		st.Groups = []string{"system:unauthenticated"}
	}
	st.Decision, st.Reason, _ = strings.Cut(c.record, " ")
	failed := st.Decision == "error"
	if failed {
		st.Decision, st.Reason, st.Code = "", "", 500
	}
	e := st.event(t)
	if failed {
		e.Annotations = e.Annotations.Set(event.AnnotationReason, "internal error")
	}
	return New(Config{Version: "test", Apiserver: apiserver(t, parts)}).Replay(e, s)
}

func (c *conformance) run(t *testing.T) {
	v := c.replay(t)
	a := &v.Attributes
	asked := a.Path
	if a.ResourceRequest {
		asked = strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/") + " " + a.Namespace + "/" + a.Name
	}
	decision, _, _ := strings.Cut(c.record, " ")
	if c.want != "" && a.Verb+" "+asked != c.want {
		t.Errorf("asked for %q, want %q", a.Verb+" "+asked, c.want)
	}
	if v.Class != c.class || c.class == "" && (v.Outcome != verdict.OutcomeMatch || v.Replayed.String() != decision) {
		t.Errorf("%s %s: %s, recorded %s %q; replayed %s", v.Outcome, v.Class, v.Cause, v.Recorded, v.RecordedReason, v.Replayed)
	}
	if v.Authorizer != c.by {
		t.Errorf("decided by %q, want %q", v.Authorizer, c.by)
	}
}

func TestConformanceRequests(t *testing.T) {
	const pods = "/api/v1/namespaces/default/pods"
	for _, c := range []conformance{
		{name: "1 a list with the name of one object", user: "alice", verb: "list", uri: pods + "?fieldSelector=metadata.name%3Dx",
			record: "allow " + alicePods, want: "list pods default/x", by: "rbac"},
		{name: "1 the first subject is named", user: "alice", verb: "list", uri: pods + "?fieldSelector=metadata.name%3Dx",
			record: `allow RBAC: allowed by RoleBinding "a-pods/default" of ClusterRole "podread" to User "alice"`, by: "rbac",
			class: verdict.ClassReason},
		{name: "2 an option that does not decode", user: "alice", verb: "list", uri: pods + "?fieldSelector=metadata.name%3Dx&limit=abc",
			record: "allow " + alicePods, code: 400, want: "list pods default/", by: "rbac"},
		{name: "3 a name no object has", user: "alice", verb: "list", uri: pods + "?fieldSelector=metadata.name%3D..",
			record: "allow " + alicePods, want: "list pods default/", by: "rbac"},
		{name: "4 watch", user: "alice", verb: "watch", uri: pods + "?watch", record: "allow " + alicePods, want: "watch pods default/",
			by: "rbac"},
		{name: "4 watch=yes", user: "alice", verb: "watch", uri: pods + "?watch=yes", record: "allow " + alicePods,
			want: "watch pods default/", by: "rbac"},
		{name: "4 watch=0", user: "alice", verb: "list", uri: pods + "?watch=0", record: "allow " + alicePods, want: "list pods default/",
			by: "rbac"},
		{name: "4 watch=FALSE", user: "alice", verb: "list", uri: pods + "?watch=FALSE", record: "allow " + alicePods,
			want: "list pods default/", by: "rbac"},
		{name: "5 an escaped slash separates", user: "alice", verb: "get", uri: pods + "/a%2Fb", record: "forbid " + aliceLacks,
			want: "get pods/b default/a"},
		{name: "6 slashes around the path", user: "alice", verb: "list", uri: "//api/v1/namespaces/default/pods/",
			record: "allow " + alicePods, code: 404, want: "list pods default/", by: "rbac"},
		{name: "7 HEAD of a list", user: "alice", verb: "list", uri: pods, record: "allow " + alicePods, code: 405,
			want: "list pods default/", by: "rbac"},
		{name: "8 OPTIONS has no verb", user: "alice", verb: "", uri: pods, record: "forbid " + aliceLacks, want: " pods default/"},
		{name: "8 every verb is not a verb too", user: "erin", verb: "", uri: "/api/v1/namespaces/default/services",
			record: "allow " + erinEdges, want: " services default/", by: "rbac"},
		{name: "9 the prefix watch", user: "alice", verb: "watch",
			uri: "/api/v1/watch/namespaces/default/pods?fieldSelector=metadata.name%3Dx", record: "allow " + alicePods,
			want: "watch pods default/", by: "rbac"},
		{name: "10 the prefix proxy has no subresource", user: "erin", verb: "proxy", uri: "/api/v1/proxy/namespaces/default/services/x/y",
			record: "allow " + erinEdges, want: "proxy services default/x", by: "rbac"},
		{name: "11 nothing behind the prefix", user: "alice", verb: "watch", uri: "/api/v1/watch", record: "allow " + alicePods,
			class: verdict.ClassUnparsable},
		{name: "12 a namespace is in itself", user: "erin", verb: "get", uri: "/api/v1/namespaces/default", record: "allow " + erinEdges,
			want: "get namespaces default/default", by: "rbac"},
		{name: "13 finalize of a namespace", user: "erin", verb: "update", uri: "/api/v1/namespaces/default/finalize", record: "forbid",
			want: "update namespaces/finalize default/default"},
		{name: "14 a version of a group is not a resource", user: "erin", verb: "get", uri: "/apis/apps/v1", record: "allow " + erinPaths,
			want: "get /apis/apps/v1", by: "rbac"},
		{name: "15 the query is not of the path", user: "erin", verb: "get", uri: "/healthz?x=1", record: "allow " + erinPaths,
			want: "get /healthz", by: "rbac"},
		{name: "15 HEAD is not get", user: "erin", verb: "head", uri: "/healthz", record: "forbid", want: "head /healthz"},
		{name: "16 deleting by label", user: "erin", verb: "deletecollection",
			uri: "/api/v1/namespaces/default/endpoints?labelSelector=app%3Dweb", record: "allow " + erinEdges,
			want: "deletecollection endpoints default/", by: "rbac"},
		{name: "17 deleting by name has no name", user: "erin", verb: "deletecollection",
			uri: "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Da", record: "forbid",
			want: "deletecollection configmaps default/"},
		{name: "20 without a credential", user: "system:anonymous", verb: "list", uri: pods, record: "forbid", want: "list pods default/"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestConformanceRBAC(t *testing.T) {
	const ns = "/api/v1/namespaces/default/"
	for _, c := range []conformance{
		{name: "33 two dangling references as a set", user: "alice", verb: "list", uri: ns + "secrets", record: "forbid " + aliceLacks},
		{name: "33 in the other order", user: "alice", verb: "list", uri: ns + "secrets",
			record: `forbid RBAC: [clusterrole.rbac.authorization.k8s.io "nope" not found, role.rbac.authorization.k8s.io ` +
				`"nope2" not found]`},
		{name: "33 one of them alone", user: "alice", verb: "list", uri: "/api/v1/secrets", record: "forbid " + devsLack},
		{name: "33 one of them is not both", user: "alice", verb: "list", uri: ns + "secrets", record: "forbid " + devsLack,
			class: verdict.ClassReason},
		{name: "34 the one of two bindings", user: "dora", verb: "get", uri: ns + "pods/x", record: `allow RBAC: allowed by RoleBinding ` +
			`"b-pods/default" of ClusterRole "podread" to User "dora"`, by: "rbac"},
		{name: "34 the other of two bindings", user: "dora", verb: "get", uri: ns + "pods/x",
			record: `allow RBAC: allowed by RoleBinding "c-pods/default" of ClusterRole "podread" to User "dora"`, by: "rbac"},
		{name: "35 a service account without a namespace", user: "system:serviceaccount:default:lost " +
			"system:serviceaccounts,system:serviceaccounts:default", verb: "get", uri: ns + "pods/x", record: "forbid"},
		{name: "36 pods are not pods/log", user: "alice", verb: "get", uri: ns + "pods/x/log", record: "forbid " + aliceLacks,
			want: "get pods/log default/x"},
		{name: "36 */log is", user: "erin", verb: "get", uri: ns + "pods/x/log", record: "allow " + erinEdges, by: "rbac"},
		{name: "37 a create has no name", user: "erin", verb: "create", uri: ns + "configmaps", record: "forbid",
			want: "create configmaps default/"},
		{name: "37 a list of one name has", user: "erin", verb: "list", uri: ns + "configmaps?fieldSelector=metadata.name%3Da",
			record: "allow " + erinEdges, want: "list configmaps default/a", by: "rbac"},
		{name: "38 every verb", user: "erin", verb: "", uri: ns + "services/x", record: "allow " + erinEdges, by: "rbac"},
		{name: "39 an unknown kind of role", user: "fred", verb: "get", uri: ns + "pods/x",
			record: `forbid RBAC: unsupported role reference kind: "Foo"`},
	} {
		t.Run(c.name, c.run)
	}
}

func flags(lines ...string) map[string]string {
	return map[string]string{"kube-apiserver.flags": strings.Join(lines, "\n") + "\n"}
}

func withFiles(files map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

func TestConformanceAuthorizers(t *testing.T) {
	const ns = "/api/v1/namespaces/default/"
	denied := flags("--authorization-mode=AlwaysDeny,RBAC")
	abac := withFiles(flags("--authorization-mode=ABAC", "--authorization-policy-file=/etc/kubernetes/abac.jsonl"), "abac.jsonl",
		strings.Join([]string{
			`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"rita","readonly":true,` +
				`"apiGroup":"*","resource":"pods","namespace":"*","nonResourcePath":"/x"}}`,
			`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"otto",` +
				`"apiGroup":"*","resource":"*"}}`,
			`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"apiGroup":"*","resource":"*",` +
				`"namespace":"*","nonResourcePath":"*"}}`,
		}, "\n"))
	hooked := func(policy, condition, order string) map[string]string {
		hook := fmt.Sprintf(
			`{type: Webhook, name: guard, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: %s,
  connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/k}, matchConditions: [{expression: '%s'}]}}`, policy, condition)
		list := "- " + hook + "\n- {type: RBAC, name: rbac}\n"
		if order == "rbac first" {
			list = "- {type: RBAC, name: rbac}\n- " + hook + "\n"
		}
		return withFiles(flags("--authorization-config=/etc/kubernetes/authz.yaml"), "authz.yaml",
			"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"+list)
	}
	const inDefault = `request.resourceAttributes.namespace == "default"` // fails on a path
	for _, c := range []conformance{
		{name: "31 masters with RBAC alone", config: flags("--authorization-mode=RBAC"), user: "root system:masters", verb: "list",
			uri: "/api/v1/secrets", record: "allow", by: "masters"},
		{name: "31 masters with AlwaysDeny", config: denied, user: "root system:masters", verb: "list", uri: "/api/v1/secrets",
			record: "allow", by: "masters"},
		{name: "31 masters never through RBAC", config: denied, user: "root system:masters,ops", verb: "list", uri: ns + "pods",
			record: "allow " + alicePods, by: "masters", class: verdict.ClassReason},
		{name: "32 RBAC may allow behind AlwaysDeny", config: denied, user: "alice", verb: "list", uri: ns + "pods",
			record: "allow " + alicePods, by: "rbac"},
		{name: "32 AlwaysDeny's words", config: denied, user: "bob", verb: "list", uri: ns + "pods",
			record: "forbid Everything is forbidden."},
		{name: "32 and RBAC's behind them", config: denied, user: "alice", verb: "list", uri: ns + "secrets",
			record: "forbid Everything is forbidden.\n" + aliceLacks},
		{name: "32 AlwaysDeny is not silent", config: denied, user: "bob", verb: "list", uri: ns + "pods", record: "forbid",
			class: verdict.ClassReason},
		{name: "59 readonly: get", config: abac, user: "rita", verb: "get", uri: ns + "pods/x", record: "allow", by: "abac"},
		{name: "59 readonly: the subresource does not matter", config: abac, user: "rita", verb: "get", uri: ns + "pods/x/log",
			record: "allow", by: "abac"},
		{name: "59 readonly: create", config: abac, user: "rita", verb: "create", uri: ns + "pods", record: "forbid No policy matched."},
		{name: "59 an empty namespace is not every one", config: abac, user: "otto", verb: "list", uri: ns + "pods",
			record: "forbid No policy matched."},
		{name: "59 an empty namespace is none", config: abac, user: "otto", verb: "list", uri: "/api/v1/pods", record: "allow", by: "abac"},
		{name: "59 head does not only read", config: abac, user: "rita", verb: "head", uri: "/x", record: "forbid No policy matched."},
		{name: "60 neither user nor group", config: abac, user: "nina", verb: "get", uri: ns + "pods/x",
			record: "forbid No policy matched."},
		{name: "61 a false condition skips", config: hooked("Deny", `request.user == "zoe"`, ""), user: "alice", verb: "list",
			uri: ns + "pods", record: "allow " + alicePods, by: "rbac"},
		{name: "61 what is skipped explains nothing", config: hooked("Deny", `request.user == "zoe"`, ""), user: "alice", verb: "list",
			uri: ns + "pods", record: "forbid guard: no", by: "rbac", class: verdict.ClassForbidAllow},
		{name: "61 a failing condition refuses", config: hooked("Deny", inDefault, ""), user: "erin", verb: "get", uri: "/healthz",
			record: "error", by: ""},
		{name: "61 a failing condition leaves no decision", config: hooked("Deny", inDefault, ""), user: "erin", verb: "get",
			uri: "/healthz", record: "allow " + erinPaths, class: verdict.ClassErrorMissed},
		{name: "61 a failing condition lets go on", config: hooked("NoOpinion", inDefault, ""), user: "erin", verb: "get", uri: "/healthz",
			record: "allow " + erinPaths, by: "rbac"},
		{name: "61 a failing condition, and nobody allows", config: hooked("NoOpinion", inDefault, ""), user: "bob", verb: "get",
			uri: "/healthz", record: "error"},
		{name: "61 both allowed and denied", config: hooked("NoOpinion", `true`, ""), user: "bob", verb: "list", uri: ns + "pods",
			record: "error", class: verdict.ClassAuthorizerError},
		{name: "61 an error out of nothing", config: flags("--authorization-mode=Node,RBAC"), user: "bob", verb: "list", uri: ns + "pods",
			record: "error", class: verdict.ClassErrorForged},
		{name: "62 the webhook refuses what RBAC allows", config: hooked("NoOpinion", `true`, ""), user: "alice", verb: "list",
			uri: ns + "pods", record: "forbid guard: no", by: "rbac", class: verdict.ClassWebhook},
		{name: "62 not behind RBAC", config: hooked("NoOpinion", `true`, "rbac first"), user: "alice", verb: "list", uri: ns + "pods",
			record: "forbid guard: no", by: "rbac", class: verdict.ClassForbidAllow},
		{name: "62 a silent webhook", config: hooked("NoOpinion", `true`, ""), user: "alice", verb: "list", uri: ns + "pods",
			record: "allow " + alicePods, by: "rbac"},
		{name: "62 the webhook allows what RBAC does not", config: hooked("NoOpinion", `true`, "rbac first"), user: "bob", verb: "list",
			uri: ns + "pods", record: "allow", class: verdict.ClassWebhook},
	} {
		t.Run(c.name, c.run)
	}
}

// TestConformanceMasters: case 31, a masters user with RBAC's reason is a contradiction of its own.
func TestConformanceMasters(t *testing.T) {
	c := conformance{user: "root system:masters,ops", verb: "list", uri: "/api/v1/namespaces/default/pods", record: "allow " + alicePods}
	if v := c.replay(t); !slices.Contains(v.Identity, "masters-not-shortcut") || len(v.Evidence) != len(v.Identity) {
		t.Errorf("contradictions %v, evidence %q", v.Identity, v.Evidence)
	}
}

// TestConformanceReload: case 66, the file of the authorizers is read anew while the server
// runs, within a minute.
func TestConformanceReload(t *testing.T) {
	const rbac = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	files := withFiles(flags("--authorization-config=/etc/kubernetes/authz.yaml"),
		"authz.yaml", rbac+"- {type: RBAC, name: rbac}\n",
		"authz-2.yaml", rbac+"- {type: AlwaysDeny, name: alwaysdeny}\n- {type: RBAC, name: rbac}\n",
		"versions.yaml", "versions:\n- dir: .\n- from: 2026-05-04T11:00:00Z\n  authorizationConfig: authz-2.yaml\n")
	for name, tc := range map[string]struct {
		at, reason, class string
		outcome           verdict.Outcome
	}{
		"before it":                      {"10:59:59", "", "", verdict.OutcomeMatch},
		"before it, with its answer":     {"10:59:59", "Everything is forbidden.", verdict.ClassReason, verdict.OutcomeDrift},
		"after it":                       {"11:00:01", "Everything is forbidden.", "", verdict.OutcomeMatch},
		"after it, not read yet":         {"11:00:30", "", verdict.ClassConfigRaced, verdict.OutcomeAmbiguous},
		"a minute later it has been":     {"11:01:30", "", verdict.ClassReason, verdict.OutcomeDrift},
		"a minute later, by the new":     {"11:01:30", "Everything is forbidden.", "", verdict.OutcomeMatch},
		"on its way when it happened":    {"10:59:59.999", "Everything is forbidden.", verdict.ClassConfigRaced, verdict.OutcomeAmbiguous},
		"on its way, by what was before": {"10:59:59.999", "", "", verdict.OutcomeMatch},
	} {
		t.Run(name, func(t *testing.T) {
			c := conformance{config: files, user: "bob", verb: "list", uri: "/api/v1/namespaces/default/pods",
				record: strings.TrimSpace("forbid " + tc.reason)}
			v := c.replay(t, fmt.Sprintf("{at: %q}", tc.at))
			if v.Class != tc.class || v.Outcome != tc.outcome {
				t.Errorf("%s %s: %s", v.Outcome, v.Class, v.Cause)
			}
		})
	}
}
