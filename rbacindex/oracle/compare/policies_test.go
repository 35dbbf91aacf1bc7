package compare

import (
	"os"
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// TestPolicies goes through generated policies; ORACLE_POLICIES asks for a long run.
func TestPolicies(t *testing.T) {
	n := uint64(2500)
	if testing.Short() {
		n = 500
	}
	if v := os.Getenv("ORACLE_POLICIES"); v != "" {
		var err error
		if n, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("ORACLE_POLICIES: %v", err)
		}
	}
	f, err := CheckPolicies(n, 11)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", f)
	// Each policy has to exercise each check.
	if f.Policies != n || f.WhoCan != 2*n || f.Rows < f.WhoCan || f.Removals < 2*n || f.Decided < 30*n || f.Denials < n ||
		f.Offers < f.Denials {
		t.Errorf("%+v", f)
	}
}

// TestPoliciesFindWrongAnswers: a snapshot that has more than the policy gives wrong answers,
// and each check finds some.
func TestPoliciesFindWrongAnswers(t *testing.T) {
	all := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "\x00all"}
	binding := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "\x00all"}
	for name, check := range map[string]func(generator, *Policy, *rbacindex.Snapshot, *Real, *Figures) error{"who can": whoCan,
		"hygiene": hygiene, "nearest miss": nearestMiss} {
		found := 0
		for i := range uint64(200) {
			g := newGenerator(13, i)
			p := NewPolicy(g.policy()...)
			more := p.Clone()
			more.Apply(
				rbacindex.Change{Key: all, Object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: all.Name},
					Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
						NonResourceURLs: []string{"*"}}}}},
				rbacindex.Change{Key: binding, Object: &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name},
					RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: all.Name},
					Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}, {Kind: "User", Name: "bob"}, {Kind: "Group", Name: "ops"}}}},
			)
			s, err := rbacindex.New(more.Objects()...)
			if err != nil {
				t.Fatal(err)
			}
			if check(g, p, s, NewReal(p), &Figures{}) != nil {
				found++
			}
		}
		if found < 20 {
			t.Errorf("%s: %d of 200 wrong answers are found", name, found)
		}
	}
}
