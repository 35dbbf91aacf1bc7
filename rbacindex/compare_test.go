package rbacindex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// inChanged reports whether a request is in one of the rules.
func inChanged(list []rbacindex.ChangedRule, a *rbacindex.Attributes) bool {
	return slices.ContainsFunc(list, func(r rbacindex.ChangedRule) bool {
		return rbacindex.RuleAllows(a, &r.PolicyRule) &&
			!slices.ContainsFunc(r.Except, func(e rbacv1.PolicyRule) bool { return rbacindex.RuleAllows(a, &e) })
	})
}

// about returns what a subject's differences say of a request: those of its namespace, or
// else those of the cluster.
func about(all []rbacindex.Difference, a *rbacindex.Attributes) (gained, lost bool) {
	var of rbacindex.Difference
	for _, d := range all {
		if d.Namespace == "" || d.Namespace == a.Namespace && a.Namespace != "" {
			of = d
		}
	}
	return inChanged(of.Gained, a), inChanged(of.Lost, a)
}

// asFromURL makes a request one that a URL can make: no slash in the resource, and no
// namespace beside a path.
func asFromURL(a *rbacindex.Attributes) {
	if !a.ResourceRequest {
		a.Namespace = ""
		return
	}
	if head, tail, ok := strings.Cut(a.Resource, "/"); ok {
		a.Resource, a.Subresource = head, tail
	}
}

// TestDifferencesAreExact changes generated policies and asks, of many requests, whether they
// are allowed before and after: a request is among what was gained exactly if it is allowed
// after and was not before, and among what was lost exactly if the reverse. What is said of a
// subject alone and of all that the changes concern must agree, and every grant named must be
// one of its side.
func TestDifferencesAreExact(t *testing.T) {
	const policies, questions = 100, 60
	gains, losses := 0, 0
	for seed := range uint64(policies) {
		g := newGenerator(seed + 77000)
		objects := g.policy()
		old, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		var changes []rbacindex.Change
		var changed []rbacindex.Key
		for range 1 + g.IntN(6) {
			c := rbacindex.Change{Key: g.key()}
			if len(objects) > 0 && g.IntN(2) == 0 {
				if c.Key, err = rbacindex.KeyOf(pick(g, objects...)); err != nil {
					t.Fatal(err)
				}
			}
			if g.IntN(3) > 0 {
				c.Object = g.object(c.Key)
			}
			changes, changed = append(changes, c), append(changed, c.Key)
		}
		now, err := old.Apply(changes...)
		if err != nil {
			t.Fatal(err)
		}
		var after []any
		now.All(func(_ rbacindex.Key, o any) bool { after = append(after, o); return true })
		if g.IntN(2) == 0 { // the versions need not descend from each other
			if now, err = rbacindex.New(after...); err != nil {
				t.Fatal(err)
			}
		}
		type who struct {
			name  string
			group bool
		}
		bySubject := map[who][]rbacindex.Difference{}
		now.Differences(old, changed, func(list []rbacindex.Difference) bool {
			bySubject[who{list[0].Name, list[0].Group}] = list
			for _, d := range list {
				for _, r := range d.Gained {
					checkSources(t, now, r)
				}
				for _, r := range d.Lost {
					checkSources(t, old, r)
				}
			}
			return true
		})
		for i := range questions {
			a := g.aimed(pick(g, objects, after))
			asFromURL(a)
			check := func(what string, list []rbacindex.Difference, a *rbacindex.Attributes) {
				t.Helper()
				before, after := old.Authorize(a, nil).Allowed, now.Authorize(a, nil).Allowed
				gained, lost := about(list, a)
				if gained != (after && !before) || lost != (before && !after) {
					t.Fatalf("seed %d question %d, %s: %+v\nallowed before %t, after %t; gained %t, lost %t of\n%+v", seed, i, what, *a,
						before, after, gained, lost, list)
				}
				if gained {
					gains++
				}
				if lost {
					losses++
				}
			}
			check("subject", now.DifferencesOf(old, a.User, a.Groups), a)
			alone := *a
			alone.Groups = nil
			check("user alone", bySubject[who{name: a.User}], &alone)
			for _, name := range a.Groups {
				alone := *a
				alone.User, alone.Groups = nobody, []string{name}
				check("group alone", bySubject[who{name, true}], &alone)
				check("group", now.DifferencesOfGroup(old, name), &alone)
			}
		}
	}
	if gains < 50 || losses < 50 {
		t.Errorf("only %d requests gained and %d lost: the generator misses the point", gains, losses)
	}
}

