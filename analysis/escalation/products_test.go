package escalation_test

import (
	"fmt"
	"runtime"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/rbacindex"
)

// TestClosureOfProducts: what 300 bindings of 60 roles give 100 subjects alike is computed once,
// not for each.
func TestClosureOfProducts(t *testing.T) {
	var objects []any
	var subjects []rbacv1.Subject
	for i := range 100 {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprint("user-", i)})
	}
	for i := range 60 {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("role-", i)}}
		for j := range 20 {
			rule := rbacv1.PolicyRule{APIGroups: []string{"", rbacv1.GroupName, "apps"}, Resources: []string{"pods", "secrets",
				"deployments", "clusterroles", "serviceaccounts/token"},
				Verbs: []string{"get", "create", "update", "patch", "bind"}}
			for k := range 60 {
				rule.ResourceNames = append(rule.ResourceNames, fmt.Sprintf("n%d-%d", (i+j)%80, k))
			}
			r.Rules = append(r.Rules, rule)
		}
		objects = append(objects, r)
		for j := range 5 {
			objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%d-%d", i, j)},
				Subjects: subjects,
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name}})
		}
	}
	s, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := escalation.New(s, escalation.Accounts{})
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 512 {
		t.Errorf("%d MiB for a closure of %+v", n, c.Sizes())
	}
	if got := c.Reach("user-7", nil, 10); len(got.Goals) != 0 {
		t.Errorf("named rights lead to %+v", got.Goals)
	}
}
