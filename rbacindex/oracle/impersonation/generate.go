package impersonation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// Modes of impersonation, in the order in which the filter asks them. The last is legacy.
var Modes = []string{"associated-node", "arbitrary-node", "serviceaccount", "user-info", ""}

// person is a user with what a request may ask for.
type person struct {
	name, uid string
	groups    []string
	extra     map[string][]string
}

// ask is one request: who makes it as whom.
type ask struct {
	by, as       person
	method, path string
}

// generator makes policies about impersonation and requests near to what they grant.
type generator struct {
	*rand.Rand
	targets []ask
}

func newGenerator(seed, lot uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, lot))}
}

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }
func (g *generator) one(n int) bool             { return g.IntN(n) == 0 }

func (g *generator) requestor() person {
	switch g.IntN(5) {
	case 0:
		node := []string{g.pick("n1", "n2", "n3")}
		if g.one(8) {
			node = append(node, "n1")
		}
		return person{name: "system:serviceaccount:ns:agent", uid: "u", groups: []string{"system:serviceaccounts",
			"system:serviceaccounts:ns", "system:authenticated"},
			extra: map[string][]string{"authentication.kubernetes.io/node-name": node}}
	case 1:
		return person{name: "sue", groups: []string{"support", "system:authenticated"}}
	case 2:
		return person{name: "sue", groups: []string{"system:authenticated"}}
	case 3:
		p := person{name: "tim", groups: []string{"support", "system:authenticated"}}
		if g.one(6) {
			p.groups = append(p.groups, "system:masters")
		}
		return p
	}
	return person{name: "node-agent", groups: []string{"system:authenticated"},
		extra: map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}}
}

func (g *generator) wanted() person {
	p := person{name: g.pick("alice", "alice", "bob", "system:anonymous", "system:serviceaccount:ns:app", "system:serviceaccount:ns:app",
		"system:serviceaccount:other:app",
		"system:serviceaccount:NS:app", "system:serviceaccount:ns", "system:node:n1", "system:node:n1", "system:node:n2", "system:node:N_1",
		"system:node:", "system:apiserver", "a<b>&c", "")}
	if g.one(2) {
		return p
	}
	if g.one(4) {
		p.uid = g.pick("uid-1", "uid-2")
	}
	for range g.IntN(6) {
		p.groups = append(p.groups, g.pick("devs", "ops", "qa", "team:a", "team:b", "system:authenticated", "system:unauthenticated",
			"system:masters", "system:nodes",
			"system:serviceaccounts", "system:serviceaccounts:ns", "*", ""))
	}
	if g.one(12) {
		p.groups = []string{"system:serviceaccounts", "system:serviceaccounts:ns"}
	}
	for range g.IntN(3) * g.IntN(2) {
		if p.extra == nil {
			p.extra = map[string][]string{}
		}
		key := g.pick("scopes", "scopes", "acme.com/project", "acme.com/a/b", "not_a domain", "", "*")
		p.extra[key] = nil
		for range 1 + g.IntN(4)/2 {
			p.extra[key] = append(p.extra[key], g.pick("view", "edit", "*", ""))
		}
	}
	return p
}

func (g *generator) request() (method, path string) {
	return g.pick("GET", "GET", "POST", "DELETE"), g.pick("/api/v1/namespaces/d/pods", "/api/v1/namespaces/d/pods/p",
		"/api/v1/namespaces/d/pods/p/log", "/api/v1/secrets",
		"/apis/apps/v1/namespaces/d/deployments/w/scale", "/healthz", "/api/v1/nodes/n1", "/a<b>")
}

// ask makes a request: mostly one that the policy was made for, or near to it.
func (g *generator) ask() ask {
	if len(g.targets) == 0 || g.one(6) {
		a := ask{by: g.requestor(), as: g.wanted()}
		a.method, a.path = g.request()
		return a
	}
	a := g.targets[g.IntN(len(g.targets))]
	switch g.IntN(7) {
	case 0:
		a.by = g.requestor()
	case 1:
		a.as = g.wanted()
	case 2:
		a.method, a.path = g.request()
	case 3:
		a.as.groups = append(slices.Clone(a.as.groups), g.pick("devs", "system:authenticated"))
	}
	return a
}

