package leastpriv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
)

// gets is a user to whom bindings of a role give it.
type gets struct {
	user   string
	used   *usedIndex
	base   *rbacindex.Snapshot // the policy without its own bindings
	scopes map[string]bool     // where: namespaces, or everywhere, which is ""
}

// whyOf says why each rule of a role stays that users get; reasons are those of verbs that none of them used.
func whyOf(role rbacindex.Key, rules []rbacv1.PolicyRule, users []gets, reasons map[pair]string) []RuleReason {
	out := make([]RuleReason, 0, len(rules))
	for i := range rules {
		r := RuleReason{Role: role.String(), Rule: i, Subjects: []string{}, Texts: []string{}}
		var on days
		used := map[pair]bool{}
		for u := range users {
			n := users[u].neededBy(&rules[i], used)
			if len(n) > 0 {
				r.Subjects = append(r.Subjects, users[u].user)
			}
			for _, n := range n {
				r.Requests += n.count
				if n.last.After(r.Last) {
					r.Last = n.last
				}
				for _, day := range n.days {
					on = on.and(day)
				}
			}
		}
		slices.Sort(r.Subjects)
		r.Days = len(on)
		r.Texts = append(r.Texts, r.usedText())
		r.Texts = append(r.Texts, unusedTexts(&rules[i], used, reasons)...)
		out = append(out, r)
	}
	return out
}

// neededBy returns what a rule allows of a user's needs, each once, and marks the pairs of the rule that they had.
func (g *gets) neededBy(rule *rbacv1.PolicyRule, used map[pair]bool) []*need {
	found := map[*need]bool{}
	var out []*need
	try := func(i int) {
		q := &g.used.asked[i]
		if !g.scopes[""] && (!q.ResourceRequest || !g.scopes[q.Namespace]) || !rbacindex.RuleAllows(q, rule) ||
			g.base.Authorize(q, nil).Allowed {
			return
		}
		used[pairOf(q, rule)] = true
		if n := g.used.of[i]; !found[n] {
			found[n] = true
			out = append(out, n)
		}
	}
	narrow := atomCount(rule) <= ruleAtoms && !slices.Contains(rule.Verbs, "*") &&
		!slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return strings.HasSuffix(url, "*") })
	if !narrow {
		for i := range g.used.asked {
			try(i)
		}
		return out
	}
	looked := map[atom]bool{} // names make several atoms of one
	for _, a := range atomsOf(rule) {
		a.name, a.named = "", false
		if looked[a] {
			continue
		}
		looked[a] = true
		for _, i := range g.used.by[a] {
			try(i)
		}
	}
	return out
}

// usedText says how much a rule was used.
func (r *RuleReason) usedText() string {
	if r.Requests == 0 {
		return "no request on record needs it"
	}
	who := r.Subjects[0]
	if more := len(r.Subjects) - 1; more > 0 {
		who += " and " + phrase.Number(more, "other")
	}
	return fmt.Sprintf("needed by %s of %s, the last at %s, on %s", phrase.Count(r.Requests, "request"), who,
		r.Last.UTC().Format(time.RFC3339), phrase.Number(r.Days, "day"))
}

// unusedTexts says why verbs of a rule stay that nobody needed: a line for each reason.
func unusedTexts(rule *rbacv1.PolicyRule, used map[pair]bool, reasons map[pair]string) (out []string) {
	if atomCount(rule) > ruleAtoms || slices.Contains(rule.Verbs, "*") {
		return nil
	}
	kept := map[string]map[string][]string{} // resources, by reason and verb
	for _, a := range atomsOf(rule) {
		p := a.pair()
		reason := reasons[p]
		if used[p] || reason == "" {
			continue
		}
		if kept[reason] == nil {
			kept[reason] = map[string][]string{}
		}
		if what := resourceText(p.group, p.resource); !slices.Contains(kept[reason][p.verb], what) {
			kept[reason][p.verb] = append(kept[reason][p.verb], what)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(kept)) {
		var verbs []string // that are kept of the same resources, together
		of := map[string][]string{}
		for verb, resources := range kept[reason] {
			text := strings.Join(resources, ", ")
			of[text] = append(of[text], verb)
		}
		for _, resources := range slices.Sorted(maps.Keys(of)) {
			slices.Sort(of[resources])
			verbs = append(verbs, strings.Join(of[resources], ", ")+" of "+resources)
		}
		out = append(out, fmt.Sprintf("kept as well: %s (%s)", strings.Join(verbs, "; "), reason))
	}
	return out
}

// getting returns those of some users to whom the bindings of a policy give a role, by name.
func getting(policy *rbacindex.Snapshot, role rbacindex.Key, of map[string]gets) []gets {
	users := map[string]*gets{}
	policy.ReferencingRole(role, func(b rbacindex.Key) bool {
		o, _ := policy.Get(b)
		subjects, _, _ := rbacindex.BindingOf(o)
		for i := range subjects {
			name := rbacindex.UserOf(&subjects[i], b.Namespace)
			u, ours := of[name]
			if !ours {
				continue
			}
			if users[name] == nil {
				u.scopes = map[string]bool{}
				users[name] = &u
			}
			users[name].scopes[b.Namespace] = true
		}
		return true
	})
	out := make([]gets, 0, len(users))
	for _, name := range slices.Sorted(maps.Keys(users)) {
		out = append(out, *users[name])
	}
	return out
}

// compareReasons is the order of roles and rules.
func compareReasons(a, b RuleReason) int {
	return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(a.Rule, b.Rule))
}
