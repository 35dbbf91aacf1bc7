package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// policy is a generated policy around the bootstrap one: n ClusterRoleBindings, n
// RoleBindings in up to 5,000 namespaces, roles as people write them.
type policy struct {
	name          string
	n, namespaces int
	objects       []any
	last          *rbacv1.ClusterRole // the role of the last ClusterRoleBinding, nil when n is 0
}

var resources = []struct{ group, resource, sub string }{
	{"", "pods", ""}, {"", "pods", "log"}, {"", "services", ""}, {"", "configmaps", ""}, {"", "secrets", ""}, {"", "endpoints", ""},
	{"", "events", ""}, {"", "persistentvolumeclaims", ""}, {"apps", "deployments", ""}, {"apps", "deployments", "scale"},
	{"apps", "statefulsets", ""}, {"apps", "daemonsets", ""}, {"apps", "replicasets", ""}, {"batch", "jobs", ""}, {"batch", "cronjobs", ""},
	{"networking.k8s.io", "ingresses", ""}, {"networking.k8s.io", "networkpolicies", ""}, {"autoscaling", "horizontalpodautoscalers", ""},
	{"policy", "poddisruptionbudgets", ""}, {"coordination.k8s.io", "leases", ""},
}

var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

const (
	sharedRoles = 500 // distinct ClusterRoles that bindings share
	manyGroups  = 200
	listedNames = 50 // resourceNames of the role that has them
)

// bootstrap reads the RBAC objects of a freshly started apiserver.
func bootstrap(file string) ([]any, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read bootstrap policy: %w", err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read bootstrap policy %s: %w", file, err)
	}
	var out []any
	for _, item := range list.Items {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(item, &kind); err != nil {
			return nil, fmt.Errorf("read bootstrap policy %s: %w", file, err)
		}
		o, _, err := rbacindex.FromJSON(kind.Kind, item)
		if err != nil {
			return nil, fmt.Errorf("read bootstrap policy %s: %w", file, err)
		}
		out = append(out, o)
	}
	return out, nil
}

func newPolicy(name string, n int, base []any) *policy {
	p := &policy{name: name, n: n, namespaces: max(1, min(5000, n/10)), objects: append([]any(nil), base...)}
	if n == 0 {
		return p
	}
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range sharedRoles {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-role-%d", i)}}
		for range 1 + rng.IntN(4) {
			res := resources[rng.IntN(len(resources))]
			name := res.resource
			if res.sub != "" {
				name += "/" + res.sub
			}
			rule := rbacv1.PolicyRule{APIGroups: []string{res.group}, Resources: []string{name}}
			for _, v := range rng.Perm(len(verbs))[:1+rng.IntN(4)] {
				rule.Verbs = append(rule.Verbs, verbs[v])
			}
			r.Rules = append(r.Rules, rule)
		}
		if i == (n-1)%sharedRoles {
			p.last = r
		}
		p.objects = append(p.objects, r)
	}
	named := rbacv1.PolicyRule{Verbs: []string{"get", "update"}, APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}}
	for i := range listedNames {
		named.ResourceNames = append(named.ResourceNames, fmt.Sprintf("named-%d", i))
	}
	p.objects = append(p.objects, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "names"}, Rules: []rbacv1.PolicyRule{named}})
	for i := range n {
		p.objects = append(p.objects, p.clusterBinding(i), p.roleBinding(i))
	}
	return p
}

func (p *policy) clusterBinding(i int) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crb-%06d", i)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprintf("team-role-%d", i%sharedRoles)},
	}
	switch {
	case i%5 == 0 && i/5 < manyGroups:
		b.Subjects = []rbacv1.Subject{{Kind: "Group", Name: fmt.Sprintf("group-%d", i/5)}}
	case i == 1:
		b.RoleRef.Name = "names"
		b.Subjects = []rbacv1.Subject{{Kind: "User", Name: "named"}}
	default:
		b.Subjects = []rbacv1.Subject{{Kind: "User", Name: fmt.Sprintf("user-%d", i)}}
	}
	return b
}

