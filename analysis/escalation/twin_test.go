package escalation_test

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// twin computes escalations by asking, for every state a subject can be in, for every request of
// every way, whether the policy allows it: the same rules as the closure, without its index.
type twin struct {
	policy     *rbacindex.Snapshot
	namespaces []string
	names      []string // that rules name, and one that none does
	users      []string // known, service accounts among them
	groups     []string
	absent     map[string]bool // service accounts that are not there
	allowed    map[asked]bool
}

// asked is one question that was answered.
type asked struct {
	user, groups, bound                  string
	onlyBound                            bool
	verb, group, resource, sub, ns, name string
}

const unheard = "unheard-of"

// being is what a subject has become.
type being struct {
	user   string
	groups string // joined
	held   bool
	space  string // everything in this namespace; the rest is empty
	bound  string // roles bound, joined
	roles  []boundTo
}

type boundTo struct {
	role rbacindex.Key
	ns   string
}

func (b being) key() string {
	return fmt.Sprintf("%q %q %t %q %q", b.user, b.groups, b.held, b.space, b.bound)
}

func groupsOf(user string) []string {
	if ns, name, ok := kubenames.SplitServiceAccount(user); ok && name != "" {
		return []string{"system:serviceaccounts:" + ns, "system:serviceaccounts", "system:authenticated"}
	}
	if user == "system:anonymous" {
		return []string{"system:unauthenticated"}
	}
	return []string{"system:authenticated"}
}

func groupsOfGroup(group string) []string {
	switch {
	case group == "system:authenticated" || group == "system:unauthenticated":
		return []string{group}
	case strings.HasPrefix(group, "system:serviceaccounts:"):
		return []string{group, "system:serviceaccounts", "system:authenticated"}
	}
	return []string{group, "system:authenticated"}
}

func userBeing(user string, held bool) being {
	return being{user: user, groups: strings.Join(groupsOf(user), ","), held: held}
}

func groupBeing(group string, held bool) being {
	groups := groupsOfGroup(group)
	if !held && strings.HasPrefix(group, "system:serviceaccounts:") {
		groups = []string{group, "system:authenticated"}
	}
	return being{groups: strings.Join(groups, ","), held: held}
}

// may asks the policy, and the roles bound on the way.
func (t *twin) may(b *being, onlyBound bool, verb, group, resource, sub, ns, name string) bool {
	key := asked{b.user, b.groups, b.bound, onlyBound, verb, group, resource, sub, ns, name}
	if ok, known := t.allowed[key]; known {
		return ok
	}
	a := rbacindex.Attributes{User: b.user, Groups: strings.Split(b.groups, ","), ResourceRequest: true, Verb: verb, APIGroup: group,
		Resource: resource, Subresource: sub, Namespace: ns, Name: name}
	ok := !onlyBound && t.policy.Authorize(&a, nil).Allowed
	for _, r := range b.roles {
		o, exists := t.policy.Get(r.role)
		if !exists || r.ns != "" && r.ns != ns {
			continue
		}
		var rules []rbacv1.PolicyRule
		switch o := o.(type) {
		case *rbacv1.Role:
			rules = o.Rules
		case *rbacv1.ClusterRole:
			rules = o.Rules
		}
		for i := range rules {
			ok = ok || rbacindex.RuleAllows(&a, &rules[i])
		}
	}
	t.allowed[key] = ok
	return ok
}

// edge leads from a being to another, or to a goal.
type edge struct {
	to   being
	goal bool
	cost int
}

const twinStep = 256

