package compare

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// TestIndexEqualsRealCode is the short run; the long one is the command oracle.
func TestIndexEqualsRealCode(t *testing.T) {
	n := uint64(80_000)
	if testing.Short() {
		n = 20_000
	}
	res := Run(Config{Comparisons: n, Seed: 7})
	if res.Disagreement != nil {
		t.Fatal(res.Disagreement.Error())
	}
	if res.Comparisons != n {
		t.Errorf("%d comparisons, want %d", res.Comparisons, n)
	}
	for kind, least := range map[Asked]uint64{AskDecision: n / 2, AskRules: n / 50, AskCovers: n / 50, AskBind: n / 50, AskWrite: n / 50} {
		if res.Asked[kind] < least {
			t.Errorf("%d questions of kind %s: that is not a comparison", res.Asked[kind], kind)
		}
		if yes := res.Yes[kind]; yes < res.Asked[kind]/12 || yes > res.Asked[kind]*11/12 {
			t.Errorf("%s: yes to %d of %d: nearly all answers are the same", kind, yes, res.Asked[kind])
		}
	}
}

// TestRunDependsOnSeedOnly: however many work, the same is asked.
func TestRunDependsOnSeedOnly(t *testing.T) {
	asked := func(seed uint64, workers int) map[Asked]uint64 {
		return Run(Config{Comparisons: 5500, Seed: seed, Workers: workers}).Asked
	}
	one, three, other := asked(3, 1), asked(3, 3), asked(4, 1)
	if len(one) != 5 || one[AskDecision] != three[AskDecision] || one[AskWrite] != three[AskWrite] || one[AskBind] != three[AskBind] {
		t.Errorf("one worker asks %v, three %v", one, three)
	}
	if one[AskDecision] == other[AskDecision] && one[AskBind] == other[AskBind] && one[AskWrite] == other[AskWrite] {
		t.Errorf("another seed asks the same: %v", other)
	}
}

// allowIf is the index, wrong: what it refuses it grants by the first rule of the subject
// that looks good to it.
func allowIf(good func(*rbacindex.Attributes, *rbacv1.PolicyRule, rbacindex.Grant) bool) func(*rbacindex.Snapshot, *rbacindex.Attributes,
	[]rbacindex.Grant) rbacindex.Result {
	return func(s *rbacindex.Snapshot, a *rbacindex.Attributes, buf []rbacindex.Grant) rbacindex.Result {
		res := s.Authorize(a, buf)
		if res.Allowed {
			return res
		}
		s.RulesFor(a.User, a.Groups, a.Namespace, func(g rbacindex.Grant, r *rbacv1.PolicyRule) bool {
			if good(a, r, g) {
				res.Allowed, res.Grants = true, append(res.Grants, g)
			}
			return !res.Allowed
		})
		return res
	}
}

