package leastpriv

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/retrial-io/retrial/rbacindex"
)

// generator writes the roles that allow what a base policy does not.
type generator struct {
	base    *rbacindex.Snapshot // the policy without the subject's own bindings
	subject rbacv1.Subject
	user    string
	name    string // of every object
	exact   bool   // include the name of every object that has one
	wild    bool   // write "*" for the verbs of a rule where that is harmless enough
}

// names are the requested object names under one pair.
type names struct {
	all bool // some request had no name
	set map[string]bool
}

// generate returns roles and bindings that allow the needs, and the final policy. Plain requests
// come first; a hidden check that more than one right satisfies gets one only if nothing so far
// satisfies it: role writes before binding writes, because the rules a writer holds also let him
// bind them.
func (g *generator) generate(needs []need) ([]Object, *rbacindex.Snapshot, error) {
	plain := plainOf(needs)
	var roles, bindings []*need
	for i := range needs {
		switch n := &needs[i]; {
		case !n.alternative:
		case n.attrs.Verb == "escalate":
			roles = append(roles, n)
		default:
			bindings = append(bindings, n)
		}
	}
	objects, final, err := g.build(plain)
	if err != nil {
		return nil, nil, err
	}
	// Those that take escalate come first: it also lets the other roles be written.
	var takes, holders []*need
	for _, n := range roles {
		if n.escalates() {
			takes = append(takes, n)
		} else {
			holders = append(holders, n)
		}
	}
	for _, n := range slices.Concat(takes, holders, bindings) {
		if n.allowed(final) {
			continue
		}
		plain = append(plain, n.instead()...)
		if objects, final, err = g.build(plain); err != nil {
			return nil, nil, err
		}
	}
	return objects, final, nil
}

// plainOf returns the checks that only one right satisfies.
func plainOf(needs []need) []rbacindex.Attributes {
	var out []rbacindex.Attributes
	for i := range needs {
		if !needs[i].alternative {
			out = append(out, needs[i].attrs)
		}
	}
	return out
}

// build creates the objects: the cluster's first, then each namespace's for what is still refused.
func (g *generator) build(wanted []rbacindex.Attributes) ([]Object, *rbacindex.Snapshot, error) {
	scopes := map[string][]rbacindex.Attributes{}
	for i := range wanted {
		scope := scopeOf(&wanted[i])
		scopes[scope] = append(scopes[scope], wanted[i])
	}
	var objects []Object
	policy, cluster := g.base, g.base
	for _, scope := range slices.Sorted(maps.Keys(scopes)) { // "" comes first
		asked := scopes[scope]
		rules := g.rules(slices.DeleteFunc(asked, func(a rbacindex.Attributes) bool {
			return cluster.Authorize(&a, nil).Allowed
		}))
		if len(rules) == 0 {
			continue
		}
		role, binding := g.objects(scope, rules)
		var err error
		if policy, err = policy.Apply(change(role), change(binding)); err != nil {
			return nil, nil, fmt.Errorf("suggest for %s: %w", g.user, err)
		}
		if scope == "" {
			cluster = policy
		}
		objects = append(objects, role, binding)
	}
	return objects, policy, nil
}

// rules turns requests of one scope into rules that allow them, and nothing else but other
// names where names are left open.
func (g *generator) rules(wanted []rbacindex.Attributes) []rbacv1.PolicyRule {
	grants := map[pair]*names{}
	for i := range wanted {
		a := &wanted[i]
		k := askedPair(a)
		if a.ResourceRequest && g.wild && wildcard(k.group, k.resource) {
			k.verb = "*"
		}
		n, ok := grants[k]
		if !ok {
			n = &names{set: map[string]bool{}}
			grants[k] = n
		}
		if a.Name == "" {
			n.all = true
		} else {
			n.set[a.Name] = true
		}
	}

	var set ruleSet
	for k, n := range grants {
		var only []string
		if !n.all && g.keepNames(&k, n.set) {
			only = slices.Sorted(maps.Keys(n.set))
		}
		set.of(only)[k] = true
	}
	return set.rules()
}

// wildcard reports whether "*" may stand for the verbs on a resource: it then also allows verbs
// nobody used, but never one with a special meaning, such as bind, escalate, impersonate, approve,
// sign and attest, nor anything about Secrets or what runs commands.
func wildcard(group, resource string) bool {
	if strings.Contains(resource, "/") || slices.Contains([]string{groupRBAC, groupCertificates, groupAuthn}, group) {
		return false
	}
	return group != "" || !slices.Contains([]string{"users", "groups", "serviceaccounts", "secrets", "nodes", "namespaces"}, resource)
}

// objects creates the role of a scope and its binding.
func (g *generator) objects(scope string, rules []rbacv1.PolicyRule) (role, binding Object) {
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: g.name, Namespace: scope, Labels: map[string]string{Label: Manager},
			Annotations: map[string]string{SubjectAnnotation: g.user}}
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.name}
	subjects := []rbacv1.Subject{g.subject}
	if scope == "" {
		return typed(&rbacv1.ClusterRole{ObjectMeta: meta(), Rules: rules}),
			typed(&rbacv1.ClusterRoleBinding{ObjectMeta: meta(), Subjects: subjects, RoleRef: ref})
	}
	ref.Kind = "Role"
	return typed(&rbacv1.Role{ObjectMeta: meta(), Rules: rules}),
		typed(&rbacv1.RoleBinding{ObjectMeta: meta(), Subjects: subjects, RoleRef: ref})
}

// typed sets the object's own kind and apiVersion and returns it.
func typed(o Object) Object {
	if k, err := rbacindex.KeyOf(o); err == nil {
		o.(runtime.Object).GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(k.Kind.String()))
	}
	return o
}

// change returns the write of an object that this package created; all of them have a key.
func change(o Object) rbacindex.Change {
	k, err := rbacindex.KeyOf(o)
	if err != nil {
		panic("leastpriv: " + err.Error())
	}
	return rbacindex.Change{Key: k, Object: o}
}
