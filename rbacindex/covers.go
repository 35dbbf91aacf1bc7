package rbacindex

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Covers returns what of the wanted rules the owner's rules do not cover, taken apart to one
// API group, resource, verb and name (or one path and verb) each, in the order of the wanted
// rules; nil when they cover it all. It decides as Covers of Kubernetes'
// component-helpers/auth/rbac/validation, on which the apiserver's check against escalation
// rests:
//
//   - one rule of the owner has to cover a piece whole;
//   - "*" as a verb, group or resource is covered by "*" only, never by a list of all there is;
//   - a piece for every name is covered by rules for every name only.
//
// The cost is that of the pieces, the product of a rule's lists, but for rules that one rule of
// the owner covers whole.
func Covers(owner, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range wanted {
		if coveredWhole(&wanted[i], owner) {
			continue
		}
		eachPiece(&wanted[i], func(p *piece) {
			if !p.coveredByOne(owner) {
				out = append(out, p.rule())
			}
		})
	}
	return out
}

// coveredWhole reports whether one rule of the owner covers every piece of a rule.
func coveredWhole(w *rbacv1.PolicyRule, owner []rbacv1.PolicyRule) bool {
	for i := range owner {
		if coversRule(&owner[i], w) {
			return true
		}
	}
	return false
}

func coversRule(r, w *rbacv1.PolicyRule) bool {
	for _, verb := range w.Verbs {
		if !verbMatches(r.Verbs, verb) {
			return false
		}
	}
	if len(r.ResourceNames) > 0 {
		if len(w.ResourceNames) == 0 || len(w.NonResourceURLs) > 0 {
			return false
		}
		for _, name := range w.ResourceNames {
			if !slices.Contains(r.ResourceNames, name) {
				return false
			}
		}
	}
	for _, path := range w.NonResourceURLs {
		if !pathMatches(r.NonResourceURLs, path) {
			return false
		}
	}
	for _, group := range w.APIGroups {
		if !groupMatches(r.APIGroups, group) {
			return false
		}
	}
	for _, resource := range w.Resources {
		if !coversResource(r.Resources, resource) {
			return false
		}
	}
	return true
}

// piece is the least a rule gives: a verb on a resource of an API group, of every name or of
// one; or a verb on a path.
type piece struct {
	verb            string
	group, resource string
	name            string
	named           bool
	path            string
	isPath          bool
}

// eachPiece visits the pieces of a rule, resources before paths. The piece is valid during the
// visit.
func eachPiece(r *rbacv1.PolicyRule, visit func(*piece)) {
	var p piece
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				p = piece{verb: verb, group: group, resource: resource}
				if len(r.ResourceNames) == 0 {
					visit(&p)
				}
				for _, name := range r.ResourceNames {
					p.name, p.named = name, true
					visit(&p)
				}
			}
		}
	}
	for _, path := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			p = piece{verb: verb, path: path, isPath: true}
			visit(&p)
		}
	}
}

func (p *piece) rule() rbacv1.PolicyRule {
	if p.isPath {
		return rbacv1.PolicyRule{Verbs: []string{p.verb}, NonResourceURLs: []string{p.path}}
	}
	r := rbacv1.PolicyRule{Verbs: []string{p.verb}, APIGroups: []string{p.group}, Resources: []string{p.resource}}
	if p.named {
		r.ResourceNames = []string{p.name}
	}
	return r
}

// coveredBy reports whether a rule covers the piece. A rule with resourceNames does not cover
// paths, even where it has some.
func (p *piece) coveredBy(r *rbacv1.PolicyRule) bool {
	if !verbMatches(r.Verbs, p.verb) {
		return false
	}
	if len(r.ResourceNames) > 0 && !(p.named && slices.Contains(r.ResourceNames, p.name)) {
		return false
	}
	if p.isPath {
		return pathMatches(r.NonResourceURLs, p.path)
	}
	if !groupMatches(r.APIGroups, p.group) {
		return false
	}
	return coversResource(r.Resources, p.resource)
}

func (p *piece) coveredByOne(rules []rbacv1.PolicyRule) bool {
	for i := range rules {
		if p.coveredBy(&rules[i]) {
			return true
		}
	}
	return false
}

// coversResource reports whether a rule's resources hold one, by name, by "*", or by that of
// its subresource for every resource.
func coversResource(have []string, resource string) bool {
	if slices.Contains(have, rbacv1.ResourceAll) || slices.Contains(have, resource) {
		return true
	}
	_, sub, ok := strings.Cut(resource, "/")
	if !ok {
		return false
	}
	for _, h := range have {
		if rest, all := strings.CutPrefix(h, "*/"); all && rest == sub {
			return true
		}
	}
	return false
}

// compactPieces puts pieces about one resource and name together, as the apiserver does
// before it lists what is missing. Paths stay apart.
func compactPieces(pieces []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type about struct {
		group, resource, name string
		named                 bool
	}
	at := map[about]int{}
	var out []rbacv1.PolicyRule
	for _, r := range pieces {
		if len(r.NonResourceURLs) > 0 {
			out = append(out, r)
			continue
		}
		k := about{group: r.APIGroups[0], resource: r.Resources[0], named: len(r.ResourceNames) > 0}
		if k.named {
			k.name = r.ResourceNames[0]
		}
		if i, ok := at[k]; ok {
			out[i].Verbs = append(out[i].Verbs, r.Verbs...)
			continue
		}
		at[k] = len(out)
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b rbacv1.PolicyRule) int { return strings.Compare(ruleText(&a), ruleText(&b)) })
	return slices.CompactFunc(out, func(a, b rbacv1.PolicyRule) bool { return ruleText(&a) == ruleText(&b) })
}

// ruleText writes a rule as the apiserver's messages have it, for example
//
//	{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}
func ruleText(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, p := range []struct {
		name string
		list []string
	}{{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs}, {"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs}} {
		if len(p.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", p.name, p.list))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
