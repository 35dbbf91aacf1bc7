package rbacindex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// cleaned removes from a policy all that is said to be idle.
func cleaned(t *testing.T, s *rbacindex.Snapshot, flaws []rbacindex.Flaw) *rbacindex.Snapshot {
	t.Helper()
	rules := map[rbacindex.Key][]int{}
	var changes []rbacindex.Change
	for _, f := range flaws {
		switch {
		case f.Kind == rbacindex.FlawShadowedRule:
			rules[f.Key] = append(rules[f.Key], f.Rule)
		case f.Kind.Idle():
			changes = append(changes, rbacindex.Change{Key: f.Key})
		}
	}
	for k, gone := range rules {
		without := func(list []rbacv1.PolicyRule) (out []rbacv1.PolicyRule) {
			for i, r := range list {
				if !slices.Contains(gone, i) {
					out = append(out, r)
				}
			}
			return out
		}
		o, _ := s.Get(k)
		switch r := o.(type) {
		case *rbacv1.Role:
			c := *r
			c.Rules = without(r.Rules)
			o = &c
		case *rbacv1.ClusterRole:
			c := *r
			c.Rules = without(r.Rules)
			o = &c
		}
		if !slices.ContainsFunc(changes, func(c rbacindex.Change) bool { return c.Key == k }) {
			changes = append(changes, rbacindex.Change{Key: k, Object: o})
		}
	}
	next, err := s.Apply(changes...)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestHygieneChangesNoDecision removes all at once and asks.
func TestHygieneChangesNoDecision(t *testing.T) {
	t.Parallel()
	found := map[rbacindex.FlawKind]int{}
	allowed := 0
	for seed := range policies(t, 400) {
		g := newGenerator(seed + 1<<39)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		flaws := s.Hygiene()
		for _, f := range flaws {
			found[f.Kind]++
		}
		after := cleaned(t, s, flaws)
		for range 60 {
			a := g.aimed(objects)
			if strings.Contains(a.Resource, "/") {
				continue // comes from no URL
			}
			if !a.ResourceRequest {
				a.Namespace = ""
			}
			before, now := s.Authorize(a, nil), after.Authorize(a, nil)
			if before.Allowed != now.Allowed {
				t.Fatalf("seed %d request %+v: allowed %t, after cleaning %t: %q\n%+v", seed, *a, before.Allowed, now.Allowed,
					before.Reason(), flaws)
			}
			if before.Allowed {
				allowed++
			}
		}
		// A second run finds nothing but roles whose last binding went.
		for _, f := range after.Hygiene() {
			if f.Kind.Idle() && f.Kind != rbacindex.FlawUnboundRole {
				t.Fatalf("seed %d: %s of %s is left", seed, f.Kind, f.Key)
			}
		}
	}
	for kind := rbacindex.FlawMissingRole; kind <= rbacindex.FlawEverybody; kind++ {
		if found[kind] < 2 && !testing.Short() {
			t.Errorf("%s: found %d times", kind, found[kind])
		}
	}
	if allowed < 200 && !testing.Short() {
		t.Errorf("%d requests were allowed", allowed)
	}
}

func TestHygiene(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects []any
		want    string
	}{
		{name: "nothing", objects: []any{clusterRole("r", parseRules("get - pods")...), clusterBinding("b", "ClusterRole", "r",
			user("u"))}},
		{name: "roles that are missing, of no kind, empty and unbound", objects: []any{
			clusterBinding("a", "ClusterRole", "gone", user("u")), clusterBinding("b", "Role", "r", user("u")), clusterBinding("c", "Foo",
				"r", user("u")), clusterRole("r"), clusterBinding("d", "ClusterRole", "r", user("u")),
			namespaceRole("n", "r", parseRules("get - pods")...), clusterRole("paths", parseRules("get /x")...), namespaceBinding("n", "e",
				"ClusterRole", "paths", user("u"))},
			want: "unbound role Role/n/r; empty role RoleBinding/n/e; missing role ClusterRoleBinding/a; missing role " +
				"ClusterRoleBinding/b; missing role ClusterRoleBinding/c; empty role ClusterRoleBinding/d"},
		{name: "subjects that are nobody", objects: []any{
			clusterRole("r", parseRules("get - pods")...), clusterBinding("a", "ClusterRole", "r"), clusterBinding("b", "ClusterRole", "r",
				account("", "sa"), rbacv1.Subject{Kind: "Robot", Name: "x"})},
			want: "no subject ClusterRoleBinding/a; no subject ClusterRoleBinding/b"},
		{name: "the same twice", objects: []any{
			clusterRole("r", parseRules("get - pods")...), clusterBinding("a", "ClusterRole", "r", user("u")),
			clusterBinding("b", "ClusterRole", "r", user("u"), user("v")),
			namespaceBinding("n", "c", "ClusterRole", "r", user("v"))},
			want: "duplicate binding RoleBinding/n/c by ClusterRoleBinding/b; duplicate binding ClusterRoleBinding/a by " +
				"ClusterRoleBinding/b"},
		{name: "each would do", objects: []any{
			clusterRole("r", parseRules("get - pods")...), clusterBinding("a", "ClusterRole", "r", user("u")),
			clusterBinding("b", "ClusterRole", "r", user("u"))},
			want: "duplicate binding ClusterRoleBinding/a by ClusterRoleBinding/b"},
		{name: "covered by two others", objects: []any{
			clusterRole("both", parseRules("get,list - pods")...), clusterRole("g", parseRules("get - *")...),
			clusterRole("l", parseRules("list - pods")...),
			namespaceBinding("n", "a", "ClusterRole", "both", user("u")), namespaceBinding("n", "b", "ClusterRole", "g", user("u")),
			clusterBinding("c", "ClusterRole", "l", user("u"))},
			want: "shadowed binding RoleBinding/n/a by RoleBinding/n/b, ClusterRoleBinding/c"},
		{name: "of others that would do the fewest", objects: []any{
			clusterRole("both", parseRules("get,list - pods")...), clusterRole("g", parseRules("get - *")...),
			clusterRole("l", parseRules("* - pods")...),
			namespaceBinding("n", "a", "ClusterRole", "both", user("u")), namespaceBinding("n", "b", "ClusterRole", "g", user("u")),
			clusterBinding("c", "ClusterRole", "l", user("u"))},
			want: "shadowed binding RoleBinding/n/a by ClusterRoleBinding/c"},
		{name: "one subject of two is not", objects: []any{
			clusterRole("r", parseRules("get - pods")...), clusterRole("all", parseRules("* * *")...), clusterBinding("a", "ClusterRole",
				"r", user("u"), group("u")), clusterBinding("b", "ClusterRole", "all", user("u"))}},
		{name: "paths count cluster-wide only", objects: []any{
			clusterRole("r", parseRules("get - pods /x")...), clusterRole("p", parseRules("get - pods")...),
			namespaceBinding("n", "a", "ClusterRole", "r", user("u")), clusterBinding("b", "ClusterRole", "r", user("v")),
			clusterBinding("c", "ClusterRole", "p", user("u"), user("v"))},
			want: "shadowed binding RoleBinding/n/a by ClusterRoleBinding/c"},
		{name: "rules", objects: []any{
			clusterRole("r", parseRules("get - pods", "get,list - pods", "list - pods a", "get - pods", "get /x")...),
			clusterBinding("a", "ClusterRole", "r", user("u"))},
			want: "shadowed rule ClusterRole/r#0; shadowed rule ClusterRole/r#2; shadowed rule ClusterRole/r#3"},
		{name: "everybody", objects: []any{
			clusterRole("r", parseRules("get - pods")...), namespaceBinding("n", "a", "ClusterRole", "r", group("system:authenticated"),
				group("system:unauthenticated"), user("system:anonymous"), user("system:authenticated"))},
			want: "grants everybody RoleBinding/n/a system:authenticated; grants everybody RoleBinding/n/a system:unauthenticated; " +
				"grants everybody RoleBinding/n/a system:anonymous"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := rbacindex.New(c.objects...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range s.Hygiene() {
				line := f.Kind.String() + " " + f.Key.String()
				if f.Kind == rbacindex.FlawShadowedRule {
					line += fmt.Sprintf("#%d", f.Rule)
				}
				for i, k := range f.By {
					line += []string{" by ", ", "}[min(i, 1)] + k.String()
				}
				if f.Subject.Name != "" {
					line += " " + f.Subject.Name
				}
				got = append(got, line)
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "; "), c.want)
			}
		})
	}
}

