package rbacindex_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// TestCrampedAnswersTheSame: how much room there is for tables changes no answer.
func TestCrampedAnswersTheSame(t *testing.T) {
	for seed := range policies(t, 1500) {
		g := newGenerator(seed + 1<<40)
		objects := g.policy()
		s, err := rbacindex.NewCramped(int64(g.IntN(30)), objects...)
		if err != nil {
			t.Fatal(err)
		}
		tw := newTwin(objects...)
		for range 20 {
			a := g.request()
			if g.IntN(3) > 0 {
				a = g.aimed(objects)
			}
			if !compare(t, seed, s, tw, a) {
				return
			}
		}
	}
}

// TestAnswersInTime: within however many steps an answer is that of unlimited ones, or none.
func TestAnswersInTime(t *testing.T) {
	costly, answered := 0, 0
	for seed := range policies(t, 1500) {
		g := newGenerator(seed + 1<<41)
		objects := g.policy()
		s, err := rbacindex.NewCramped(int64(g.IntN(30)), objects...)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			a := *g.aimed(objects)
			want := s.Authorize(&a, nil)
			a.Steps = rbacindex.NewSteps(g.IntN(12))
			got := s.Authorize(&a, nil)
			if !got.TooCostly {
				answered++
				if fmt.Sprint(got.Grants, got.Errors()) != fmt.Sprint(want.Grants, want.Errors()) {
					t.Fatalf("seed %d %+v\ngot  %v\nwant %v", seed, a, got, want)
				}
				continue
			}
			if costly++; got.Allowed || len(got.Grants) > 0 || got.Reason() != "" {
				t.Fatalf("seed %d %+v: too costly, and %+v", seed, a, got)
			}
		}
	}
	if costly < 50 || answered < 50 {
		t.Errorf("%d too costly, %d answered: not what this is about", costly, answered)
	}
}

// TestTablesFollowStrings: the tables of rules are as large as their lists, not as what these
// stand for, and of many roles there are no more than there is room for.
func TestTablesFollowStrings(t *testing.T) {
	var objects []any
	strings := 0
	for i := range 300 {
		r := &rbacv1.ClusterRole{}
		r.Name = fmt.Sprint("r", i)
		for j := range 10 {
			rule := broad()
			rule.APIGroups = numbered(fmt.Sprint("g", i, "-", j, "-"), 60)
			rule.Resources = numbered(fmt.Sprint("r", i, "-", j, "-"), 60)
			if j%2 == 0 {
				rule.ResourceNames = nil
			}
			strings += len(rule.APIGroups) + len(rule.Resources) + len(rule.Verbs) + len(rule.ResourceNames)
			r.Rules = append(r.Rules, rule)
		}
		b := &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: r.Name},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}}}
		b.Name = r.Name
		objects = append(objects, r, b)
	}
	ask := func(s *rbacindex.Snapshot) rbacindex.Result {
		return s.Authorize(&rbacindex.Attributes{User: "alice", ResourceRequest: true, Verb: "v3", APIGroup: "g7-1-4", Resource: "r7-1-9",
			Name: "n5"}, nil)
	}
	s, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	if res := ask(s); len(res.Grants) != 1 || res.Grants[0].Rule() != 1 {
		t.Errorf("grants %v", res.Grants)
	}
	if n := s.TableEntries(); n > int64(strings) {
		t.Errorf("%d entries for %d strings", n, strings)
	}
	const room = 10_000
	if s, err = rbacindex.NewCramped(room, objects...); err != nil {
		t.Fatal(err)
	}
	if res := ask(s); len(res.Grants) != 1 {
		t.Errorf("cramped: grants %v", res.Grants)
	}
	if n := s.TableEntries(); n > room {
		t.Errorf("%d entries, there is room for %d", n, room)
	}
}
