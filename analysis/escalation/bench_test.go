package escalation_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
)

// large returns the bootstrap policy with n ClusterRoleBindings and n RoleBindings in up to 5,000
// namespaces, of which a part leads further.
func large(tb testing.TB, n int) []any {
	out := bootstrap(tb)
	roles := []*rbacv1.ClusterRole{
		clusterRole("reader", rule("get", "", "pods")), clusterRole("podder", rule("create", "", "pods")), clusterRole("secrets",
			rule("get", "", "secrets")),
		clusterRole("binder", rule("create", groupRBAC, "clusterrolebindings"), rule("bind", groupRBAC, "clusterroles")),
		clusterRole("deployer", rule("create", "apps", "deployments"), rule("create", "", "pods/exec")),
	}
	for _, r := range roles {
		out = append(out, r)
	}
	for i := range n {
		role := "reader"
		if i%50 == 0 {
			role = roles[i/50%len(roles)].Name
		}
		out = append(out, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("crb-", i)},
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: fmt.Sprint("user-", i)}}})
		ns := fmt.Sprint("ns-", i%min(5000, max(1, n/10)))
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("rb-", i)},
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: []string{"edit", "view", "podder"}[i%3]},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: fmt.Sprint("user-", i)}}}
		if i%2 == 0 {
			b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: fmt.Sprint("sa-", i%7)}}
		}
		out = append(out, b)
	}
	return out
}

func BenchmarkClosure(b *testing.B) {
	for _, n := range []int{0, 1000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("bindings=%d", n), func(b *testing.B) {
			policy := snapshot(b, large(b, n)...)
			b.ReportAllocs()
			reaching := 0
			for b.Loop() {
				c := escalation.New(policy, escalation.Accounts{})
				_, reaching = c.Reaching(nil, 0)
			}
			s := escalation.New(policy, escalation.Accounts{}).Sizes()
			b.ReportMetric(float64(s.Edges), "edges")
			b.ReportMetric(float64(reaching), "reaching")
		})
	}
}
