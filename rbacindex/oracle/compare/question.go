package compare

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// Asked tells kinds of questions apart.
type Asked string

// The questions.
const (
	AskDecision Asked = "decision" // Request
	AskRules    Asked = "rules"    // of Request's user and groups in its namespace
	AskCovers   Asked = "covers"   // Owner, Wanted
	AskBind     Asked = "bind"     // Request's user and groups to Ref in its namespace
	AskWrite    Asked = "write"    // Request's user and groups write Object
)

// Question is what both sides are asked about a policy.
type Question struct {
	Asked         Asked
	Request       rbacindex.Attributes
	Owner, Wanted []rbacv1.PolicyRule
	Ref           rbacv1.RoleRef
	Object        any  // *rbacv1.Role or *rbacv1.ClusterRole
	Update        bool // the object is there already and is replaced
}

// question makes a question about a policy: mostly decisions, most of them aimed at what the
// policy grants.
func (g generator) question(p *Policy) *Question {
	q := &Question{Asked: AskDecision}
	switch n := g.IntN(100); {
	case n < 80:
		q.Request = g.request(p)
	case n < 86:
		q.Asked, q.Request = AskRules, g.request(p)
	case n < 92:
		q.Asked = AskCovers
		q.Owner, q.Wanted = g.coverage(p)
	case n < 96:
		q.Asked, q.Request, q.Ref = AskBind, g.request(p), g.roleRef()
		if q.Ref.Kind == "Role" && q.Request.Namespace == "" && g.IntN(4) > 0 {
			q.Request.Namespace = g.pick(namespaces)
		}
		if rules := p.rulesOf(q.Ref, q.Request.Namespace); len(g.narrow(rules)) < len(rules) {
			q.Asked = AskDecision // the real check would take it apart for milliseconds
		}
	default:
		q.Asked, q.Request = AskWrite, g.request(p)
		g.write(p, q)
	}
	if g.one(300) {
		q.Request.Groups = append(q.Request.Groups, masters)
	}
	return q
}

func (g generator) request(p *Policy) rbacindex.Attributes {
	a := g.anything()
	if g.IntN(8) > 0 {
		g.aim(p, &a)
	}
	if !a.ResourceRequest && g.IntN(10) > 0 {
		a.Namespace = "" // what URLs give; RBAC does not care
	}
	return a
}

func (g generator) anything() rbacindex.Attributes {
	a := rbacindex.Attributes{User: g.pick(users), Groups: g.some(4, groups), Verb: g.pick(verbs)}
	if g.one(100) {
		for range 60 {
			a.Groups = append(a.Groups, g.pick(groups)+g.pick(names))
		}
	}
	if g.one(4) {
		if a.Path = g.pick(paths); g.one(10) {
			a.Path = deepPath
		}
		a.Namespace = g.pick(namespaces)
		return a
	}
	a.ResourceRequest = true
	a.APIGroup, a.Resource, a.Subresource, a.Name = g.pick(apiGroups), g.pick(resourceNames), g.pick(subresources), g.pick(names)
	if g.IntN(4) > 0 {
		a.Namespace = g.pick(namespaces)
	}
	return a
}

