package rbacindex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// parseRules reads rules, one each: "verbs groups resources[ names]" or "verbs paths", lists
// with commas, "-" the empty group. A path begins with "/" or is "url:" and anything.
func parseRules(lines ...string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, line := range lines {
		f := strings.Fields(line)
		r := rbacv1.PolicyRule{Verbs: strings.Split(f[0], ",")}
		rest := f[1:]
		if last := rest[len(rest)-1]; strings.HasPrefix(last, "/") || strings.HasPrefix(last, "url:") {
			r.NonResourceURLs = strings.Split(strings.TrimPrefix(last, "url:"), ",")
			rest = rest[:len(rest)-1]
		}
		if len(rest) > 0 {
			r.APIGroups, r.Resources = strings.Split(strings.ReplaceAll(rest[0], "-", ""), ","), strings.Split(rest[1], ",")
		}
		if len(rest) > 2 {
			r.ResourceNames = strings.Split(rest[2], ",")
		}
		out = append(out, r)
	}
	return out
}

// uncovered returns all pieces that are not covered. Rules that tests take are small.
func uncovered(owner, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	c := rbacindex.Covers(owner, wanted, 1<<20, rbacindex.NewSteps(1<<30))
	if c.TooCostly || c.More || c.Covered() != (len(c.Uncovered) == 0) {
		panic(fmt.Sprintf("of rules that are small: %+v", c))
	}
	return c.Uncovered
}

// TestCoversConformance holds the cases Kubernetes tests its own comparison of rules by.
func TestCoversConformance(t *testing.T) {
	for _, c := range []struct {
		name                     string
		owner, wanted, uncovered []string
	}{
		{"the same", list("get v1 builds"), list("get v1 builds"), nil},
		{"any subresource of that name", list("get v1 */scale"), list("get v1 foo/scale"), nil},
		{"several rules for one", list("delete v1 deployments", "delete v1 builds", "update v1 builds,deployments"),
			list("delete,update v1 builds,deployments"), nil},
		{"several rules in several groups",
			list("delete g1 deployments", "delete g1 builds", "update g1 builds,deployments", "delete g2 deployments", "delete g2 builds",
				"update g2 builds,deployments"),
			list("delete,update g1,g2 builds,deployments"), nil},
		{"one rule for several", list("delete,update g1,g2 builds,deployments"),
			list("delete g1 deployments", "delete g1 builds", "update g1 builds,deployments", "delete g2 deployments", "delete g2 builds",
				"update g2 builds,deployments"), nil},
		{"one verb on one resource is missing", list("delete,update v1 builds,deployments", "delete v1 pods"),
			list("delete,update v1 builds,deployments,pods"), list("update v1 pods")},
		{"every group for several", list("get * roles"), list("get g1,g2 roles"), nil},
		{"a group for every one", list("get dummy roles"), list("get * roles"), list("get * roles")},
		{"every group for every one", list("get * roles"), list("get * roles"), nil},
		{"every verb for several", list("* v1 roles"), list("watch,list v1 roles"), nil},
		{"all verbs there are for every one", list("get,list,watch,create,update,delete,exec v1 roles"), list("* v1 roles"),
			list("* v1 roles")},
		{"every verb for every one", list("* v1 roles"), list("* v1 roles"), nil},
		{"every resource for one with a colon", list("get v1 *"), list("get v1 resourcegroup:deployments"), nil},
		{"resources for every one", list("get v1 roles,resourcegroup:deployments"), list("get v1 *"), list("get v1 *")},
		{"every resource for every one", list("get v1 *"), list("get v1 *"), nil},
		{"every name for several", list("get v1 pods"), list("get v1 pods foo,bar"), nil},
		{"names for every one", list("get v1 pods foo,bar"), list("get v1 pods"), list("get v1 pods")},
		{"a path", list("* /apis"), list("* /apis"), nil},
		{"every path", list("* url:*"), list("* /apis,/apis/v1,/"), nil},
		{"a prefix does not hold itself", list("* /apis/*"), list("get /apis,/apis/v1"), list("get /apis")},
		{"a prefix", list("* /apis/*"), list("get /apis/v1/foo,/apis/v1"), nil},
		{"both halves", list("get v1 builds /apis"), list("get v1 builds /apis"), nil},
		{"both halves for one", list("get v1 builds"), list("get v1 builds /apis"), list("get /apis")},

		{"names do not cover paths", list("get v1 builds a /apis"), list("get /apis"), list("get /apis")},
		{"a rule about nothing", nil, []string{}, nil},
		{"order and repetition stay", list("get - pods"), list("list,get,list - pods,nodes"), list("list - pods", "list - pods",
			"list - nodes", "get - nodes", "list - nodes")},
		{"verbs over several rules are not every verb", list("get - pods", "* - nodes"), list("* - pods,nodes"), list("* - pods")},
		{"one rule covers a piece whole", list("get - pods a", "list - pods"), list("get - pods"), list("get - pods")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, want := uncovered(parseRules(c.owner...), parseRules(c.wanted...)), parseRules(c.uncovered...)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("uncovered\n%v\nwant\n%v", got, want)
			}
		})
	}
	for _, c := range []struct {
		owner, wanted string
		covered       bool
	}{
		{"*", "", true}, {"*", "/", true}, {"*", "/api", true}, {"/*", "", false}, {"/*", "/", true}, {"/*", "/foo", true},
		{"/api", "/api", true}, {"/apis", "/api", false},
		{"/api/v1", "/api", false}, {"/api/v1", "/api/v1", true}, {"/api/*", "/api/v1", true}, {"/api/*", "/api", false},
		{"/api/*/*", "/api/v1", false}, {"/*/v1/*", "/api/v1", false},
		{"/a*", "/a*", true}, {"/a*", "/ab*", true}, {"/ab*", "/a*", false}, {"/a**", "/a", true},
	} {
		if got := uncovered(parseRules("get url:"+c.owner), parseRules("get url:"+c.wanted)); (len(got) == 0) != c.covered {
			t.Errorf("%q covers %q: %t, want %t", c.owner, c.wanted, len(got) == 0, c.covered)
		}
	}
}

