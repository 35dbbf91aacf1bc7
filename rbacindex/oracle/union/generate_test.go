package union

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/verdict"
)

type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }
func (g generator) one(n int) bool             { return g.IntN(n) == 0 }

func (g generator) user() event.User {
	u := event.User{Username: g.pick("alice", "bob", "system:serviceaccount:a:b", "system:node:n1", "system:node:n1", "system:node:",
		"system:anonymous")}
	for range g.IntN(3) {
		u.Groups = append(u.Groups, g.pick("devs", "ops", "system:authenticated"))
	}
	if strings.HasPrefix(u.Username, "system:node:") && !g.one(5) {
		u.Groups = append(u.Groups, "system:nodes")
	}
	if g.one(12) {
		u.Groups = append(u.Groups, "system:masters")
	}
	if g.one(4) {
		u.UID = g.pick("1", "2")
	}
	if g.one(4) {
		u.Extra = event.Extra{{Key: g.pick("team", "example.org/team"), Values: []string{g.pick("a", "b")}}}
	}
	return u
}

func (g generator) attributes() verdict.Attributes {
	if g.one(4) {
		return verdict.Attributes{Verb: g.pick("get", "head", "post"), Path: g.pick("/healthz", "/healthz/ping", "/api", "/metrics",
			"/readyz")}
	}
	a := verdict.Attributes{ResourceRequest: true, APIVersion: g.pick("v1", "v1beta1"), Verb: g.pick("get", "list", "watch", "create",
		"delete", "deletecollection", "patch")}
	a.Resource, a.Subresource = g.pick("pods", "secrets", "nodes", "configmaps", "leases", "services"), g.pick("", "", "", "status", "log")
	switch a.Resource {
	case "leases":
		a.APIGroup = "coordination.k8s.io"
	case "services":
		a.APIGroup = g.pick("", "apps")
	}
	a.Namespace, a.Name = g.pick("", "shop", "kube-node-lease"), g.pick("", "", "x", "n1")
	if a.Verb == "list" || a.Verb == "watch" || a.Verb == "deletecollection" {
		a.FieldSelector = g.pick("", "", "spec.nodeName=n1", "spec.nodeName!=n1", "metadata.name=x,spec.nodeName=n1", "a=b=c", ",")
		a.LabelSelector = g.pick("", "", "app=web", "app in (a,b),!gone", "app!=x,tier", "((")
	}
	return a
}

// conditions a webhook may be given: about every attribute, some failing on some requests.
var conditions = []string{
	`has(request.resourceAttributes)`,
	`request.user != "bob"`,
	`!("system:nodes" in request.groups)`,
	`request.resourceAttributes.namespace == "shop"`, // fails on other requests
	`request.nonResourceAttributes.path.startsWith("/healthz")`,
	`has(request.resourceAttributes) && request.resourceAttributes.verb in ["get", "list", "watch"]`,
	`request.uid == "1" || request.groups.exists(g, g == "devs")`,
	`request.extra["team"][0] == "a"`,
	`has(request.resourceAttributes) && request.resourceAttributes.subresource == ""`,
	`has(request.resourceAttributes) && request.resourceAttributes.version == "v1"`,
	`has(request.resourceAttributes) && has(request.resourceAttributes.fieldSelector) && ` +
		`request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == "spec.nodeName" && r.operator == "In")`,
	`request.resourceAttributes.?labelSelector.requirements.orValue([]).exists(r, r.key == "app" && r.values.size() > 1)`,
	`has(request.resourceAttributes) && request.resourceAttributes.name == "x"`,
	`request.resourceAttributes.group == "apps"`,
	`int(request.uid) > 0`,
	`true`,
	`false`,
}

// authorizer is one of a generated AuthorizationConfiguration.
type authorizer struct {
	kind, name    string
	failurePolicy string
	conditions    []string
}

