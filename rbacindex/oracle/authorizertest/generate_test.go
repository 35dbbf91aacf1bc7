package authorizertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
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
	verbs     = []string{"get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "impersonate"}
	apiGroups = []string{"", "", "apps", "apps", "*", "authentication.k8s.io"}
	resources = []string{"pods", "pods", "secrets", "deployments", "nodes", "users", "groups", "serviceaccounts", "pods/log",
		"deployments/scale", "*/scale", "*", "*/*"}
	names      = []string{"a", "a", "b", "web", "ä", "x y", "*", "alice", "ops"}
	namespaces = []string{"shop", "shop", "bank", "default"}
	paths      = []string{"/healthz", "/healthz/ready", "/metrics", "/version", "/api", "/apis/apps", "/openapi/v3", "/"}
	urls       = []string{"/healthz", "/healthz/*", "/healthz*", "/metrics", "*", "/api", "/apis/*", "/version"}
	users      = []string{"alice", "alice", "bob", "carl", "system:serviceaccount:shop:ci", "system:serviceaccount:default:ci",
		"system:anonymous", "äöü"}
	groups    = []string{"ops", "ops", "devs", "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:shop"}
	roleNames = []string{"view", "view", "edit", "edit", "admin", "admin", "ops", "ops", "system:x", "system:x", "lost", "lost2"}
	bindings  = []string{"b1", "b2", "b3", "b4", "b5", "b6", "system:b"}
	kinds     = []string{"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "Role", "Role", "Role",
		"Role", "Role", "Rolle"}
)

// reviewers lets everybody ask about themselves, so that such requests come through.
func reviewers() (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reviewer"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"},
				Resources: []string{"selfsubjectrulesreviews", "selfsubjectaccessreviews"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reviewers"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reviewer"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}}
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

// write makes a write: most create or change something, one in six deletes.
func (g generator) write() rbacindex.Change {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: g.pick(kinds), Name: g.pick(roleNames)}
	var c rbacindex.Change
	switch g.IntN(8) {
	case 0:
		c.Key = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: g.pick(namespaces), Name: g.pick(roleNames[:10])}
		c.Object = &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: c.Key.Namespace, Name: c.Key.Name}, Rules: g.rules()}
	case 1, 2:
		c.Key = rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: g.pick(roleNames[:10])}
		c.Object = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: c.Key.Name}, Rules: g.rules()}
	case 3, 4:
		c.Key = rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: g.pick(bindings)}
		c.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: c.Key.Name}, Subjects: g.subjects(), RoleRef: ref}
	default:
		c.Key = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: g.pick(namespaces), Name: g.pick(bindings)}
		c.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: c.Key.Namespace, Name: c.Key.Name}, Subjects: g.subjects(),
			RoleRef: ref}
	}
	if g.IntN(6) == 0 {
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

// call makes a request, three in four of them aimed at something that a binding grants.
func (g generator) call(w *world) *call {
	c := &call{method: "GET", user: g.pick(users), groups: append(g.some(2, groups), "system:authenticated")}
	if g.IntN(60) == 0 {
		c.groups = append(c.groups, "system:masters")
	}
	var rule *rbacv1.PolicyRule
	namespace := g.pick(append(namespaces, ""))
	if g.IntN(4) > 0 {
		rule = g.granted(w, c, &namespace)
	}
	if g.IntN(10) == 0 {
		c.asUser, c.asGroups = c.user, c.groups
		c.user = g.pick(users)
	}
	switch g.IntN(12) {
	case 0:
		c.method, c.uri = "POST", rulesReview
		c.body = encode(authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{
			Namespace: g.pick(namespaces)}})
	case 1:
		about := authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: g.pick(paths), Verb: g.pick(verbs)}}
		if g.IntN(3) > 0 { // verbs, resources and names no URL could carry
			about = authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: g.pick(verbs),
				Group: g.pick(apiGroups), Resource: g.pick(resources), Subresource: g.pick([]string{"", "", "log", "scale"}),
				Name: g.pick(append(names, ""))}}
		}
		c.method, c.uri = "POST", accessReview
		c.body = encode(authorizationv1.SelfSubjectAccessReview{Spec: about})
	default:
		switch {
		case rule != nil && len(rule.NonResourceURLs) > 0 || rule == nil && g.IntN(5) == 0:
			c.method = g.pick([]string{"GET", "GET", "POST", "PUT", "HEAD"})
			c.uri = g.pick(paths)
		default:
			c.resource(g, rule, namespace)
		}
	}
	return c
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// granted chooses a binding, makes the call its subject's and returns a rule of its role, nil
// when it has none.
func (g generator) granted(w *world, c *call, namespace *string) *rbacv1.PolicyRule {
	kind := rbacindex.KindClusterRoleBinding
	if g.IntN(2) == 0 {
		kind = rbacindex.KindRoleBinding
	}
	keys := w.stores[kind].ListKeys()
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	object, _, err := w.stores[kind].GetByKey(g.pick(keys))
	if err != nil {
		w.t.Fatal(err)
	}
	var ref rbacv1.RoleRef
	var subjects []rbacv1.Subject
	in := ""
	switch b := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		ref, subjects = b.RoleRef, b.Subjects
	case *rbacv1.RoleBinding:
		ref, subjects, in, *namespace = b.RoleRef, b.Subjects, b.Namespace, b.Namespace
	}
	switch s := subjects[g.IntN(len(subjects))]; s.Kind {
	case "User":
		c.user = s.Name
	case "Group":
		c.groups = append(c.groups, s.Name)
	default:
		if s.Namespace == "" {
			s.Namespace = in
		}
		c.user = "system:serviceaccount:" + s.Namespace + ":" + s.Name
	}
	rules, err := w.resolver.GetRoleReferenceRules(w.t.Context(), ref, in)
	if err != nil || len(rules) == 0 {
		return nil
	}
	return &rules[g.IntN(len(rules))]
}

// resource makes the call one about a resource, of a rule's when there is one.
func (c *call) resource(g generator, rule *rbacv1.PolicyRule, namespace string) {
	verb, group, resource, name := g.pick(verbs[:9]), g.pick(apiGroups[:4]), g.pick(resources[:8]), g.pick(names)
	if rule != nil {
		if v := g.pick(rule.Verbs); v != "*" && v != "impersonate" {
			verb = v
		}
		if v := g.pick(rule.APIGroups); v != "*" {
			group = v
		}
		if v := g.pick(rule.Resources); !strings.Contains(v, "*") {
			resource = v
		}
		if len(rule.ResourceNames) > 0 {
			name = g.pick(rule.ResourceNames)
		}
	}
	how := methods[verb]
	resource, sub, _ := strings.Cut(resource, "/")
	var b strings.Builder
	if group == "" {
		b.WriteString("/api/v1")
	} else {
		fmt.Fprintf(&b, "/apis/%s/v1", group)
	}
	if namespace != "" {
		b.WriteString("/namespaces/" + namespace)
	}
	b.WriteString("/" + resource)
	if how.named || sub != "" {
		b.WriteString("/" + url.PathEscape(name))
		if sub == "" && g.IntN(8) == 0 {
			sub = g.pick([]string{"log", "scale", "status"})
		}
		if sub != "" {
			b.WriteString("/" + sub)
		}
	}
	if verb == "watch" {
		b.WriteString("?watch=true")
	}
	c.method, c.uri = how.method, b.String()
}
