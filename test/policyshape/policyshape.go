// Package policyshape generates RBAC policies of every shape from seeds: few objects with long
// lists, many small ones, whatever multiplies. Sizes are drawn so that each order of magnitude
// is as likely as any other, and independently, so that what meets what is left to chance.
package policyshape

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Policy is a generated policy.
type Policy struct {
	Objects []any // *rbacv1.ClusterRole, *rbacv1.Role and bindings
	Bytes   int   // of all objects as JSON
	Shape   string
	Users   int // user-0, user-1 … are who bindings name
	// Values are some of the strings in its rules, for requests to ask for.
	Groups, Resources, Verbs, Names, Paths []string

	rng *rand.Rand
}

// measures are how many of what there are at the most.
type measures struct {
	roles, rules, groups, resources, verbs, names, paths int
	bindings, subjects, users, namespaces                int
	nameLength, alphabet                                 int
	wildcards, named, namespaced, aggregated, copied     float64
}

// Generate makes the policy of a seed, of up to most bytes.
func Generate(seed uint64, most int) *Policy {
	p := &Policy{rng: rand.New(rand.NewPCG(seed, 0x5348415045))}
	m := measures{
		roles: p.upTo(4000), rules: p.upTo(2000), groups: p.upTo(300), resources: p.upTo(3000), verbs: p.upTo(60), names: p.upTo(3000),
		paths:    p.upTo(300),
		bindings: p.upTo(20_000), subjects: p.upTo(2000), users: p.upTo(2000), namespaces: p.upTo(200),
		nameLength: p.upTo(10_000), alphabet: p.upTo(100_000),
		wildcards: p.share(), named: p.share(), namespaced: p.share(), aggregated: p.share(), copied: p.share(),
	}
	if p.rng.IntN(4) > 0 {
		m.nameLength = 1 + m.nameLength%16
	}
	p.Users = m.users
	p.Shape = fmt.Sprintf("seed %d: %+v", seed, m)
	size := int(math.Exp(math.Log(10_000) + p.rng.Float64()*(math.Log(float64(most))-math.Log(10_000))))
	share := 0.05 + 0.9*p.rng.Float64() // of bytes that go to roles
	for i := 0; i < m.roles && p.Bytes < int(share*float64(size)); i++ {
		p.role(&m, i, int(share*float64(size)))
	}
	for i := 0; i < m.bindings && p.Bytes < size; i++ {
		p.binding(&m, i, size)
	}
	return p
}

// Products returns a policy of 60 ClusterRoles with 20 rules of 60 groups, 60 resources, 30 verbs and 60
// names each, and 300 bindings of 100 subjects.
func Products() *Policy {
	p := &Policy{rng: rand.New(rand.NewPCG(1, 0x5348415045)), Users: 120, Shape: "products"}
	numbered := func(prefix string, n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint(prefix, i)
		}
		return out
	}
	for i := range 60 {
		r := &rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: meta("", fmt.Sprint("role-", i))}
		for j := range 20 {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{
				APIGroups: numbered(fmt.Sprint("g", i, "-", j, "-"), 60), Resources: numbered(fmt.Sprint("r", i, "-", j, "-"), 60),
				Verbs: numbered(fmt.Sprint("v", i, "-"), 30), ResourceNames: numbered(fmt.Sprint("n", i, "-", j, "-"), 60)})
		}
		last := r.Rules[len(r.Rules)-1]
		p.Groups, p.Resources = append(p.Groups, last.APIGroups[7]), append(p.Resources, last.Resources[7])
		p.Verbs, p.Names = append(p.Verbs, last.Verbs[7]), append(p.Names, last.ResourceNames[7])
		p.add(r)
	}
	for i := range 300 {
		b := &rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: meta("", fmt.Sprint("binding-", i)),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprint("role-", i%60)}}
		for _, user := range numbered("user-", 100) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
		}
		p.add(b)
	}
	return p
}

// objectBytes is about the most that etcd takes in one object.
const objectBytes = 1_400_000

// upTo draws from 1 to n, each order of magnitude alike.
func (p *Policy) upTo(n int) int { return int(math.Exp(p.rng.Float64() * math.Log(float64(n)+0.99))) }

// share is mostly none, at times all, else anything.
func (p *Policy) share() float64 {
	switch p.rng.IntN(4) {
	case 0, 1:
		return 0
	case 2:
		return 1
	}
	return p.rng.Float64()
}

