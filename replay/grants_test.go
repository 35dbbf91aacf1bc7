package replay

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// TestGrantMemory words the grants of many subjects again and again: always as without a
// memory, and the second time in a row without words of its own.
func TestGrantMemory(t *testing.T) {
	var changes []rbacindex.Change
	add := func(k rbacindex.Key, o any) { changes = append(changes, rbacindex.Change{Key: k, Object: o}) }
	add(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "r"}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"*"}}}})
	const subjects = grantPlaces + 200
	for i := range subjects {
		for _, name := range []string{fmt.Sprint("own", i), fmt.Sprint("shared", i%7, "-", i)} {
			add(rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: name},
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
					RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
					Subjects: []rbacv1.Subject{{Kind: "User", Name: fmt.Sprint("u", i)}}})
		}
	}
	s, err := rbacindex.Empty().Apply(changes...)
	if err != nil {
		t.Fatal(err)
	}
	m, bufs := newGrantMemory(), &buffers{}
	for range 2 {
		for i := range subjects {
			for _, verb := range []string{"get", "list"} {
				res := s.Authorize(&rbacindex.Attributes{User: fmt.Sprint("u", i), Verb: verb, ResourceRequest: true, Resource: "nodes"},
					nil)
				got, want := m.worded(res.Grants, bufs), bufs.detach(nil, res.Grants)
				if len(want) != 2 || !reflect.DeepEqual(got, want) {
					t.Fatalf("u%d %s: %v, want %v", i, verb, got, want)
				}
				if again := m.worded(res.Grants, bufs); &again[0] != &got[0] {
					t.Fatalf("u%d %s: worded twice", i, verb)
				}
			}
		}
	}
	if m.worded(nil, bufs) != nil {
		t.Error("nothing is worded")
	}
}

// TestGrantsListed: of thousands of grants the first are listed, and those with long names only as
// far as there is room; what is listed is worded as ever.
func TestGrantsListed(t *testing.T) {
	policy := func(n, long int) *rbacindex.Snapshot {
		objects := []any{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"},
			APIGroups: []string{""}, Resources: []string{"nodes"}}}}}
		for i := range n {
			objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%05d%s", i,
				strings.Repeat("x", long))},
				RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "u"}}})
		}
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct{ bindings, long, want int }{{1, 0, 1}, {mostGrants, 0, mostGrants}, {10_000, 0, mostGrants},
		{100, 10_000, 6}, {3, 1 << 20, 1}} {
		res := policy(c.bindings, c.long).Authorize(&rbacindex.Attributes{User: "u", Verb: "get", ResourceRequest: true, Resource: "nodes"},
			nil)
		got := newGrantMemory().worded(res.Grants, &buffers{})
		if len(res.Grants) != c.bindings || len(got) != c.want {
			t.Fatalf("%+v: %d of %d grants are listed", c, len(got), len(res.Grants))
		}
		for i := range got {
			if got[i].Reason != res.Grants[i].Reason() || got[i].Binding != res.Grants[i].Binding() {
				t.Errorf("%+v: grant %d is %.80v", c, i, got[i])
			}
		}
	}
}