// chain returns a random order of some of the types, and of up to two webhooks.
func (g generator) chain() []authorizer {
	var out []authorizer
	for _, kind := range []string{"Node", "RBAC", "ABAC", "AlwaysDeny"} {
		if !g.one(3) {
			out = append(out, authorizer{kind: kind, name: strings.ToLower(kind)})
		}
	}
	if g.one(8) || len(out) == 0 {
		out = append(out, authorizer{kind: "AlwaysAllow", name: "alwaysallow"})
	}
	for i := range g.IntN(3) {
		w := authorizer{kind: "Webhook", name: fmt.Sprintf("hook-%d.example.org", i), failurePolicy: g.pick("Deny", "NoOpinion")}
		for _, n := range g.Perm(len(conditions))[:g.IntN(3)] {
			w.conditions = append(w.conditions, conditions[n])
		}
		out = append(out, w)
	}
	g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// text returns the chain as a file of --authorization-config.
func text(chain []authorizer) string {
	var list []any
	for _, z := range chain {
		o := map[string]any{"type": z.kind, "name": z.name}
		if z.kind == "Webhook" {
			w := map[string]any{
				"timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
				"failurePolicy":           z.failurePolicy,
				"connectionInfo":          map[string]any{"type": "KubeConfigFile", "kubeConfigFile": "/etc/hook.kubeconfig"},
				"cacheAuthorizedRequests": false, "cacheUnauthorizedRequests": false,
			}
			var match []any
			for _, c := range z.conditions {
				match = append(match, map[string]any{"expression": c})
			}
			if match != nil {
				w["matchConditions"] = match
			}
			o["webhook"] = w
		}
		list = append(list, o)
	}
	out, err := json.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
		"authorizers": list})
	if err != nil {
		panic(err) // strings and booleans
	}
	return string(out)
}

// abac returns a policy file of a few lines.
func (g generator) abac() string {
	var b strings.Builder
	for range g.IntN(4) {
		fmt.Fprintf(&b, `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":%q,"readonly":%v,`+
			`"namespace":%q,"resource":%q,"apiGroup":"*","nonResourcePath":%q}}`+"\n",
			g.pick("alice", "bob", "system:node:n1"), g.one(2), g.pick("shop", "*"), g.pick("pods", "secrets", "*"),
			g.pick("", "/healthz", "/*"))
	}
	return b.String()
}

// policy returns a handful of RBAC objects, some bindings naming roles that are not there.
func (g generator) policy() (changes []rbacindex.Change) {
	set := func(k rbacindex.Key, o any) { changes = append(changes, rbacindex.Change{Key: k, Object: o}) }
	for _, name := range []string{"one", "two"} {
		var rules []rbacv1.PolicyRule
		for range 1 + g.IntN(2) {
			if g.one(4) {
				rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{g.pick("/healthz", "/api*",
					"*")}})
				continue
			}
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{g.pick("get", "list", "*")}, APIGroups: []string{g.pick("", "*")},
				Resources: []string{g.pick("pods", "secrets", "pods/log", "*")}})
		}
		set(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: rules})
	}
	subject := func() rbacv1.Subject {
		if g.one(2) {
			return rbacv1.Subject{Kind: "Group", Name: g.pick("devs", "ops", "system:nodes")}
		}
		return rbacv1.Subject{Kind: "User", Name: g.pick("alice", "bob", "system:node:n1", "system:anonymous")}
	}
	for i := range g.IntN(4) {
		name := fmt.Sprintf("crb%d", i)
		set(rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: name},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				Subjects: []rbacv1.Subject{subject()}, RoleRef: rbacv1.RoleRef{Kind: g.pick("ClusterRole", "ClusterRole", "ClusterRole",
					"Foo"), Name: g.pick("one", "two", "gone", "away")}})
	}
	for i := range g.IntN(3) {
		name := fmt.Sprintf("rb%d", i)
		set(rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: "shop", Name: name},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
				Subjects: []rbacv1.Subject{subject()}, RoleRef: rbacv1.RoleRef{Kind: g.pick("ClusterRole", "Role"),
					Name: g.pick("one", "gone")}})
	}
	return changes
}