func (p *Policy) happens(share float64) bool { return p.rng.Float64() < share }

// add counts an object's bytes and keeps it.
func (p *Policy) add(object any) {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // of types that always encode
	}
	p.Bytes += len(raw)
	p.Objects = append(p.Objects, object)
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), ResourceVersion: "1000"}
}

func (p *Policy) role(m *measures, i, size int) {
	var rules []rbacv1.PolicyRule
	left := min(size-p.Bytes, objectBytes)
	for range m.rules {
		if len(rules) > 0 && p.happens(m.copied) {
			rules = append(rules, rules[p.rng.IntN(len(rules))])
		} else {
			rules = append(rules, p.rule(m))
		}
		r := &rules[len(rules)-1]
		for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
			for _, v := range list {
				left -= len(v) + 3
			}
		}
		if left -= 60; left < 0 {
			break
		}
	}
	name := fmt.Sprint("role-", i)
	if p.happens(m.namespaced) {
		p.add(&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: meta(fmt.Sprint("ns-", i%m.namespaces), name), Rules: rules})
		return
	}
	r := &rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: meta("", name), Rules: rules}
	if p.happens(m.aggregated) {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"a": "b"}}}}
	}
	p.add(r)
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}
}

func (p *Policy) rule(m *measures) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: p.list(m, &p.Verbs, m.verbs, "v")}
	if p.rng.IntN(6) == 0 {
		r.NonResourceURLs = p.list(m, &p.Paths, m.paths, "/")
		if p.rng.IntN(2) == 0 {
			for i := range r.NonResourceURLs {
				r.NonResourceURLs[i] = strings.Repeat("/a", i%400) + r.NonResourceURLs[i] + "*"
			}
		}
		return r
	}
	r.APIGroups, r.Resources = p.list(m, &p.Groups, m.groups, "g"), p.list(m, &p.Resources, m.resources, "r")
	if p.happens(m.named) {
		r.ResourceNames = p.list(m, &p.Names, m.names, "n")
	}
	return r
}

// list is up to n values, and remembers some of them.
func (p *Policy) list(m *measures, some *[]string, n int, prefix string) []string {
	if p.rng.IntN(8) == 0 && p.happens(m.wildcards) {
		return []string{"*"}
	}
	n = 1 + p.rng.IntN(n)
	out := make([]string, n)
	from := p.rng.IntN(m.alphabet)
	for i := range out {
		out[i] = fmt.Sprint(prefix, (from+i)%m.alphabet)
		if pad := m.nameLength - len(out[i]); pad > 0 && p.rng.IntN(4) == 0 {
			out[i] += strings.Repeat("x", pad)
		}
		if prefix == "r" && i%7 == 6 && p.happens(m.wildcards) {
			out[i] = "*/" + out[i]
		}
	}
	if len(*some) < 200 {
		*some = append(*some, out[p.rng.IntN(n)])
	}
	return out
}

func (p *Policy) binding(m *measures, i, size int) {
	var subjects []rbacv1.Subject
	left := min(size-p.Bytes, objectBytes)
	for range 1 + p.rng.IntN(m.subjects) {
		s := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprint("user-", p.rng.IntN(m.users))}
		if p.rng.IntN(4) == 0 {
			s.Kind, s.Name = rbacv1.GroupKind, fmt.Sprint("group-", p.rng.IntN(m.users))
		}
		subjects = append(subjects, s)
		if left -= 80; left < 0 {
			break
		}
	}
	role := p.rng.IntN(m.roles)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprint("role-", role)}
	name := fmt.Sprint("binding-", i)
	if pad := m.nameLength - len(name); pad > 0 && p.rng.IntN(4) == 0 {
		name += strings.Repeat("x", pad)
	}
	if p.happens(m.namespaced) {
		if p.rng.IntN(2) == 0 {
			ref.Kind = "Role"
		}
		p.add(&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: meta(fmt.Sprint("ns-", role%m.namespaces), name),
			Subjects: subjects, RoleRef: ref})
		return
	}
	p.add(&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: meta("", name), Subjects: subjects,
		RoleRef: ref})
}

// Pick returns one of the values, or another one now and then.
func (p *Policy) Pick(values []string, or string) string {
	if len(values) == 0 || p.rng.IntN(10) == 0 {
		return or
	}
	return values[p.rng.IntN(len(values))]
}

// IntN draws from 0 to n-1.
func (p *Policy) IntN(n int) int { return p.rng.IntN(n) }