// verbOf returns the verb of a request on a resource, as the requests above make them.
func verbOf(method, path string) string {
	collection := path == "/api/v1/namespaces/d/pods" || path == "/api/v1/secrets"
	switch {
	case path == "/healthz" || path == "/a<b>":
		return map[string]string{"GET": "get", "POST": "post", "DELETE": "delete"}[method]
	case method == "POST":
		return "create"
	case method == "DELETE" && collection:
		return "deletecollection"
	case method == "DELETE":
		return "delete"
	case collection:
		return "list"
	}
	return "get"
}

// grants returns rules that let a target pass in a mode, now and then without one of them.
func (g *generator) grants(t *ask, mode string) []rbacv1.PolicyRule {
	verb, users := "impersonate", ""
	var rules []rbacv1.PolicyRule
	if mode != "" {
		verb, users = "impersonate:"+mode, "authentication.k8s.io"
		on := "impersonate-on:" + mode + ":" + verbOf(t.method, t.path)
		if t.path == "/healthz" || t.path == "/a<b>" {
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{on}, NonResourceURLs: []string{g.pick(t.path, "*", "/heal*")}})
		} else {
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{on}, APIGroups: []string{"*"},
				Resources: []string{g.pick("*", "*", "pods", "pods/log")}})
		}
	}
	piece := func(group, resource string, names ...string) {
		r := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
		if g.IntN(3) > 0 {
			r.ResourceNames = names
		}
		rules = append(rules, r)
	}
	switch mode {
	case "associated-node":
		piece(users, "nodes", g.pick("*", "*", "*", "n1"))
	case "arbitrary-node":
		piece(users, "nodes", g.pick("n1", "n2", "*"))
	case "serviceaccount":
		piece(users, "serviceaccounts", "app")
	default:
		if mode == "" && g.one(2) {
			piece(users, "serviceaccounts", "app")
		}
		piece(users, "users", t.as.name)
		if len(t.as.groups) > 0 {
			names := t.as.groups
			if g.one(4) {
				names = []string{"*"}
			}
			piece(users, "groups", names...)
		}
		if t.as.uid != "" {
			piece("authentication.k8s.io", "uids", t.as.uid)
		}
		for key, values := range t.as.extra {
			if g.one(5) {
				key, values = "*", []string{"*"}
			}
			piece("authentication.k8s.io", "userextras/"+key, values...)
		}
	}
	if g.one(3) {
		i := g.IntN(len(rules))
		rules = append(rules[:i], rules[i+1:]...)
	}
	return rules
}

// policy makes a policy with targets.
func (g *generator) policy() []rbacindex.Change {
	var out []rbacindex.Change
	add := func(name string, subject rbacv1.Subject, rules []rbacv1.PolicyRule) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		if g.one(25) {
			ref.Name = "gone-" + name
		}
		out = append(out, put(role))
		if g.one(8) {
			out = append(out, put(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: g.pick("d", "ns")}, RoleRef: ref,
				Subjects: []rbacv1.Subject{subject}}))
			return
		}
		out = append(out, put(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref,
			Subjects: []rbacv1.Subject{subject}}))
	}
	g.targets = nil
	for i := range 2 + g.IntN(6) {
		t := ask{by: g.requestor(), as: g.wanted()}
		t.method, t.path = g.request()
		g.targets = append(g.targets, t)
		subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: t.by.name}
		if g.one(4) {
			subject = rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: t.by.groups[0]}
		}
		add(fmt.Sprint("target-", i), subject, g.grants(&t, Modes[g.IntN(len(Modes))]))
	}
	if g.one(2) {
		add("reads", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: g.pick("system:authenticated", "devs")},
			[]rbacv1.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}}})
	}
	return out
}

func put(object any) rbacindex.Change {
	k, err := rbacindex.KeyOf(object)
	if err != nil {
		panic(err) // the generator makes RBAC objects only
	}
	return rbacindex.Change{Key: k, Object: object}
}