// twinCovers is coverage as it is described, by comparing lists.
func twinCovers(owner, wanted []rbacv1.PolicyRule) (out []string) {
	has := func(list []string, v string) bool { return slices.Contains(list, "*") || slices.Contains(list, v) }
	missing := func(piece string, covered func(rbacv1.PolicyRule) bool) {
		if !slices.ContainsFunc(owner, covered) {
			out = append(out, piece)
		}
	}
	for _, w := range wanted {
		names := []*string{nil}
		if len(w.ResourceNames) > 0 {
			names = nil
			for i := range w.ResourceNames {
				names = append(names, &w.ResourceNames[i])
			}
		}
		for _, g := range w.APIGroups {
			for _, res := range w.Resources {
				for _, v := range w.Verbs {
					for _, n := range names {
						name := "every name"
						if n != nil {
							name = fmt.Sprintf("%q", *n)
						}
						missing(fmt.Sprintf("%q %q %q %s", v, g, res, name), func(o rbacv1.PolicyRule) bool {
							sub := "*/" + strings.TrimPrefix(strings.TrimLeft(res, strings.Split(res, "/")[0]), "/")
							if i := strings.Index(res, "/"); i >= 0 {
								sub = "*" + res[i:]
							}
							return has(o.Verbs, v) && has(o.APIGroups, g) && (has(o.Resources, res) || strings.Contains(res, "/") &&
								slices.Contains(o.Resources, sub)) &&
								(len(o.ResourceNames) == 0 || n != nil && slices.Contains(o.ResourceNames, *n))
						})
					}
				}
			}
		}
		for _, u := range w.NonResourceURLs {
			for _, v := range w.Verbs {
				missing(fmt.Sprintf("%q path %q", v, u), func(o rbacv1.PolicyRule) bool {
					return has(o.Verbs, v) && len(o.ResourceNames) == 0 && slices.ContainsFunc(o.NonResourceURLs, func(p string) bool {
						return p == u || strings.HasSuffix(p, "*") && strings.HasPrefix(u, strings.TrimRight(p, "*"))
					})
				})
			}
		}
	}
	return out
}

