package rbacindex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// heldIn returns the scope of a namespace, an empty one when there is none.
func heldIn(all []rbacindex.Held, ns string) rbacindex.Held {
	for _, h := range all {
		if h.Namespace == ns {
			return h
		}
	}
	return rbacindex.Held{Namespace: ns}
}

// canDecides answers a request from merged rules alone: every binding whose share of an
// allowing rule has the verb.
func canDecides(all []rbacindex.Held, a *rbacindex.Attributes) (bindings []string, err error) {
	scopes := []string{""}
	if a.Namespace != "" {
		scopes = append(scopes, a.Namespace)
	}
	for _, ns := range scopes {
		for _, r := range heldIn(all, ns).Rules {
			if !rbacindex.RuleAllows(a, &r.PolicyRule) {
				continue
			}
			found := false
			for _, by := range r.By {
				verbs := by.Verbs
				if verbs == nil {
					verbs = r.Verbs
				}
				if slices.Contains(verbs, "*") || slices.Contains(verbs, a.Verb) {
					found = true
					if b := by.BindingKey().String(); !slices.Contains(bindings, b) {
						bindings = append(bindings, b)
					}
				}
			}
			if !found {
				return nil, fmt.Errorf("nobody gives verb %q of %+v", a.Verb, r)
			}
		}
	}
	slices.Sort(bindings)
	return bindings, nil
}

// checkHeld fails on what canDecides does not see: order, empty lists, verbs given by more
// than their grant, and rules that could have been one.
func checkHeld(t *testing.T, s *rbacindex.Snapshot, all []rbacindex.Held) {
	t.Helper()
	if len(all) == 0 || all[0].Namespace != "" {
		t.Fatalf("the first scope is not the cluster: %+v", all)
	}
	for i, h := range all {
		if i > 0 && (h.Namespace <= all[i-1].Namespace || len(h.Rules)+len(h.Missing) == 0) {
			t.Errorf("scope %q after %q has %d rules", h.Namespace, all[i-1].Namespace, len(h.Rules))
		}
		seen := map[string]bool{}
		for _, r := range h.Rules {
			if len(r.Verbs) == 0 || (len(r.APIGroups)*len(r.Resources) == 0) != (len(r.NonResourceURLs) > 0) || len(r.By) == 0 {
				t.Errorf("rule %+v", r)
			}
			about := fmt.Sprintf("%q %q %q %q", r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs)
			if seen[about] && len(r.Resources) < 70 && len(r.ResourceNames) < 1000 { // those too wide to take apart stay
				t.Errorf("two rules about %s", about)
			}
			seen[about] = true
			for _, by := range r.By {
				if by.BindingNamespace() != h.Namespace {
					t.Errorf("%s in scope %q", by.Reason(), h.Namespace)
				}
				checkShare(t, s, r, by)
			}
		}
	}
}

// checkShare holds a share of a merged rule against the rule of the role it names.
func checkShare(t *testing.T, s *rbacindex.Snapshot, r rbacindex.HeldRule, by rbacindex.Source) {
	t.Helper()
	o, ok := s.Get(by.RoleKey())
	if !ok {
		t.Fatalf("no role %s", by.RoleKey())
	}
	var of rbacv1.PolicyRule
	switch role := o.(type) {
	case *rbacv1.Role:
		of = role.Rules[by.Rule()]
	case *rbacv1.ClusterRole:
		of = role.Rules[by.Rule()]
	}
	verbs := by.Verbs
	if verbs == nil {
		verbs = r.Verbs
	} else if slices.Equal(verbs, r.Verbs) {
		t.Errorf("all verbs named: %q", verbs)
	}
	within := func(what string, list, of []string) {
		for _, v := range list {
			if !slices.Contains(of, v) {
				t.Errorf("%s: %s %q is not in rule %d: %+v", by.Reason(), what, v, by.Rule(), of)
			}
		}
	}
	within("verb", verbs, of.Verbs)
	within("group", r.APIGroups, of.APIGroups)
	within("resource", r.Resources, of.Resources)
	within("name", r.ResourceNames, of.ResourceNames)
	within("path", r.NonResourceURLs, of.NonResourceURLs)
	if len(r.Resources) > 0 && len(r.ResourceNames) == 0 && len(of.ResourceNames) > 0 {
		t.Errorf("%s: the rule names %q", by.Reason(), of.ResourceNames)
	}
}

func TestCanDecidesAsAuthorize(t *testing.T) {
	t.Parallel()
	allowed := 0
	for seed := range policies(t, 500) {
		g := newGenerator(seed + 1<<35)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		tw := newTwin(objects...)
		for range 4 {
			who := g.aimed(objects)
			can := s.Can(who.User, who.Groups)
			checkHeld(t, s, can)
			for range 12 {
				a := g.aimed(objects)
				a.User, a.Groups = who.User, who.Groups
				if !a.ResourceRequest {
					a.Namespace = ""
				}
				var want []string
				for _, gr := range s.Authorize(a, nil).Grants {
					want = append(want, gr.BindingKey().String())
				}
				slices.Sort(want)
				got, err := canDecides(can, a)
				if err != nil || !slices.Equal(got, want) || len(want) > 0 != tw.authorize(a).allowed {
					t.Fatalf("seed %d request %+v: %v\nrules say %q\nAuthorize %q\n%+v", seed, *a, err, got, want, can)
				}
				if len(want) > 0 {
					allowed++
				}
			}
			for _, h := range can {
				a := rbacindex.Attributes{User: who.User, Groups: who.Groups, Namespace: h.Namespace, Verb: "x", ResourceRequest: true}
				missing := s.Authorize(&a, nil).Missing
				for _, k := range h.Missing {
					if !slices.Contains(missing, k) {
						t.Fatalf("seed %d: %s is not missing in %q: %v", seed, k, h.Namespace, missing)
					}
				}
				for _, k := range missing {
					if !slices.Contains(h.Missing, k) && !slices.Contains(can[0].Missing, k) {
						t.Fatalf("seed %d: missing %s is not named in %q", seed, k, h.Namespace)
					}
				}
			}
		}
	}
	if allowed < 500 && !testing.Short() {
		t.Errorf("only %d requests were allowed", allowed)
	}
}