// TestWrongTwinsAreFound: a comparison that cannot fail is none. Each twin is wrong about one
// thing; it is found, and what is left of the case is little and about that thing.
func TestWrongTwinsAreFound(t *testing.T) {
	without := func(a *rbacindex.Attributes, r rbacv1.PolicyRule) bool {
		r.ResourceNames = nil
		return rbacindex.RuleAllows(a, &r)
	}
	for _, c := range []struct {
		name  string
		wrong func(*Ours)
		// at most so many objects and rules, and a sign of what it is about
		objects, rules int
		sign           string
	}{
		{"ignores resourceNames", func(o *Ours) {
			o.Authorize = allowIf(func(a *rbacindex.Attributes, r *rbacv1.PolicyRule, _ rbacindex.Grant) bool { return without(a, *r) })
		}, 2, 1, `"resourceNames":[`},
		{"ignores resourceNames of one rule", func(o *Ours) {
			o.RuleAllows = func(a *rbacindex.Attributes, r *rbacv1.PolicyRule) bool { return without(a, *r) }
		}, 2, 1, `"resourceNames":[`},
		{"takes a resource for its subresources", func(o *Ours) {
			o.Authorize = allowIf(func(a *rbacindex.Attributes, r *rbacv1.PolicyRule, _ rbacindex.Grant) bool {
				b := *a
				b.Subresource = ""
				return rbacindex.RuleAllows(&b, r)
			})
		}, 2, 1, `"subresource":`},
		{"folds case", func(o *Ours) {
			o.Authorize = allowIf(func(a *rbacindex.Attributes, r *rbacv1.PolicyRule, _ rbacindex.Grant) bool {
				b := *a
				b.Verb = strings.ToLower(b.Verb)
				return rbacindex.RuleAllows(&b, r)
			})
		}, 2, 1, `"verb":"G`},
		{"reads a path prefix as a path", func(o *Ours) {
			o.Authorize = func(s *rbacindex.Snapshot, a *rbacindex.Attributes, buf []rbacindex.Grant) rbacindex.Result {
				res := s.Authorize(a, buf)
				if !a.ResourceRequest {
					res.Grants = slices.DeleteFunc(res.Grants, func(g rbacindex.Grant) bool {
						o, _ := s.Get(g.RoleKey())
						return !slices.Contains(rulesIn(o)[g.Rule()].NonResourceURLs, a.Path)
					})
					res.Allowed = len(res.Grants) > 0
				}
				return res
			}
		}, 2, 1, `*"]`},
		{"lets RoleBindings grant paths outside their namespace", func(o *Ours) {
			o.Authorize = func(s *rbacindex.Snapshot, a *rbacindex.Attributes, buf []rbacindex.Grant) rbacindex.Result {
				b := *a
				if b.Namespace == "" && !b.ResourceRequest {
					b.Namespace = "default"
				}
				return s.Authorize(&b, buf)
			}
		}, 2, 1, `"kind":"RoleBinding"`},
		{"forgets the second grant", func(o *Ours) {
			o.Authorize = func(s *rbacindex.Snapshot, a *rbacindex.Attributes, buf []rbacindex.Grant) rbacindex.Result {
				res := s.Authorize(a, buf)
				res.Grants = res.Grants[:min(1, len(res.Grants))]
				return res
			}
		}, 4, 2, `"grants":[`},
		{"forgets missing roles", func(o *Ours) {
			o.Authorize = func(s *rbacindex.Snapshot, a *rbacindex.Attributes, buf []rbacindex.Grant) rbacindex.Result {
				res := s.Authorize(a, buf)
				return rbacindex.Result{Allowed: res.Allowed, Grants: res.Grants}
			}
		}, 1, 0, `"errors":[`},
		{"covers every name by some", func(o *Ours) {
			o.Covers = func(owner, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
				return slices.DeleteFunc(uncovered(owner, wanted), func(p rbacv1.PolicyRule) bool {
					return slices.ContainsFunc(owner, func(r rbacv1.PolicyRule) bool {
						r.ResourceNames = nil
						return len(uncovered([]rbacv1.PolicyRule{r}, []rbacv1.PolicyRule{p})) == 0
					})
				})
			}
		}, 0, 2, `"owner":[`},
		{"forgets aggregation", func(o *Ours) {
			o.MayWriteRole = func(s *rbacindex.Snapshot, user string, groups []string, object any,
				name string) (rbacindex.Escalation, error) {
				if r, ok := object.(*rbacv1.ClusterRole); ok {
					c := *r
					c.AggregationRule = nil
					object = &c
				}
				return s.MayWriteRole(user, groups, object, name)
			}
		}, 0, 0, `"aggregationRule":`},
		{"binds whatever is there", func(o *Ours) {
			o.MayBind = func(s *rbacindex.Snapshot, user string, groups []string, namespace string,
				ref rbacv1.RoleRef) rbacindex.Escalation {
				e := s.MayBind(user, groups, namespace, ref)
				if e.RoleAbsent {
					return e
				}
				return rbacindex.Escalation{Allowed: true}
			}
		}, 1, 1, `"asked":"bind"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ours := Index()
			c.wrong(&ours)
			res := Run(Config{Comparisons: 200_000, Seed: 5, Workers: 1, Ours: ours})
			d := res.Disagreement
			if d == nil || !d.Repeats {
				t.Fatalf("not found: %v", d)
			}
			rules := len(d.Case.Question.Owner) + len(d.Case.Question.Wanted)
			for _, w := range d.Case.Writes {
				rules += len(rulesIn(w.Object))
			}
			raw, err := d.Case.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Case.Writes) > c.objects || rules > c.rules || !strings.Contains(string(raw), c.sign) {
				t.Errorf("after %d comparisons, %d objects and %d rules are left: %v", res.Comparisons, len(d.Case.Writes), rules,
					d.Error())
			}
		})
	}
}

// TestStaleMemoryIsFound: a twin that remembers answers too long gives the right answer to a
// question asked once. The case keeps the writes it takes.
func TestStaleMemoryIsFound(t *testing.T) {
	ours := Index()
	var last *rbacindex.Snapshot
	ours.Authorize = func(s *rbacindex.Snapshot, a *rbacindex.Attributes, buf []rbacindex.Grant) rbacindex.Result {
		res := s.Authorize(a, buf)
		if last != nil && !res.Allowed && a.ResourceRequest {
			if old := last.Authorize(a, nil); old.Allowed {
				res = old
			}
		}
		last = s
		return res
	}
	d := Run(Config{Comparisons: 50_000, Seed: 5, Workers: 1, Ours: ours}).Disagreement
	if d == nil {
		t.Fatal("not found")
	}
	if d.Repeats && (!d.Case.Applied || len(d.Case.Writes) > 4) {
		t.Errorf("%d writes are left: %v", len(d.Case.Writes), d.Error())
	}
}
