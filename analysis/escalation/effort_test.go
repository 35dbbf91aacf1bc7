package escalation_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/test/policyshape"
)

// TestClosureWithFewSteps: with fewer steps than a policy takes, every reported path exists, and
// every subject with an unreported path is reported as too large to check.
func TestClosureWithFewSteps(t *testing.T) {
	accounts := escalation.Accounts{There: []escalation.Account{{Namespace: "n", Name: "x"}, {Namespace: "m", Name: "x"}}}
	nodes := func(paths []escalation.Path) map[escalation.Node]bool {
		out := map[escalation.Node]bool{}
		for i := range paths {
			valid(t, &paths[i])
			out[paths[i].From] = true
		}
		return out
	}
	reached, unknown, whole := 0, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		policy := snapshot(t, generated(rng)...)
		full := escalation.New(policy, accounts)
		few := escalation.Within(policy, accounts, rng.IntN(2000), 1+rng.IntN(1000), rng.IntN(100))
		all, _ := full.Reaching(nil, 0)
		some, _ := few.Reaching(nil, 0)
		large, count := few.TooLarge(nil, 0)
		if count != len(large) {
			t.Fatalf("seed %d: %d too large, %d listed", seed, count, len(large))
		}
		want, got := nodes(all), nodes(some)
		said := func(n escalation.Node) bool {
			if got[n] || slices.Contains(large, n) {
				return true
			}
			groups := groupsOf(n.UserName())
			if n.Kind == escalation.Group {
				groups = groupsOfGroup(n.Name)
			}
			return slices.ContainsFunc(groups, func(g string) bool {
				group := escalation.Node{Kind: escalation.Group, Name: g}
				return got[group] || slices.Contains(large, group)
			})
		}
		for n := range want {
			if !said(n) {
				t.Errorf("seed %d: %s reaches a goal, and nothing says so", seed, n)
			}
		}
		for n := range got {
			r := full.Reach(n.UserName(), groupsIfGroup(n), 0)
			if len(r.Goals) == 0 {
				t.Errorf("seed %d: %s is said to reach a goal", seed, n)
			}
		}
		for n := range want {
			a, b := full.Reach(n.UserName(), groupsIfGroup(n), 0), few.Reach(n.UserName(), groupsIfGroup(n), 0)
			if !b.TooLarge && (a.Count != b.Count || len(a.Goals) != len(b.Goals)) {
				t.Errorf("seed %d: %s reaches %d others and %d goals, and %d and %d with few steps that are said to suffice", seed, n,
					a.Count, len(a.Goals), b.Count, len(b.Goals))
			}
			if b.Count > a.Count || len(b.Goals) > 0 && len(a.Goals) == 0 {
				t.Errorf("seed %d: %s reaches more with fewer steps", seed, n)
			}
		}
		reached, unknown = reached+len(got), unknown+len(large)
		if len(large) == 0 && len(want) > 0 {
			whole++
		}
	}
	t.Logf("%d reach a goal, %d are too large to check, %d policies had enough steps", reached, unknown, whole)
	if reached < 100 || unknown < 100 || whole < 10 {
		t.Errorf("the budgets show too little: %d, %d, %d", reached, unknown, whole)
	}
}

func groupsIfGroup(n escalation.Node) []string {
	if n.Kind == escalation.Group {
		return []string{n.Name}
	}
	return nil
}

