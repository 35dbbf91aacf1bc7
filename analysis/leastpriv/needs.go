package leastpriv

import (
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// need is one access that a subject was allowed and must keep, or was refused.
type need struct {
	key   accessKey
	attrs rbacindex.Attributes
	count int64
	first time.Time // when it was asked for the first time
	last  time.Time // and the last
	days  days      // on which it was asked for
	why   string
	// alternative: holding all of rules, in the namespace of attrs, also suffices.
	alternative bool
	rules       []rbacv1.PolicyRule
	// covered: at that moment the subject held the rules, not only the verb.
	covered bool
}

// allowed asks one policy.
func (n *need) allowed(s *rbacindex.Snapshot) bool {
	var buf [4]rbacindex.Grant
	if s.Authorize(&n.attrs, buf[:0]).Allowed {
		return true
	}
	return n.alternative && holds(s, n.attrs.User, n.attrs.Groups, n.attrs.Namespace, n.rules)
}

// String returns the need in one line, for people.
func (n *need) String() string {
	if n.why == "" {
		return describe(&n.attrs)
	}
	return describe(&n.attrs) + " (" + n.why + ")"
}

func describe(a *rbacindex.Attributes) string {
	if !a.ResourceRequest {
		return a.Verb + " " + a.Path
	}
	s := a.Verb + " " + resourceText(a.APIGroup, ruleResource(a))
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Namespace != "" {
		s += " in " + a.Namespace
	}
	return s
}

func resourceText(group, resource string) string {
	if group == "" {
		return resource
	}
	name, sub, found := strings.Cut(resource, "/")
	if !found {
		return name + "." + group
	}
	return name + "." + group + "/" + sub
}

// ruleResource returns the resource as rules write it.
func ruleResource(a *rbacindex.Attributes) string {
	if a.Subresource == "" {
		return a.Resource
	}
	return a.Resource + "/" + a.Subresource
}

// history is everything that is asked of a final state.
type history struct {
	needs, refusals []need
	leftOut         []need // cannot be written without a wildcard
	before          map[accessKey]bool
}

// historyOf resolves what a subject did, with the candidates among hidden checks as they were
// answered, and the alternatives to each by the policy at that time.
func historyOf(u *usage, st *state.State) *history {
	h := &history{before: map[accessKey]bool{}}
	for _, k := range slices.SortedFunc(maps.Keys(u.allowed), compareKeys) {
		a := u.allowed[k]
		h.need(need{key: k, attrs: k.attributes(u), count: a.count, first: a.first, last: a.last, days: a.days, why: a.why})
	}
	for _, k := range slices.SortedFunc(maps.Keys(u.refused), compareKeys) {
		h.refusals = append(h.refusals, need{key: k, attrs: k.attributes(u), count: u.refused[k].count})
	}
	for _, id := range slices.Sorted(maps.Keys(u.hidden)) {
		cand := u.hidden[id]
		n := need{key: cand.key, attrs: cand.key.attributes(u), count: cand.count, first: cand.first, last: cand.at,
			days: cand.days, why: cand.why}
		switch n.attrs.Verb {
		case "bind":
			n.rules, n.alternative = rulesOf(st.RBAC(cand.at).RBAC, roleRefOf(&n.attrs), n.attrs.Namespace)
		case "escalate":
			n.rules, n.alternative = cand.rules, true
		}
		n.covered = n.alternative && cand.covered
		switch {
		case cand.held && !cand.refused:
			h.need(n)
		case !cand.held && cand.refused:
			h.refusals = append(h.refusals, n)
		}
	}
	return h
}

func (h *history) need(n need) {
	h.before[anyGroups(n.key)] = true
	if !n.alternative && !expressible(&n.attrs) {
		h.leftOut = append(h.leftOut, n)
		return
	}
	h.needs = append(h.needs, n)
}

// heldIn returns the history without what a policy does not allow.
func (h *history) heldIn(policy *rbacindex.Snapshot) *history {
	out := *h
	out.needs = slices.DeleteFunc(slices.Clone(h.needs), func(n need) bool { return !n.allowed(policy) })
	return &out
}

func anyGroups(k accessKey) accessKey {
	k.groups = 0
	return k
}

// expressible reports whether a rule can allow exactly this request. A verb, resource or path
// that reads as a wildcard in a rule can only be allowed together with everything it
// matches.
func expressible(a *rbacindex.Attributes) bool {
	if a.Verb == "" || a.Verb == "*" {
		return false
	}
	if !a.ResourceRequest {
		return strings.HasPrefix(a.Path, "/") && !strings.HasSuffix(a.Path, "*")
	}
	if a.Resource == "" || a.Resource == "*" || a.APIGroup == "*" {
		return false
	}
	scope := scopeOf(a)
	return scope == "" || len(validation.NameIsDNSLabel(scope, false)) == 0
}

// scopeOf returns the namespace a grant has to be made in, "" for the whole cluster. Access to a
// namespace itself is granted by name in a ClusterRole: a Role in the namespace is deleted with it.
func scopeOf(a *rbacindex.Attributes) string {
	if !a.ResourceRequest || a.APIGroup == "" && a.Resource == "namespaces" {
		return ""
	}
	return a.Namespace
}

// roleRefOf returns the role that a right to bind is about.
func roleRefOf(a *rbacindex.Attributes) *rbacv1.RoleRef {
	ref := &rbacv1.RoleRef{APIGroup: a.APIGroup, Kind: "ClusterRole", Name: a.Name}
	if a.Resource == "roles" {
		ref.Kind = "Role"
	}
	return ref
}

// rulesOf returns the rules of the role a binding names; false if it does not exist.
func rulesOf(s *rbacindex.Snapshot, ref *rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	role, _ := s.Get(rbacindex.RoleKey(ref, namespace))
	return rbacindex.RulesOf(role)
}

// instead returns what to grant for a check that several rights satisfy. For a role: its rules, if
// the writer held them all and none is a wildcard, else escalate: rules it only passed on would be
// new to it. For a binding: bind on that role by name, which gives its holder no more than the
// role. A role with too many rights to list takes escalate as well.
func (n *need) instead() []rbacindex.Attributes {
	if n.attrs.Verb != "escalate" || !n.covered {
		return []rbacindex.Attributes{n.attrs}
	}
	return n.written()
}

// written returns what the rules of a role grant, as it is asked for; the need itself if that cannot be listed.
func (n *need) written() []rbacindex.Attributes {
	var out []rbacindex.Attributes
	atoms := 0
	for i := range n.rules {
		if atoms += atomCount(&n.rules[i]); atoms > ruleAtoms {
			return []rbacindex.Attributes{n.attrs}
		}
	}
	for i := range n.rules {
		for _, a := range atomsOf(&n.rules[i]) {
			attrs := rbacindex.Attributes{User: n.attrs.User, Groups: n.attrs.Groups, Verb: a.verb, Path: a.url}
			if a.url == "" {
				attrs.ResourceRequest, attrs.Namespace, attrs.APIGroup, attrs.Name = true, n.attrs.Namespace, a.group, a.name
				attrs.Resource, attrs.Subresource, _ = strings.Cut(a.resource, "/")
			}
			if a.wild() || !expressible(&attrs) {
				return []rbacindex.Attributes{n.attrs}
			}
			out = append(out, attrs)
		}
	}
	return out
}

// escalates reports whether instead is the verb escalate itself.
func (n *need) escalates() bool {
	one := n.instead()
	return len(one) == 1 && one[0].Verb == "escalate" && one[0].Resource == n.attrs.Resource
}

// roleWrites returns what to grant for the roles that a subject wrote.
func roleWrites(needs []need) []rbacindex.Attributes {
	var out []rbacindex.Attributes
	for i := range needs {
		if n := &needs[i]; n.alternative && n.attrs.Verb == "escalate" {
			out = append(out, n.instead()...)
		}
	}
	return out
}
