package rbacindex_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// numbered are n values.
func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

// broad returns one rule of 6.5 million pieces.
func broad() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: numbered("g", 60), Resources: numbered("r", 60), Verbs: numbered("v", 30),
		ResourceNames: numbered("n", 60)}
}

// halves cuts a rule in two along one of its lists, and the halves again.
func (g generator) halves(out []rbacv1.PolicyRule, r rbacv1.PolicyRule, depth int) []rbacv1.PolicyRule {
	a, b := r, r
	cut := [4][2]*[]string{{&a.APIGroups, &b.APIGroups}, {&a.Resources, &b.Resources}, {&a.Verbs, &b.Verbs},
		{&a.ResourceNames, &b.ResourceNames}}[g.IntN(4)]
	if depth == 0 || len(*cut[0]) < 2 {
		return append(out, r)
	}
	at := 1 + g.IntN(len(*cut[0])-1)
	*cut[0], *cut[1] = (*cut[0])[:at], (*cut[0])[at:]
	return g.halves(g.halves(out, a, depth-1), b, depth-1)
}

// TestCoversFollowsLists: what a rule of millions of pieces lacks is told by as much work as its
// lists take, whoever covers the rest.
func TestCoversFollowsLists(t *testing.T) {
	wanted := []rbacv1.PolicyRule{broad()}
	most := 0
	ask := func(owner []rbacv1.PolicyRule) rbacindex.Coverage {
		steps := rbacindex.NewSteps(rbacindex.CoverSteps)
		c := rbacindex.Covers(owner, wanted, 3, steps)
		most = max(most, rbacindex.CoverSteps-steps.Left())
		return c
	}
	for seed := range uint64(60) {
		g := newGenerator(seed + 1<<38)
		owner := g.halves(nil, broad(), 6)
		g.Shuffle(len(owner), func(i, j int) { owner[i], owner[j] = owner[j], owner[i] })
		if c := ask(owner); !c.Covered() || c.More {
			t.Fatalf("seed %d: the %d parts of a rule do not cover it: %+v", seed, len(owner), c)
		}
		i := g.IntN(len(owner))
		gone := owner[i]
		c := ask(slices.Delete(owner, i, i+1))
		first := rbacv1.PolicyRule{APIGroups: gone.APIGroups[:1], Resources: gone.Resources[:1], Verbs: gone.Verbs[:1],
			ResourceNames: gone.ResourceNames[:1]}
		if c.TooCostly || len(c.Uncovered) == 0 || fmt.Sprint(c.Uncovered[0]) != fmt.Sprint(first) {
			t.Fatalf("seed %d: without the part that begins with %v: %+v", seed, first, c)
		}
	}
	if c := ask(nil); len(c.Uncovered) != 3 || !c.More {
		t.Errorf("of a rule that nothing covers: %+v", c)
	}
	t.Logf("%d steps at the most", most)
	if most > rbacindex.CoverSteps/2 {
		t.Errorf("%d steps for lists of 210 values and 64 rules", most)
	}
}

// TestCoversEndsInTime: what cannot be told within the steps given is neither covered nor not.
func TestCoversEndsInTime(t *testing.T) {
	g := newGenerator(1 << 39)
	owner, wanted := g.halves(nil, broad(), 6), []rbacv1.PolicyRule{broad()}
	costly := 0
	for n := 1; n < 1<<16; n += 1 + n/8 {
		c := rbacindex.Covers(owner, wanted, 3, rbacindex.NewSteps(n))
		if len(c.Uncovered) > 0 || c.TooCostly == c.Covered() {
			t.Fatalf("%d steps: %+v of rules that are covered", n, c)
		}
		if c.TooCostly {
			costly++
		}
		c = rbacindex.Covers(owner[1:], wanted, 3, rbacindex.NewSteps(n))
		if c.Covered() {
			t.Fatalf("%d steps: covered without one part", n)
		}
	}
	if costly == 0 {
		t.Error("no number of steps was too small")
	}
}

// TestEscalationEndsInTime: a role that cannot be compared in time is neither let through nor
// refused for a reason.
func TestEscalationEndsInTime(t *testing.T) {
	role := &rbacv1.ClusterRole{}
	role.Name = "held"
	role.Rules = grid(24, 3)
	binding := &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "held"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}}}
	binding.Name = "held"
	s, err := rbacindex.New(role, binding)
	if err != nil {
		t.Fatal(err)
	}
	more := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{APIGroups: numbered("g", 24), Resources: numbered("r", 24),
		Verbs: numbered("v", 24), ResourceNames: numbered("n", 24)}}}
	more.Name = "more"
	e, err := s.MayWriteRole("alice", nil, more, "")
	if err != nil {
		t.Fatal(err)
	}
	if !e.TooCostly || e.Allowed || e.Reason != "" || len(e.Missing) > 0 {
		t.Errorf("allowed %t, too costly %t, missing %d, reason %q", e.Allowed, e.TooCostly, len(e.Missing), e.Reason)
	}
}

// grid is rules that cover a grid of n values a dimension between them, all but some in the
// middle of each list, so that hardly two values are covered by the same ones.
func grid(n, apart int) []rbacv1.PolicyRule {
	all := [4][]string{numbered("g", n), numbered("r", n), numbered("v", n), numbered("n", n)}
	var out []rbacv1.PolicyRule
	for i := range 4 {
		for j := range n {
			for k := range n / apart {
				lists := all
				lists[i] = slices.Concat(all[i][:j], all[i][min(n, j+1):])
				lists[(i+1)%4] = slices.Concat(all[(i+1)%4][:k*apart], all[(i+1)%4][k*apart+1:])
				lists[(i+2)%4] = slices.Concat(all[(i+2)%4][:(j+k)%n], all[(i+2)%4][(j+k)%n+1:])
				out = append(out, rbacv1.PolicyRule{APIGroups: lists[0], Resources: lists[1], Verbs: lists[2], ResourceNames: lists[3]})
			}
		}
	}
	return out
}