func (p *policy) roleBinding(i int) *rbacv1.RoleBinding {
	ns := fmt.Sprintf("ns-%d", i%p.namespaces)
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("rb-%06d", i)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}
	switch i % 3 {
	case 0:
		b.Subjects = []rbacv1.Subject{{Kind: "User", Name: fmt.Sprintf("user-%d", i)}}
	case 1:
		b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: "runner", Namespace: ns}}
	default:
		b.Subjects = []rbacv1.Subject{{Kind: "Group", Name: fmt.Sprintf("tenant-%d", i%97)},
			{Kind: "User", Name: fmt.Sprintf("lead-%d", i)}}
	}
	return b
}

// kinds are the kinds of requests measured.
var kinds = []string{"allow first", "allow last", "deny", "200 groups", "namespaced", "namespaced crowd", "resourceNames"}

// regularUsers are as many subjects as take turns in the kinds of requests that are about
// known subjects; a crowd is a third of all.
const regularUsers = 64

// requests makes count requests of a kind that all differ from each other, and from those of
// another round. Every request has strings of its own, as requests that come over a wire have.
func (p *policy) requests(kind string, round, count int) []rbacindex.Attributes {
	rng := rand.New(rand.NewPCG(99, uint64(round)))
	out := make([]rbacindex.Attributes, count)
	// Two hundred names a request would be gigabytes: these take turns, as buffers of a decoder do.
	var sets [64][]string
	if kind == "200 groups" {
		for i := range sets {
			sets[i] = many()
		}
	}
	for i := range out {
		res := resources[rng.IntN(len(resources))]
		a := rbacindex.Attributes{
			ResourceRequest: true, Verb: verbs[rng.IntN(len(verbs))], APIGroup: res.group, Resource: res.resource, Subresource: res.sub,
			Namespace: fmt.Sprintf("ns-%d", rng.IntN(p.namespaces)), Name: fmt.Sprintf("object-%d-%d", round, i),
		}
		switch kind {
		case "allow first":
			a.User, a.Groups = fresh("admin"), groups("system:masters")
		case "allow last":
			p.askLast(&a, rng)
		case "deny":
			a.User = fmt.Sprintf("stranger-%d", rng.IntN(regularUsers))
		case "200 groups":
			a.User, a.Groups = fresh("member"), sets[i%len(sets)]
		case "namespaced", "namespaced crowd":
			third := max(1, p.n/3)
			j := 3 * rng.IntN(third)
			if kind == "namespaced" {
				j = 3 * (rng.IntN(regularUsers) * third / regularUsers)
			}
			a.User, a.Namespace, a.Verb = fmt.Sprintf("user-%d", j), fmt.Sprintf("ns-%d", j%p.namespaces), "get"
		case "resourceNames":
			a.User, a.APIGroup, a.Resource, a.Subresource, a.Verb = fresh("named"), "", "secrets", "", "get"
			a.Namespace = fmt.Sprintf("ns-%d-%d", round, i)
			a.Name = fmt.Sprintf("named-%d", rng.IntN(2*listedNames)) // half of them listed
		}
		if a.Groups == nil {
			a.Groups = groups()
		}
		out[i] = a
	}
	return out
}

// askLast makes a a request that only the last ClusterRoleBinding allows.
func (p *policy) askLast(a *rbacindex.Attributes, rng *rand.Rand) {
	if p.last == nil {
		a.User, a.APIGroup, a.Resource, a.Subresource, a.Verb = fresh("system:kube-scheduler"), "", "pods", "", "list"
		return
	}
	rule := p.last.Rules[rng.IntN(len(p.last.Rules))]
	a.User = fmt.Sprintf("user-%d", p.n-1)
	a.APIGroup, a.Verb = rule.APIGroups[0], rule.Verbs[rng.IntN(len(rule.Verbs))]
	a.Resource, a.Subresource = rule.Resources[0], ""
	for _, res := range resources {
		if res.sub != "" && rule.Resources[0] == res.resource+"/"+res.sub {
			a.Resource, a.Subresource = res.resource, res.sub
		}
	}
}

// groups returns the group names and system:authenticated, in memory of their own.
func groups(names ...string) []string {
	out := make([]string, 0, len(names)+1)
	for _, n := range append(names, "system:authenticated") {
		out = append(out, fresh(n))
	}
	return out
}

// many returns the names of 200 groups and system:authenticated.
func many() []string {
	names := make([]string, manyGroups)
	for i := range names {
		names[i] = fmt.Sprintf("group-%d", i)
	}
	return groups(names...)
}

// fresh returns a copy of s in memory of its own.
func fresh(s string) string { return string([]byte(s)) }