// aim makes a request out of a rule and a subject that the policy has, leaving something of
// it alone now and then: most such requests are allowed, or nearly.
func (g generator) aim(p *Policy, a *rbacindex.Attributes) {
	var rules []rbacv1.PolicyRule
	var subjects []rbacv1.Subject
	var ns string
	for range 30 {
		if len(p.keys) == 0 {
			return
		}
		ref, at, who, ok := bindingOf(p.objects[p.keys[g.IntN(len(p.keys))]])
		if !ok || len(who) == 0 {
			continue
		}
		if rules = p.rulesOf(ref, at); len(rules) > 0 {
			subjects, ns = who, at
			break
		}
	}
	if len(subjects) == 0 {
		return
	}
	if ns != "" {
		a.Namespace = ns
	}
	s := subjects[g.IntN(len(subjects))]
	switch s.Kind {
	case rbacv1.GroupKind:
		a.Groups = append(a.Groups, s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace == "" {
			s.Namespace = a.Namespace
		}
		a.User = "system:serviceaccount:" + s.Namespace + ":" + s.Name
	default:
		a.User = s.Name
	}
	g.fit(a, &rules[g.IntN(len(rules))])
}

// fit makes a request what a rule is about, mostly.
func (g generator) fit(a *rbacindex.Attributes, r *rbacv1.PolicyRule) {
	set := func(dst *string, from []string) {
		if len(from) > 0 && g.IntN(20) > 0 {
			if v := g.pick(from); v != "*" || g.one(4) {
				*dst = v
			}
		}
	}
	set(&a.Verb, r.Verbs)
	if a.ResourceRequest = len(r.Resources) > 0 && (len(r.NonResourceURLs) == 0 || g.one(2)); !a.ResourceRequest {
		set(&a.Path, r.NonResourceURLs)
		if g.one(2) {
			a.Path = strings.TrimRight(a.Path, "*") + g.pick([]string{"", "x", "/x"})
		}
		return
	}
	set(&a.APIGroup, r.APIGroups)
	set(&a.Name, r.ResourceNames)
	var res string
	if set(&res, r.Resources); res == "" {
		return
	}
	a.Resource = res
	head, tail, ok := strings.Cut(res, "/")
	switch {
	case ok && g.IntN(8) > 0:
		if a.Resource, a.Subresource = head, tail; head == "*" {
			a.Resource = g.pick(resourceNames)
		}
	case g.IntN(6) > 0:
		a.Subresource = ""
	}
}

// coverage makes two lists of rules, of which the one often has much of the other.
func (g generator) coverage(p *Policy) (owner, wanted []rbacv1.PolicyRule) {
	owner, wanted = g.narrow(g.rules(4)), g.narrow(g.rules(3))
	switch g.IntN(5) {
	case 0:
		wanted = append(wanted[:min(1, len(wanted))], owner...)
		owner = owner[:g.IntN(len(owner)+1)]
	case 4:
		for _, r := range wanted {
			owner = g.halves(owner, r, 1+g.IntN(5))
		}
		if len(owner) > 0 && g.one(3) {
			i := g.IntN(len(owner))
			owner = slices.Delete(owner, i, i+1)
		}
	case 1:
		for _, r := range owner {
			wanted = append(wanted, g.part(r))
		}
	}
	return owner, wanted
}

// halves cuts a rule in two along one of its lists, and the halves again, so that they cover it
// together and none does by itself.
func (g generator) halves(out []rbacv1.PolicyRule, r rbacv1.PolicyRule, depth int) []rbacv1.PolicyRule {
	a, b := r, r
	var cut, rest *[]string
	switch g.IntN(4) {
	case 0:
		cut, rest = &a.Verbs, &b.Verbs
	case 1:
		cut, rest = &a.APIGroups, &b.APIGroups
	case 2:
		cut, rest = &a.Resources, &b.Resources
	default:
		cut, rest = &a.ResourceNames, &b.ResourceNames
	}
	if depth == 0 || len(*cut) < 2 {
		return append(out, r)
	}
	at := 1 + g.IntN(len(*cut)-1)
	*cut, *rest = (*cut)[:at], (*rest)[at:]
	return g.halves(g.halves(out, a, depth-1), b, depth-1)
}

// part is some of a rule.
func (g generator) part(r rbacv1.PolicyRule) rbacv1.PolicyRule {
	cut := func(list []string) []string {
		if len(list) == 0 {
			return nil
		}
		return list[g.IntN(len(list)):]
	}
	r.Verbs, r.APIGroups, r.Resources, r.NonResourceURLs = cut(r.Verbs), cut(r.APIGroups), cut(r.Resources), cut(r.NonResourceURLs)
	for i, res := range r.Resources {
		if sub, ok := strings.CutPrefix(res, "*/"); ok && g.one(2) {
			r.Resources = slices.Clone(r.Resources)
			r.Resources[i] = g.pick(resourceNames) + "/" + sub
		}
	}
	if len(r.ResourceNames) > 0 {
		r.ResourceNames = cut(r.ResourceNames)
	} else if g.one(2) {
		r.ResourceNames = g.some(2, names)
	}
	return r
}

// narrow leaves out rules that come apart into thousands of pieces.
func (g generator) narrow(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	out := rules[:0:0]
	for _, r := range rules {
		if pieces(&r) <= 1000 {
			out = append(out, r)
		}
	}
	return out
}

// pieces returns the number of pieces a rule comes apart into.
func pieces(r *rbacv1.PolicyRule) int {
	return len(r.Verbs) * (len(r.APIGroups)*len(r.Resources)*max(1, len(r.ResourceNames)) + len(r.NonResourceURLs))
}

// write makes the role that is to be written: often of rules somebody holds.
func (g generator) write(p *Policy, q *Question) {
	k := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: g.pick(roleNames)}
	if g.one(2) {
		k = rbacindex.Key{Kind: rbacindex.KindRole, Namespace: g.pick(namespaces), Name: k.Name}
	}
	if len(p.keys) > 0 && g.one(2) {
		for range 4 {
			if at := p.keys[g.IntN(len(p.keys))]; at.Kind == rbacindex.KindRole || at.Kind == rbacindex.KindClusterRole {
				k = at
				break
			}
		}
	}
	rules := g.narrow(g.rules(2))
	if len(p.keys) > 0 && g.IntN(3) > 0 {
		if held := g.narrow(rulesIn(p.objects[p.keys[g.IntN(len(p.keys))]])); len(held) > 0 {
			rules = append(rules[:0:0], g.part(held[g.IntN(len(held))]))
		}
	}
	_, exists := p.objects[k]
	q.Update = exists && k.Name != "" && g.one(2) // without a name the URL is that of a create
	// Without the label an update might only touch what the apiserver does not check.
	meta := metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, Labels: map[string]string{"new": "content"}}
	if k.Kind == rbacindex.KindRole {
		q.Object = &rbacv1.Role{ObjectMeta: meta, Rules: rules}
		return
	}
	r := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	if g.one(3) {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	}
	q.Object = r
}
