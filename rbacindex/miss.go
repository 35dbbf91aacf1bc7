package rbacindex

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Miss is what would have allowed a request that RBAC does not allow.
type Miss struct {
	// Rule is the narrowest rule that allows the request.
	Rule rbacv1.PolicyRule
	// Roles are existing roles that allow it and can be bound where the request is, the
	// narrowest first.
	Roles []Offer
	// Bindings are existing bindings that allow it to others where the request is: naming the
	// subject in one suffices. The narrowest role first.
	Bindings []Offer
	// Almost are rules the subject holds that lack one thing, in the order of Lack.
	Almost []Almost
}

// Offer is an existing role, or a binding to one, that would allow the request.
type Offer struct {
	Key  Key // of the role, or of the binding
	Role Key
	Rule int // index of the first of the role's rules that allows it
	// Width is how much else the role gives: the verbs on resources and paths it names, a wildcard
	// counting as a thousand. It serves only to sort offers.
	Width int
}

// Lack is the one thing a rule lacks.
type Lack uint8

// What a rule may lack, the likeliest slip first.
const (
	LackVerb        Lack = iota + 1
	LackName             // it is for other names
	LackSubresource      // it is for the resource itself, or for another subresource
	LackGroup            // it is for the resource in another API group
	LackNamespace        // it holds in another namespace
)

var lacks = [...]string{"unknown", "verb", "name", "subresource", "group", "namespace"} //nolint:gochecknoglobals // constant table

// String returns the lack in one word.
func (l Lack) String() string { return lacks[l] }

// Almost is a rule that lacks one thing to allow the request.
type Almost struct {
	Grant
	Lack Lack
}

// NearestMiss returns what would have allowed a request, with at most limit entries in each list.
// For an allowed request it returns what else would allow it.
func (s *Snapshot) NearestMiss(a *Attributes, limit int) Miss {
	req := *a
	if !req.ResourceRequest {
		req.Namespace = ""
	}
	m := Miss{Rule: leastRule(&req)}
	var q query
	q.init(s.family.hasher, &req)
	s.allowing(&q, req.Namespace, false, func(r *role, rule int32) {
		k := r.key()
		m.Roles = append(m.Roles, Offer{Key: k, Role: k, Rule: int(rule), Width: width(r.rules())})
		s.bound(r, req.Namespace, false, rule, func(b *binding, rule int32) {
			m.Bindings = append(m.Bindings, Offer{Key: b.key(), Role: k, Rule: int(rule), Width: m.Roles[len(m.Roles)-1].Width})
		})
	})
	m.Roles, m.Bindings = narrowest(m.Roles, limit), narrowest(m.Bindings, limit)
	m.Almost = s.almost(&req, limit)
	return m
}

func (r *role) key() Key {
	if r.cr != nil {
		return Key{Kind: KindClusterRole, Name: r.cr.Name}
	}
	return Key{Kind: KindRole, Namespace: r.r.Namespace, Name: r.r.Name}
}

// leastRule returns the narrowest rule that allows a request.
func leastRule(a *Attributes) rbacv1.PolicyRule {
	if !a.ResourceRequest {
		return rbacv1.PolicyRule{Verbs: []string{a.Verb}, NonResourceURLs: []string{a.Path}}
	}
	r := rbacv1.PolicyRule{Verbs: []string{a.Verb}, APIGroups: []string{a.APIGroup}, Resources: []string{a.Resource}}
	if a.Subresource != "" {
		r.Resources[0] += "/" + a.Subresource
	}
	if a.Name != "" {
		r.ResourceNames = []string{a.Name}
	}
	return r
}

// width adds up what rules name.
func width(rules []rbacv1.PolicyRule) int {
	count := func(list []string) int {
		n := 0
		for _, v := range list {
			if strings.Contains(v, "*") {
				n += 1000
			} else {
				n++
			}
		}
		return n
	}
	n := 0
	for i := range rules {
		r := &rules[i]
		names := count(r.ResourceNames)
		if names == 0 {
			names = 100 // every name is more than some, and less than every resource
		}
		n += count(r.Verbs) * (count(r.APIGroups)*count(r.Resources)*names + count(r.NonResourceURLs))
	}
	return n
}

func narrowest(list []Offer, limit int) []Offer {
	slices.SortFunc(list, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Width, b.Width), a.Key.Compare(b.Key))
	})
	return slices.Clip(list[:min(limit, len(list))])
}

// almost finds the subject's rules that lack one thing.
func (s *Snapshot) almost(a *Attributes, limit int) []Almost {
	var out []Almost
	s.RulesFor(a.User, a.Groups, a.Namespace, func(g Grant, r *rbacv1.PolicyRule) bool {
		if lack := lackOf(a, r); lack != 0 {
			out = append(out, Almost{g, lack})
		}
		return true
	})
	if a.ResourceRequest {
		out = s.elsewhere(a, out, limit)
	}
	slices.SortStableFunc(out, func(x, y Almost) int { return cmp.Compare(x.Lack, y.Lack) })
	return slices.Clip(out[:min(limit, len(out))])
}

// elsewhere adds grants of the same request in other namespaces, by namespace.
func (s *Snapshot) elsewhere(a *Attributes, out []Almost, limit int) []Almost {
	sub := s.subject(a.User, a.Groups)
	seen := map[string]bool{a.Namespace: true}
	var spaces []string
	for _, p := range sub.spaces {
		p.spaces.all(func(sp *space) bool {
			if !seen[sp.ns] {
				seen[sp.ns] = true
				spaces = append(spaces, sp.ns)
			}
			return true
		})
	}
	slices.Sort(spaces)
	there := *a
	for _, there.Namespace = range spaces {
		n := 0
		for _, g := range s.authorize(sub, &there, nil).Grants {
			if g.BindingKind() == KindRoleBinding {
				out = append(out, Almost{g, LackNamespace})
				n++
			}
		}
		if limit -= n; limit <= 0 {
			break
		}
	}
	return out
}

// lackOf returns what a rule lacks to allow a request, 0 if that is nothing or more than one thing.
func lackOf(a *Attributes, r *rbacv1.PolicyRule) Lack {
	verb := verbMatches(r.Verbs, a.Verb)
	if !a.ResourceRequest {
		if !verb && pathMatches(r.NonResourceURLs, a.Path) {
			return LackVerb
		}
		return 0
	}
	var found Lack
	lacks := 0
	for _, c := range []struct {
		ok   bool
		lack Lack
	}{
		{verb, LackVerb}, {nameMatches(r.ResourceNames, a.Name), LackName}, {groupMatches(r.APIGroups, a.APIGroup), LackGroup},
		{resourceMatches(r.Resources, a.Resource, a.Subresource), LackSubresource},
	} {
		if !c.ok {
			found = c.lack
			lacks++
		}
	}
	if lacks != 1 || len(r.Verbs) == 0 || len(r.APIGroups) == 0 {
		return 0
	}
	if found == LackSubresource && !slices.ContainsFunc(r.Resources, func(res string) bool {
		head, _, _ := strings.Cut(res, "/")
		return head == a.Resource
	}) {
		return 0 // another resource altogether
	}
	return found
}