// checkSources makes sure that every grant a rule is said to come from stands in the policy.
func checkSources(t *testing.T, s *rbacindex.Snapshot, r rbacindex.ChangedRule) {
	t.Helper()
	if len(r.By) == 0 {
		t.Errorf("%+v comes from nowhere", r.PolicyRule)
	}
	for _, by := range r.By {
		if _, ok := s.Get(by.BindingKey()); !ok {
			t.Errorf("%s is not there", by.BindingKey())
		}
		if _, ok := s.Get(by.RoleKey()); !ok {
			t.Errorf("%s is not there", by.RoleKey())
		}
	}
}

// TestDifferencesRead shows how differences are told.
func TestDifferencesRead(t *testing.T) {
	role := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	}
	rule := func(verbs, resources string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{""}, Resources: strings.Fields(resources)}
	}
	bind := func(ns, role string) any {
		ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: role}
		subjects := []rbacv1.Subject{{Kind: "User", Name: "alice"}}
		if ns == "" {
			return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: ref, Subjects: subjects}
		}
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role}, RoleRef: ref, Subjects: subjects}
	}
	roles := []any{role("read", rule("get list", "pods services")), role("all", rule("*", "*")), role("write", rule("create get", "pods"))}
	for _, c := range []struct {
		name     string
		old, now []any
		want     string
	}{
		{"nothing", []any{bind("", "read")}, []any{bind("", "read")}, ""},
		{"a binding", nil, []any{bind("", "read")}, `+[get list] [pods services]`},
		{"a binding gone", []any{bind("", "read")}, nil, `-[get list] [pods services]`},
		{"only what is new", []any{bind("", "read")}, []any{bind("", "read"), bind("", "write")}, `+[create] [pods]`},
		{"a wildcard over what was held", []any{bind("", "read")}, []any{bind("", "all")}, `+[*] [*] except [get list] [pods services]`},
		{"from a namespace to the cluster", []any{bind("a", "read")}, []any{bind("", "read")}, `+[get list] [pods services]; a: nothing`},
		{"from the cluster to a namespace", []any{bind("", "read")}, []any{bind("a", "read")}, `-[get list] [pods services]; a: nothing`},
		{"in one namespace more", []any{bind("a", "read")}, []any{bind("a", "read"), bind("b", "read")}, `b: +[get list] [pods services]`},
		{"the same by another binding", []any{bind("a", "read")}, []any{bind("a", "read"), bind("a", "all")},
			`a: +[*] [*] except [get list] [pods services]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, err := rbacindex.New(append(slices.Clone(roles), c.old...)...)
			if err != nil {
				t.Fatal(err)
			}
			now, err := rbacindex.New(append(slices.Clone(roles), c.now...)...)
			if err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, d := range now.DifferencesOf(old, "alice", nil) {
				var words []string
				for sign, list := range map[string][]rbacindex.ChangedRule{"+": d.Gained, "-": d.Lost} {
					for _, r := range list {
						s := fmt.Sprint(sign, r.Verbs, " ", r.Resources)
						for _, e := range r.Except {
							s += fmt.Sprint(" except ", e.Verbs, " ", e.Resources)
						}
						words = append(words, s)
					}
				}
				said := "nothing"
				if len(words) > 0 {
					said = strings.Join(words, ", ")
				}
				if d.Namespace != "" {
					said = d.Namespace + ": " + said
				}
				parts = append(parts, said)
			}
			if got := strings.Join(parts, "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
