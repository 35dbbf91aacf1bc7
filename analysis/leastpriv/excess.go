package leastpriv

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// clusterWide multiplies the weight of a grant that holds everywhere.
const clusterWide = 3

// dangerous is the weight from which an unused grant is taken away whatever that takes: Secrets, what runs commands, what gives rights.
const dangerous = 20

// unusual is the weight of writes that make something run; what weighs less is ordinary.
const unusual = 10

// weight returns how much harm an unused grant could do; docs/suggest.md has the table.
func weight(a *atom) int {
	if a.url != "" {
		switch {
		case a.url == "*" || a.url == "/*":
			return 20
		case strings.HasSuffix(a.url, "*"):
			return 3
		}
		return 1
	}
	w := 0
	switch {
	case a.resource == "*":
		w = 100
	case strings.HasPrefix(a.resource, "*/"):
		w = 50
	case a.verb == "*":
		w = 3 * max(danger(a.group, a.resource, "create"), danger(a.group, a.resource, "get"))
	default:
		w = danger(a.group, a.resource, a.verb)
	}
	if a.resource == "*" && a.verb == "*" {
		w *= 3
	}
	if a.group == "*" {
		w *= 2
	}
	return w
}

func danger(group, resource, verb string) int {
	read := verb == "get" || verb == "list" || verb == "watch"
	name, sub, _ := strings.Cut(resource, "/")
	switch {
	case verb == "bind" || verb == "escalate" || verb == "impersonate" || strings.HasPrefix(verb, "impersonate:"):
		return 50
	case group == "" && resource == "nodes/proxy":
		return 40
	case group == "" && name == "pods" && slices.Contains([]string{"exec", "attach", "portforward", "ephemeralcontainers", "proxy"}, sub),
		group == "" && resource == "serviceaccounts/token",
		verb == "approve" || verb == "sign" || verb == "attest",
		group == groupCertificates && resource == "certificatesigningrequests/approval":
		return 30
	case !read && (group == groupRBAC || group == "admissionregistration.k8s.io"):
		return 30
	case group == "" && name == "secrets":
		return 20
	case !read && verb != "delete" && verb != "deletecollection" &&
		slices.Contains([]string{"pods", "replicationcontrollers", "deployments", "daemonsets", "statefulsets", "replicasets", "jobs",
			"cronjobs"}, resource):
		return 10
	case verb == "deletecollection":
		return 5
	case !read:
		return 3
	}
	return 1
}

// usedIndex finds the needs a grant could have served.
type usedIndex struct {
	asked []rbacindex.Attributes
	of    []*need        // by the number of what is asked: whose it is
	by    map[atom][]int // without name
}

func indexNeeds(needs []need) *usedIndex {
	ix := &usedIndex{by: map[atom][]int{}}
	for i := range needs {
		n := &needs[i]
		ix.add(&n.attrs, n)
		if n.alternative && !n.escalates() {
			for _, a := range n.instead() {
				ix.add(&a, n)
			}
		}
	}
	return ix
}

// add takes in what is asked for a need.
func (ix *usedIndex) add(a *rbacindex.Attributes, n *need) {
	k := atom{verb: a.Verb, url: a.Path}
	if a.ResourceRequest {
		k = atom{verb: a.Verb, group: a.APIGroup, resource: ruleResource(a)}
	}
	ix.by[k] = append(ix.by[k], len(ix.asked))
	ix.asked, ix.of = append(ix.asked, *a), append(ix.of, n)
}

// allowedBy returns what of it a policy allows.
func (ix *usedIndex) allowedBy(policy *rbacindex.Snapshot) *usedIndex {
	out := &usedIndex{by: map[atom][]int{}}
	for i := range ix.asked {
		if policy.Authorize(&ix.asked[i], nil).Allowed {
			out.add(&ix.asked[i], ix.of[i])
		}
	}
	return out
}

// granted returns the weight of an atom granted in a scope, whether it is used or not.
func granted(a *atom, scope string) int {
	switch {
	case a.url != "" && scope != "":
		return 0 // no URL is in a namespace: the rule means nothing there
	case a.url != "" || scope != "":
		return weight(a)
	}
	return weight(a) * clusterWide
}

// excess returns the weight of what is unused of an atom granted in a scope, and whether anything
// of it was used. A wildcard is excess whatever was used of it; a cluster-wide grant that served
// single namespaces is excess except for one of them.
func (ix *usedIndex) excess(a *atom, scope string) (int, bool) {
	full := granted(a, scope)
	if full == 0 || a.wild() {
		return full, false
	}
	k := *a
	k.name, k.named = "", false
	rest := full
	for _, i := range ix.by[k] {
		q := &ix.asked[i]
		if a.named && q.Name != a.name || scope != "" && q.Namespace != scope {
			continue
		}
		if scope != "" || scopeOf(q) == "" {
			return 0, true
		}
		rest = min(rest, full-full/clusterWide)
	}
	return rest, rest < full
}

// servedBy counts the needs that one of the rules allows in a scope; false if that takes too
// many steps.
func (ix *usedIndex) servedBy(rules []rbacv1.PolicyRule, scope string, e *effort) (int, bool) {
	if !e.take(len(ix.asked) * lengths(rules) / 8) { // most rules differ in the verb already
		return 0, false
	}
	n := 0
	for i := range ix.asked {
		a := &ix.asked[i]
		if scope != "" && a.Namespace != scope {
			continue
		}
		for j := range rules {
			if rbacindex.RuleAllows(a, &rules[j]) {
				n++
				break
			}
		}
	}
	return n, true
}

// grantText formats an atom for people.
func grantText(a *atom) string {
	if a.url != "" {
		return a.verb + " " + a.url
	}
	s := a.verb + " " + resourceText(a.group, a.resource)
	if a.named {
		s += " " + a.name
	}
	return s
}

// maxListed bounds the grants listed per rule or binding.
const maxListed = 20

// unusedOf weighs one binding's rules: what was never used of them, and in held everything. The weight of a rule that is too large to weigh
// is a lower bound: that of one grant, which was never used or is given together with others.
func (ix *usedIndex) unusedOf(binding, role string, rules []rbacv1.PolicyRule, scope string, e *effort) (out []Unused, loose []scopedAtom,
	total, held int) {
	for i := range rules {
		u := Unused{Binding: binding, Role: role, Rule: i, Unused: []string{}, Grants: []string{}}
		if !e.weighs(&rules[i]) {
			u.TooLarge, u.Excess = true, 1
			total, held = total+1, held+1
			out = append(out, u)
			continue
		}
		for _, a := range atomsOf(&rules[i]) {
			held += granted(&a, scope)
			w, _ := ix.excess(&a, scope)
			if w == 0 {
				continue
			}
			u.Excess += w
			loose = append(loose, scopedAtom{a, scope})
			if len(u.Unused) < maxListed {
				u.Unused = append(u.Unused, grantText(&a))
			} else {
				u.More++
			}
		}
		if u.Excess == 0 {
			continue
		}
		served, known := ix.servedBy(rules[i:i+1], scope, e)
		u.Whole, u.TooLarge = known && served == 0, !known
		u.Grants = u.Unused
		total += u.Excess
		out = append(out, u)
	}
	return out, loose, total, held
}

// scopedAtom is an atom granted in a namespace, or everywhere.
type scopedAtom struct {
	atom  atom
	scope string
}