// held prints scopes the way the tables below are written.
func held(all []rbacindex.Held) string {
	var b strings.Builder
	for _, h := range all {
		fmt.Fprintf(&b, "%q\n", h.Namespace)
		for _, r := range h.Rules {
			what := strings.Join(r.NonResourceURLs, ",")
			if len(r.Resources) > 0 {
				what = strings.Join(r.Resources, ",") + "." + strings.Join(r.APIGroups, ",")
			}
			fmt.Fprintf(&b, "  %s", what)
			if len(r.ResourceNames) > 0 {
				fmt.Fprintf(&b, "/%s", strings.Join(r.ResourceNames, ","))
			}
			fmt.Fprintf(&b, " [%s]", strings.Join(r.Verbs, " "))
			for _, by := range r.By {
				fmt.Fprintf(&b, " %s#%d", by.Binding(), by.Rule())
				if by.Verbs != nil {
					fmt.Fprintf(&b, "(%s)", strings.Join(by.Verbs, " "))
				}
			}
			b.WriteString("\n")
		}
		for _, k := range h.Missing {
			fmt.Fprintf(&b, "  missing %s\n", k)
		}
	}
	return b.String()
}

func TestCan(t *testing.T) {
	core := list("")
	for _, c := range []struct {
		name    string
		objects []any
		user    string
		groups  []string
		want    string
	}{
		{name: "nobody", user: "x", want: "\"\"\n"},
		{
			name: "verbs by several grants, each with its own",
			objects: []any{
				clusterRole("r", rule(list("list", "get"), core, list("pods"))), clusterRole("w", rule(list("watch", "get", "approve"),
					core, list("pods"))),
				clusterBinding("a", "ClusterRole", "r", user("u")), clusterBinding("b", "ClusterRole", "w", group("g")),
			},
			user: "u", groups: list("g", "g"),
			want: "\"\"\n  pods. [get list watch approve] a#0(get list) b#0(get watch approve)\n",
		},
		{
			name: "resources and groups that are given alike",
			objects: []any{
				clusterRole("r", rule(list("get"), list("extensions", "apps"), list("deployments", "daemonsets")), rule(list("get"), core,
					list("pods")), rule(list("get"), core, list("pods/log"))),
				clusterBinding("a", "ClusterRole", "r", user("u")),
			},
			user: "u",
			want: "\"\"\n  pods. [get] a#1\n  pods/log. [get] a#2\n  daemonsets,deployments.apps,extensions [get] a#0\n",
		},
		{
			name: "every verb takes in the others",
			objects: []any{
				clusterRole("r", rule(list("get"), core, list("pods"))), clusterRole("all", rule(list("get", "*"), core, list("pods"))),
				clusterBinding("a", "ClusterRole", "all", user("u")), clusterBinding("b", "ClusterRole", "r", user("u")),
			},
			user: "u",
			want: "\"\"\n  pods. [*] a#0 b#0(get)\n",
		},
		{
			name: "names apart from every name",
			objects: []any{
				clusterRole("r", rule(list("get"), core, list("secrets"), "b", "a", "a"), rule(list("list"), core, list("secrets"))),
				clusterBinding("a", "ClusterRole", "r", user("u")),
			},
			user: "u",
			want: "\"\"\n  secrets. [list] a#1\n  secrets./a,b [get] a#0\n",
		},
		{
			name: "both halves of a rule, and what is about nothing",
			objects: []any{
				clusterRole("r", rbacv1.PolicyRule{Verbs: list("get"), APIGroups: core, Resources: list("nodes"),
					NonResourceURLs: list("/healthz", "/api/*")},
					rbacv1.PolicyRule{Verbs: list("get"), Resources: list("pods")}, rule(nil, core, list("pods"))),
				clusterBinding("a", "ClusterRole", "r", user("u")),
				namespaceBinding("n", "b", "ClusterRole", "r", user("u")),
			},
			user: "u",
			want: "\"\"\n  nodes. [get] a#0\n  /api/*,/healthz [get] a#0\n\"n\"\n  nodes. [get] b#0\n",
		},
		{
			name: "a service account by itself, roles that are missing, and an unknown kind",
			objects: []any{
				namespaceRole("n", "r", rule(list("get"), core, list("pods"))),
				namespaceBinding("n", "a", "Role", "r", account("", "sa")), namespaceBinding("n", "b", "Role", "r", account("n", "sa")),
				namespaceBinding("n", "c", "Role", "none", account("n", "sa")), namespaceBinding("m", "d", "ClusterRole", "none",
					account("n", "sa")),
				namespaceBinding("l", "e", "Foo", "none", account("n", "sa")),
			},
			user: "system:serviceaccount:n:sa",
			want: "\"\"\n\"m\"\n  missing ClusterRole/none\n\"n\"\n  pods. [get] a#0 b#0\n  missing Role/n/none\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := rbacindex.New(c.objects...)
			if err != nil {
				t.Fatal(err)
			}
			if got := held(s.Can(c.user, c.groups)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