// TestHygieneOfProducts: rules that stand for products of long lists take steps in proportion
// to the lists. What takes more than there are is said, and costs what is small nothing.
func TestHygieneOfProducts(t *testing.T) {
	t.Parallel()
	list := func(kind string, n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint(kind, i)
		}
		return out
	}
	groups, resources, verbs, names := list("g", 60), list("r", 60), list("v", 30), list("n", 60)
	product := rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs, ResourceNames: names}
	half := product
	half.ResourceNames = names[:30]
	rest := product
	rest.ResourceNames = names[29:]
	objects := []any{
		clusterRole("whole", product), clusterRole("half", half), clusterRole("rest", rest), clusterRole("both", half, product),
		clusterBinding("a", "ClusterRole", "whole", user("u")), clusterBinding("b", "ClusterRole", "half", user("u")),
		clusterBinding("c", "ClusterRole", "rest", user("u")),
		clusterBinding("d", "ClusterRole", "both", user("other")),
	}
	s, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Hygiene() {
		got = append(got, fmt.Sprint(f.Kind, " ", f.Key.Name, " ", f.By))
	}
	if want := "shadowed rule both []; shadowed binding a [ClusterRoleBinding/b ClusterRoleBinding/c]"; strings.Join(got, "; ") != want {
		t.Errorf("products of 6,480,000 pieces: %s, want %s", strings.Join(got, "; "), want)
	}

	// 60 roles of 20 rules, no two alike, each held by the same 100 subjects in five bindings.
	objects = []any{clusterRole("small", parseRules("get - pods")...), clusterBinding("y", "ClusterRole", "small", user("alice")),
		clusterBinding("z", "ClusterRole", "small", user("alice"))}
	var subjects []rbacv1.Subject
	for i := range 100 {
		subjects = append(subjects, user(fmt.Sprint("s", i)))
	}
	for i := range 60 {
		var rules []rbacv1.PolicyRule
		for j := range 20 {
			r := product
			r.ResourceNames = append(slices.Clone(names[1:]), fmt.Sprint("own", i, "-", j))
			rules = append(rules, r)
		}
		objects = append(objects, clusterRole(fmt.Sprint("r", i), rules...))
		for j := range 5 {
			objects = append(objects, clusterBinding(fmt.Sprintf("b%d-%d", i, j), "ClusterRole", fmt.Sprint("r", i),
				append(slices.Clone(subjects), user(fmt.Sprint("only", i)))...))
		}
	}
	if s, err = rbacindex.New(objects...); err != nil {
		t.Fatal(err)
	}
	found := map[rbacindex.FlawKind]int{}
	small := false
	flaws, taken, most := rbacindex.HygieneTaken(s)
	for _, f := range flaws {
		found[f.Kind]++
		small = small || f.Kind == rbacindex.FlawDuplicateBinding && f.Key.Name == "y"
	}
	if !small {
		t.Errorf("the duplicate of a small role is not found beside it: %v", found)
	}
	if taken > most || found[rbacindex.FlawTooLarge] == 0 {
		t.Errorf("%d steps, at most %d; %v", taken, most, found)
	}
}