// out lists every way out.
func (t *twin) out(b being) []edge {
	var out []edge
	sas := func(ns string) (list []string) {
		for _, u := range t.users {
			if in, _, ok := kubenames.SplitServiceAccount(u); ok && (ns == "" || in == ns) {
				list = append(list, u)
			}
		}
		return list
	}
	token := func(user string, cost int) {
		if t.absent[user] {
			cost++
		}
		out = append(out, edge{to: userBeing(user, true), cost: cost})
	}
	if b.space != "" {
		for _, u := range sas(b.space) {
			token(u, twinStep)
			out = append(out, edge{to: userBeing(u, false), cost: twinStep})
		}
		return out
	}
	may := func(verb, group, resource, sub, ns, name string) bool {
		return t.may(&b, false, verb, group, resource, sub, ns, name)
	}
	anyOf := func(verbs []string, group, resource, sub, ns, name string) bool {
		return slices.ContainsFunc(verbs, func(v string) bool { return may(v, group, resource, sub, ns, name) })
	}
	some := func(ok func(name string) bool) bool { return slices.ContainsFunc(t.names, ok) }
	if slices.Contains(strings.Split(b.groups, ","), "system:masters") || may("*", "*", "*", "", "", "") {
		out = append(out, edge{goal: true})
	}
	change := []string{"update", "patch"}
	makes := func(group, resource, ns string) (fresh, there bool) {
		fresh = may("create", group, resource, "", ns, "") || some(func(x string) bool {
			return may("create", group, resource, "", ns, x) && may("patch", group, resource, "", ns, x)
		})
		return fresh, some(func(x string) bool { return anyOf(change, group, resource, "", ns, x) })
	}
	accounts := func(ns string, ok bool, cost int) {
		if ok {
			for _, u := range sas(ns) {
				token(u, cost)
			}
		}
	}
	// Ways of a namespace.
	for _, ns := range t.namespaces {
		if may("*", "*", "*", "", ns, "") && !may("*", "*", "*", "", "", "") {
			out = append(out, edge{to: being{space: ns}})
		}
		for _, u := range sas(ns) {
			if _, name, _ := kubenames.SplitServiceAccount(u); may("create", "", "serviceaccounts", "token", ns, name) {
				token(u, twinStep)
			}
		}
		see := some(func(x string) bool { return anyOf([]string{"get", "list", "watch", "patch"}, "", "secrets", "", ns, x) }) ||
			may("deletecollection", "", "secrets", "", ns, "")
		accounts(ns, see, twinStep+1)
		accounts(ns, see && may("create", "", "secrets", "", ns, ""), twinStep)
		accounts(ns, some(func(x string) bool {
			return may("create", "", "secrets", "", ns, x) && may("patch", "", "secrets", "", ns, x)
		}), twinStep)
		for _, r := range []string{"/pods", "apps/deployments", "apps/daemonsets", "apps/statefulsets", "apps/replicasets",
			"/replicationcontrollers", "batch/jobs", "batch/cronjobs"} {
			group, resource, _ := strings.Cut(r, "/")
			fresh, there := makes(group, resource, ns)
			accounts(ns, fresh, twinStep)
			accounts(ns, there, twinStep+1)
		}
		accounts(ns, some(func(x string) bool {
			return may("create", "", "pods", "exec", ns, x) || anyOf(change, "", "pods", "ephemeralcontainers", ns, x)
		}), twinStep+1)
	}
	// Ways of the whole cluster.
	accounts("", some(func(x string) bool { return anyOf([]string{"create", "get"}, "", "nodes", "proxy", "", x) }), twinStep+1)
	for _, r := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		fresh, there := makes(groupAdmission, r, "")
		accounts("", fresh || there, twinStep+1)
	}
	accounts("", may("create", groupAdmission, "mutatingadmissionpolicies", "", "", "") && may("create", groupAdmission,
		"mutatingadmissionpolicybindings", "", "", "") ||
		some(func(x string) bool { return anyOf(change, groupAdmission, "mutatingadmissionpolicies", "", "", x) }), twinStep+1)
	if (may("approve", groupCerts, "signers", "", "", "kubernetes.io/kube-apiserver-client") || may("approve", groupCerts, "signers", "",
		"", "kubernetes.io/*")) && some(func(x string) bool {
		return anyOf(change, groupCerts, "certificatesigningrequests", "approval", "", x) &&
			(may("create", groupCerts, "certificatesigningrequests", "", "", "") ||
				may("create", groupCerts, "certificatesigningrequests", "", "", x) && may("patch", groupCerts, "certificatesigningrequests",
					"", "", x))
	}) {
		for _, u := range t.users {
			out = append(out, edge{to: userBeing(u, true), cost: twinStep + 1})
		}
		for _, g := range t.groups {
			if g != "system:masters" {
				out = append(out, edge{to: groupBeing(g, true), cost: twinStep + 1})
			}
		}
	}
	return append(append(out, t.assume(b)...), t.change(b)...)
}

// assume lists whom it may impersonate.
func (t *twin) assume(b being) (out []edge) {
	if !b.held && len(b.roles) == 0 {
		return nil
	}
	may := func(resource, ns, name string) bool {
		return t.may(&b, !b.held, "impersonate", "", resource, "", ns, name)
	}
	somebody := slices.ContainsFunc(t.names, func(x string) bool { return may("users", "", x) })
	for _, ns := range t.namespaces {
		somebody = somebody || slices.ContainsFunc(t.names, func(x string) bool { return may("serviceaccounts", ns, x) })
	}
	for _, u := range t.users {
		ns, name, ok := kubenames.SplitServiceAccount(u)
		if ok && may("serviceaccounts", ns, name) || !ok && may("users", "", u) {
			out = append(out, edge{to: userBeing(u, false), cost: twinStep})
		}
	}
	if somebody {
		for _, g := range append([]string{"system:masters"}, t.groups...) {
			if may("groups", "", g) {
				out = append(out, edge{to: groupBeing(g, false), cost: twinStep})
			}
		}
	}
	return out
}