func TestCoversEqualsTwin(t *testing.T) {
	covered, not := 0, 0
	for seed := range policies(t, 3000) {
		g := newGenerator(seed + 1<<36)
		owner, wanted := g.narrow(), g.narrow()
		if g.IntN(2) == 0 { // mostly what it has, less some
			wanted = append(wanted[:min(1, len(wanted))], owner...)
			owner = owner[:g.IntN(len(owner)+1)]
		}
		var got []string
		for _, r := range uncovered(owner, wanted) {
			switch {
			case len(r.NonResourceURLs) == 1:
				got = append(got, fmt.Sprintf("%q path %q", r.Verbs[0], r.NonResourceURLs[0]))
			case len(r.ResourceNames) == 1:
				got = append(got, fmt.Sprintf("%q %q %q %q", r.Verbs[0], r.APIGroups[0], r.Resources[0], r.ResourceNames[0]))
			default:
				got = append(got, fmt.Sprintf("%q %q %q every name", r.Verbs[0], r.APIGroups[0], r.Resources[0]))
			}
		}
		want := twinCovers(owner, wanted)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d\nowner %v\nwanted %v\ngot  %s\nwant %s", seed, owner, wanted, got, want)
		}
		if len(want) == 0 {
			covered++
		} else {
			not++
		}
	}
	if covered < not/20 || not < covered/20 {
		t.Errorf("%d covered, %d not: the generator no longer exercises both", covered, not)
	}
}

// narrow are rules without those that come apart into millions of pieces.
func (g generator) narrow() []rbacv1.PolicyRule {
	return slices.DeleteFunc(g.rules(), func(r rbacv1.PolicyRule) bool { return len(r.Resources) > 50 || len(r.ResourceNames) > 50 })
}

// TestCoveredIsAllowed: nobody can do through covered rules what it could not do before.
func TestCoveredIsAllowed(t *testing.T) {
	tried := 0
	for seed := range policies(t, 2000) {
		g := newGenerator(seed + 1<<37)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		who := g.aimed(objects)
		var held []rbacv1.PolicyRule
		s.RulesFor(who.User, who.Groups, who.Namespace, func(_ rbacindex.Grant, r *rbacv1.PolicyRule) bool {
			held = append(held, *r)
			return true
		})
		wanted := g.narrow()
		for _, r := range held { // and parts of what it has
			cut := func(list []string) []string { return list[:g.IntN(len(list)+1)] }
			if len(r.ResourceNames) == 0 && len(r.Resources) < 50 && g.IntN(2) == 0 {
				wanted = []rbacv1.PolicyRule{{Verbs: cut(r.Verbs), APIGroups: cut(r.APIGroups), Resources: r.Resources,
					NonResourceURLs: r.NonResourceURLs, ResourceNames: some(g, 2, genNames...)}}
			}
		}
		if len(uncovered(held, wanted)) > 0 {
			continue
		}
		for range 60 {
			a := g.request()
			a.User, a.Groups, a.Namespace = who.User, who.Groups, who.Namespace
			if strings.Contains(a.Resource, "/") {
				continue // comes from no URL: a rule for */log does not allow a resource called pods/log
			}
			for i := range wanted {
				if rbacindex.RuleAllows(a, &wanted[i]) {
					tried++
					if !s.Authorize(a, nil).Allowed {
						t.Fatalf("seed %d: %+v is allowed by the covered %v alone", seed, *a, wanted[i])
					}
				}
			}
		}
	}
	if tried < 50 && !testing.Short() {
		t.Errorf("only %d requests tried it", tried)
	}
}