// hostile are policies of some megabytes that would take hours to follow.
func hostile() map[string]func() ([]any, escalation.Accounts) {
	users := func(from, n int) []rbacv1.Subject {
		out := make([]rbacv1.Subject, n)
		for i := range out {
			out[i] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprint("user-", from+i)}
		}
		return out
	}
	bind := func(name, role string, subjects []rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	}
	named := func(verb, group, resource, prefix string, n int) rbacv1.PolicyRule {
		r := rule(verb, group, resource)
		for i := range n {
			r.ResourceNames = append(r.ResourceNames, fmt.Sprint(prefix, i))
		}
		return r
	}
	accounts := func(spaces, names int) (out escalation.Accounts) {
		for i := range spaces {
			for j := range names {
				out.There = append(out.There, escalation.Account{Namespace: fmt.Sprint("ns-", i), Name: fmt.Sprint("sa-", j)})
			}
		}
		out.Complete = true
		return out
	}
	return map[string]func() ([]any, escalation.Accounts){
		"tokens of every account of a name": func() ([]any, escalation.Accounts) {
			return []any{clusterRole("t", named("create", "", "serviceaccounts/token", "sa-", 100)), bind("b", "t", users(0, 20_000))},
				accounts(300, 100)
		},
		"names that differ from subject to subject": func() (out []any, _ escalation.Accounts) {
			for i := range 40 {
				r := clusterRole(fmt.Sprint("r", i), named("*", "", "*", fmt.Sprint("x", i, "-"), 2000))
				out = append(out, r)
			}
			for i := range 2000 {
				for j := range 6 {
					out = append(out, bind(fmt.Sprintf("b%d-%d", i, j), fmt.Sprint("r", (i*(j+3)+j)%40), users(i, 1)))
				}
			}
			return out, escalation.Accounts{}
		},
		"rules of one name each": func() (out []any, _ escalation.Accounts) {
			for i := range 6 {
				r := clusterRole(fmt.Sprint("r", i))
				for j := range 12_000 {
					x := rule("*", "*", "*")
					x.ResourceNames = []string{fmt.Sprint("n", j*7919%12_000)}
					r.Rules = append(r.Rules, x)
				}
				out = append(out, r, bind(fmt.Sprint("b", i), r.Name, users(i, 300)))
			}
			return out, escalation.Accounts{}
		},
		"roles that let the next be bound": func() (out []any, _ escalation.Accounts) {
			for i := range 6000 {
				x := rule("bind", rbacv1.GroupName, "clusterroles")
				x.ResourceNames = []string{fmt.Sprint("r", i+1)}
				out = append(out, clusterRole(fmt.Sprint("r", i), x, rule("create", rbacv1.GroupName, "clusterrolebindings")))
			}
			return append(out, bind("b", "r0", users(0, 2000))), escalation.Accounts{}
		},
		"every role in every namespace": func() (out []any, _ escalation.Accounts) {
			out = append(out, clusterRole("binder", rule("create", rbacv1.GroupName, "rolebindings"), named("bind", rbacv1.GroupName,
				"clusterroles", "r", 3000), named("bind", rbacv1.GroupName, "roles", "r", 3000)))
			for i := range 3000 {
				out = append(out, clusterRole(fmt.Sprint("r", i), rule("get", "", "secrets")))
			}
			return append(out, bind("b", "binder", users(0, 2000))), accounts(2000, 1)
		},
		"a chain of accounts, each told by all its grants": func() (out []any, _ escalation.Accounts) {
			for i := range 2000 {
				x := rule("create", "", "serviceaccounts/token")
				x.ResourceNames = []string{fmt.Sprint("sa-", i+1)}
				r := clusterRole(fmt.Sprint("r", i), slices.Repeat([]rbacv1.PolicyRule{x}, 20)...)
				out = append(out, r, bind(fmt.Sprint("b", i), r.Name, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns-0",
					Name: fmt.Sprint("sa-", i)}}))
			}
			out = append(out, clusterRole("cluster-admin", rule("*", "*", "*")), bind("end", "cluster-admin",
				[]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns-0", Name: "sa-2000"}}))
			return out, escalation.Accounts{}
		},
		"products": func() ([]any, escalation.Accounts) { return policyshape.Products().Objects, escalation.Accounts{} },
		"namespaces of one subject": func() (out []any, _ escalation.Accounts) {
			out = append(out, clusterRole("e", rule("escalate", rbacv1.GroupName, "roles"), rule("bind", rbacv1.GroupName, "clusterroles"),
				rule("update", rbacv1.GroupName, "rolebindings")))
			for i := range 20_000 {
				out = append(out, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i), Name: "b"},
					Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:authenticated"}},
					RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "e"}})
			}
			return append(out, bind("b", "e", users(0, 5000))), escalation.Accounts{}
		},
	}
}

func alive() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what cleanups let go
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestHostilePolicies: following any policy terminates with a bounded amount of memory, and so does
// an answer; what a real subject in it reaches is found.
func TestHostilePolicies(t *testing.T) {
	for name, made := range hostile() {
		t.Run(name, func(t *testing.T) {
			objects, accounts := made()
			objects = append(objects, clusterRole("mine", rule("*", "*", "*")),
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mine"},
					Subjects: []rbacv1.Subject{{Kind: "User", Name: "real"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "mine"}})
			policy := snapshot(t, objects...)
			idle := alive()
			c := escalation.New(policy, accounts)
			held := alive() - idle
			paths, count := c.Reaching(nil, 10_000)
			_, large := c.TooLarge(nil, 1)
			r := c.Reach("user-7", nil, 10_000)
			told := alive() - idle - held
			runtime.KeepAlive(policy)
			t.Logf("%+v: %d steps, %d MiB; %d of %d paths, %d too large, one reaches %d (too large: %t), %d MiB", c.Sizes(), c.Taken(),
				held>>20, len(paths), count, large, r.Count, r.TooLarge, told>>20)
			if held>>20 > 512 {
				t.Errorf("a closure of %d MiB: %+v", held>>20, c.Sizes())
			}
			if told>>20 > 128 {
				t.Errorf("answers of %d MiB", told>>20)
			}
			runtime.KeepAlive(paths)
			runtime.KeepAlive(r)
			own, _ := c.Reaching(func(n escalation.Node) bool { return n.Name == "real" }, 0)
			if len(own) != 1 || own[0].TooLarge {
				t.Errorf("a cluster administrator beside it: %+v", own)
			}
		})
	}
}