// change lists what writing roles and bindings gives.
func (t *twin) change(b being) (out []edge) {
	may := func(verb, resource, ns, name string) bool {
		return t.may(&b, false, verb, groupRBAC, resource, "", ns, name)
	}
	changes := func(resource, ns, name string) bool {
		return may("update", resource, ns, name) || may("patch", resource, ns, name)
	}
	all := func(ns string) {
		e := edge{goal: true, cost: twinStep}
		if ns != "" {
			e = edge{to: being{space: ns}, cost: twinStep}
		}
		out = append(out, e)
	}
	if t.may(&b, false, "*", "*", "*", "", "", "") {
		return nil // there is no more
	}
	next := b
	next.roles = slices.Clone(b.roles)
	more := false
	for _, ns := range append([]string{""}, t.namespaces...) {
		var here []boundTo
		powerful := false
		bindings, kinds := "clusterrolebindings", []string{"clusterroles"}
		if ns != "" {
			bindings, kinds = "rolebindings", []string{"clusterroles", "roles"}
		}
		fresh := may("create", bindings, ns, "") || slices.ContainsFunc(t.names, func(x string) bool {
			return may("create", bindings, ns, x) && changes(bindings, ns, x)
		})
		for _, kind := range kinds {
			for _, name := range t.names {
				k := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name}
				if kind == "roles" {
					k = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: ns, Name: name}
				}
				o, exists := t.policy.Get(k)
				binds := may("bind", kind, ns, name)
				writes := fresh
				t.policy.ReferencingRole(k, func(at rbacindex.Key) bool {
					writes = writes || at.Namespace == ns && changes(bindings, ns, at.Name)
					return true
				})
				held := t.holds(&b, k)
				own := kind == "clusterroles" && ns == "" || kind == "roles" // where the role is written
				if own && exists && changes(kind, ns, name) && may("escalate", kind, ns, name) {
					for _, at := range held {
						all(at)
					}
				}
				makes := own && !exists && (may("create", kind, ns, "") && may("escalate", kind, ns, "") ||
					may("create", kind, ns, name) && changes(kind, ns, name) && may("escalate", kind, ns, name))
				if makes {
					for _, at := range held {
						all(at)
					}
					if fresh && binds {
						all(ns)
					}
				}
				if !binds || !writes {
					continue
				}
				if exists && admin(o) {
					all(ns)
					powerful = true
				}
				here = append(here, boundTo{k, ns})
			}
		}
		for _, r := range here {
			if !powerful && !slices.Contains(next.roles, r) {
				next.roles, more = append(next.roles, r), true
			}
		}
	}
	if more {
		slices.SortFunc(next.roles, func(x, y boundTo) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
		next.bound = fmt.Sprint(next.roles)
		out = append(out, edge{to: next, cost: twinStep})
	}
	return out
}

func admin(o any) bool {
	star := rbacindex.Attributes{ResourceRequest: true, Verb: "*", APIGroup: "*", Resource: "*"}
	r, ok := o.(*rbacv1.ClusterRole)
	var rules []rbacv1.PolicyRule
	if ok {
		rules = r.Rules
	} else {
		rules = o.(*rbacv1.Role).Rules
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return rbacindex.RuleAllows(&star, &r) })
}

// holds lists the scopes in which a role is held.
func (t *twin) holds(b *being, k rbacindex.Key) (out []string) {
	for _, r := range b.roles {
		if r.role == k {
			out = append(out, r.ns)
		}
	}
	for _, ns := range append([]string{""}, t.namespaces...) {
		t.policy.BindingsOf(b.user, strings.Split(b.groups, ","), ns, func(binding, role rbacindex.Key, _ rbacv1.Subject) bool {
			if role == k && binding.Namespace == ns {
				out = append(out, ns)
			}
			return true
		})
	}
	return out
}

// far returns the least cost of everybody that is reached, by name, of namespaces, and of "goal".
func (t *twin) far(from being) map[string]int {
	out := map[string]int{}
	dist := map[string]int{from.key(): 0}
	beings := map[string]being{from.key(): from}
	done := map[string]bool{}
	for {
		best, at := -1, ""
		for k, d := range dist {
			if !done[k] && (best < 0 || d < best) {
				best, at = d, k
			}
		}
		if best < 0 {
			return out
		}
		done[at] = true
		b := beings[at]
		name := b.user
		switch {
		case at == "goal":
			name = at
		case b.space != "":
			name = "everything in namespace " + b.space
		}
		if d, ok := out[name]; name != "" && (!ok || best < d) {
			out[name] = best
		}
		if at == "goal" {
			continue
		}
		for _, e := range t.out(b) {
			k := e.to.key()
			if e.goal {
				k = "goal"
			}
			if d, ok := dist[k]; !ok || best+e.cost < d {
				dist[k] = best + e.cost
				beings[k] = e.to
			}
		}
	}
}
