package authorizertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// generator makes writes and the requests a client could send. All randomness comes from its
// seed. Names are few, so that they meet.
type generator struct{ *rand.Rand }

func (g generator) pick(from []string) string { return from[g.IntN(len(from))] }

func (g generator) some(most int, from []string) []string {
	var out []string
	for range g.IntN(most + 1) {
		out = append(out, g.pick(from))
	}
	return out
}

var (
	verbs      = []string{"get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "impersonate"}
	apiGroups  = []string{"", "", "apps", "apps", "*", "authentication.k8s.io"}
	resources  = []string{"pods", "pods", "secrets", "deployments", "nodes", "users", "groups", "serviceaccounts", "pods/log", "deployments/scale", "*/scale", "*", "*/*"}
	names      = []string{"a", "a", "b", "web", "ä", "x y", "*", "alice", "ops"}
	namespaces = []string{"shop", "shop", "bank", "default"}
	paths      = []string{"/healthz", "/healthz/ready", "/metrics", "/version", "/api", "/apis/apps", "/openapi/v3", "/"}
	urls       = []string{"/healthz", "/healthz/*", "/healthz*", "/metrics", "*", "/api", "/apis/*", "/version"}
	users      = []string{"alice", "alice", "bob", "carl", "system:serviceaccount:shop:ci", "system:serviceaccount:default:ci", "system:anonymous", "äöü"}
	groups     = []string{"ops", "ops", "devs", "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:shop"}
	roleNames  = []string{"view", "edit", "admin", "ops", "system:x", "lost", "lost2"}
	bindings   = []string{"b1", "b2", "b3", "b4", "b5", "b6", "system:b"}
	kinds      = []string{"ClusterRole", "ClusterRole", "ClusterRole", "Role", "Role", "Rolle"}
)

// reviewers lets everybody ask about themselves, so that such requests come through.
func reviewers() (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reviewer"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectrulesreviews", "selfsubjectaccessreviews"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reviewers"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reviewer"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}}
}

func (g generator) rules() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for range g.IntN(4) {
		r := rbacv1.PolicyRule{Verbs: append(g.some(2, verbs), g.pick(verbs))}
		switch g.IntN(5) {
		case 0:
			r.NonResourceURLs = append(g.some(2, urls), g.pick(urls))
		default:
			r.APIGroups, r.Resources = append(g.some(1, apiGroups), g.pick(apiGroups)), append(g.some(2, resources), g.pick(resources))
			if g.IntN(3) == 0 {
				r.ResourceNames = append(g.some(2, names), g.pick(names))
			}
		}
		out = append(out, r)
	}
	return out
}

func (g generator) subjects() []rbacv1.Subject {
	var out []rbacv1.Subject
	for range 1 + g.IntN(3) {
		switch g.IntN(5) {
		case 0, 1:
			out = append(out, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: g.pick(users)})
		case 2, 3:
			out = append(out, rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: g.pick(groups)})
		default:
			out = append(out, rbacv1.Subject{Kind: "ServiceAccount", Namespace: g.pick([]string{"", "shop", "default"}), Name: "ci"})
		}
	}
	return out
}

// write makes a write: most create or change something, one in four deletes.
func (g generator) write() rbacindex.Change {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: g.pick(kinds), Name: g.pick(roleNames)}
	var c rbacindex.Change
	switch g.IntN(8) {
	case 0:
		c.Key = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: g.pick(namespaces), Name: g.pick(roleNames[:5])}
		c.Object = &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: c.Key.Namespace, Name: c.Key.Name}, Rules: g.rules()}
	case 1, 2:
		c.Key = rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: g.pick(roleNames[:5])}
		c.Object = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: c.Key.Name}, Rules: g.rules()}
	case 3, 4:
		c.Key = rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: g.pick(bindings)}
		c.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: c.Key.Name}, Subjects: g.subjects(), RoleRef: ref}
	default:
		c.Key = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: g.pick(namespaces), Name: g.pick(bindings)}
		c.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: c.Key.Namespace, Name: c.Key.Name}, Subjects: g.subjects(), RoleRef: ref}
	}
	if g.IntN(4) == 0 {
		c.Object = nil
	}
	return c
}

// methods are how verbs look in HTTP, and whether they name an object.
var methods = map[string]struct {
	method string
	named  bool
}{
	"get": {"GET", true}, "list": {"GET", false}, "watch": {"GET", false}, "create": {"POST", false}, "update": {"PUT", true},
	"patch": {"PATCH", true}, "delete": {"DELETE", true}, "deletecollection": {"DELETE", false},
}

func (g generator) call() *call {
	c := &call{method: "GET", user: g.pick(users), groups: append(g.some(2, groups), "system:authenticated")}
	if g.IntN(60) == 0 {
		c.groups = append(c.groups, "system:masters")
	}
	if g.IntN(10) == 0 {
		c.asUser, c.asGroups = g.pick(users), g.some(2, groups)
	}
	switch g.IntN(12) {
	case 0:
		body, err := json.Marshal(authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: g.pick(namespaces)}})
		if err != nil {
			panic(err)
		}
		c.method, c.uri, c.body = "POST", rulesReview, string(body)
	case 1:
		about := authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: g.pick(paths), Verb: g.pick(verbs)}}
		if g.IntN(3) > 0 { // verbs, resources and names no URL could carry
			about = authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: g.pick(append(namespaces, "")), Verb: g.pick(verbs),
				Group: g.pick(apiGroups), Resource: g.pick(resources), Subresource: g.pick([]string{"", "", "log", "scale"}), Name: g.pick(append(names, ""))}}
		}
		body, err := json.Marshal(authorizationv1.SelfSubjectAccessReview{Spec: about})
		if err != nil {
			panic(err)
		}
		c.method, c.uri, c.body = "POST", accessReview, string(body)
	case 2, 3:
		c.method = g.pick([]string{"GET", "GET", "POST", "PUT", "HEAD"})
		c.uri = g.pick(paths)
	default:
		c.resource(g)
	}
	return c
}

// resource makes the call one about a resource.
func (c *call) resource(g generator) {
	verb := g.pick(verbs[:9])
	how := methods[verb]
	var b strings.Builder
	if group := g.pick(apiGroups[:4]); group == "" {
		b.WriteString("/api/v1")
	} else {
		fmt.Fprintf(&b, "/apis/%s/v1", group)
	}
	if g.IntN(4) > 0 {
		b.WriteString("/namespaces/" + g.pick(namespaces))
	}
	b.WriteString("/" + g.pick(resources[:8]))
	if how.named {
		b.WriteString("/" + url.PathEscape(g.pick(names)))
		if g.IntN(4) == 0 {
			b.WriteString(g.pick([]string{"/log", "/scale", "/status"}))
		}
	}
	if verb == "watch" {
		b.WriteString("?watch=true")
	}
	c.method, c.uri = how.method, b.String()
}
