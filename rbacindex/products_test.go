package rbacindex_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// overlapping are 60 roles of 20 rules with nearly the same 60 groups, resources and names and 30
// verbs, all bound to the same 40 users.
func overlapping(verb string) (objects []any, roles []rbacindex.Key) {
	list := func(kind string, from, n, of int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint(kind, (from+i)%of)
		}
		return out
	}
	var subjects []rbacv1.Subject
	for i := range 40 {
		subjects = append(subjects, user(fmt.Sprint("s", i)))
	}
	for i := range 60 {
		var rules []rbacv1.PolicyRule
		for j := range 20 {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: list("g", i, 60, 61), Resources: list("r", j, 60, 61),
				Verbs: append(list("v", i+j, 30, 50), verb), ResourceNames: list("n", 3*i+j, 60, 200)})
		}
		name := fmt.Sprint("r", i)
		objects = append(objects, clusterRole(name, rules...), clusterBinding(name, "ClusterRole", name, subjects...))
		roles = append(roles, rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name})
	}
	return objects, roles
}

// TestDifferencesOfProducts: all roles change at once. What is too large to compare is said, in
// a bounded number of steps, and a subject beside it has its answer.
func TestDifferencesOfProducts(t *testing.T) {
	t.Parallel()
	was, roles := overlapping("before")
	is, _ := overlapping("after")
	was = append(was, clusterRole("small", parseRules("get - pods")...), clusterBinding("small", "ClusterRole", "small", user("alice")))
	is = append(is, clusterRole("small", parseRules("get,list - pods")...), clusterBinding("small", "ClusterRole", "small", user("alice")))
	old, err := rbacindex.New(was...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rbacindex.New(is...)
	if err != nil {
		t.Fatal(err)
	}
	large, small := 0, ""
	taken, most := rbacindex.DifferencesTaken(s, old, append(roles, rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "small"}),
		func(list []rbacindex.Difference) bool {
			for _, d := range list {
				if d.Name == "alice" {
					small = fmt.Sprint(d.TooLarge, len(d.Gained), d.Gained[0].Verbs, len(d.Lost))
				} else if d.TooLarge {
					large++
				}
			}
			return true
		})
	if large != 40 || small != "false 1 [list] 0" {
		t.Errorf("%d subjects are too large to compare; beside them %q", large, small)
	}
	if taken > most {
		t.Errorf("%d steps, at most %d", taken, most)
	}
}
