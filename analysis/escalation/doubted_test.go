package escalation_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// TestBounds: what a lost answer may have opened is listed after what is certain, with the objects
// it rests on; paths that are certain do not name them.
func TestBounds(t *testing.T) {
	binding := func(name, role string, users ...string) *rbacv1.ClusterRoleBinding {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}}
		for _, u := range users {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: u})
		}
		return b
	}
	all := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	objects := []any{
		clusterRole("cluster-admin", all), clusterRole("pretend", rbacv1.PolicyRule{Verbs: []string{"impersonate"}, APIGroups: []string{""},
			Resources: []string{"users"}, ResourceNames: []string{"root"}}),
		binding("admins", "cluster-admin", "root"), binding("b-admins", "cluster-admin", "root"),
	}
	certain := snapshot(t, objects...)
	lost := []rbacindex.Key{
		{Kind: rbacindex.KindClusterRoleBinding, Name: "a-dormant"}, {Kind: rbacindex.KindClusterRoleBinding, Name: "chain"},
	}
	view := state.View{RBAC: certain, Doubted: lost, Most: snapshot(t, append(objects, binding("a-dormant", "cluster-admin", "root",
		"sleeper"), binding("chain", "pretend", "eve"))...)}
	b := escalation.NewBounds(view, escalation.Accounts{})
	lines := func(paths []escalation.Path) (out []string) {
		for i := range paths {
			text := paths[i].From.String() + " to " + paths[i].To.String()
			for _, k := range paths[i].Doubted {
				text += " by " + k.String()
			}
			out = append(out, text)
		}
		return out
	}
	want := []string{
		"User root to cluster-admin", "User sleeper to cluster-admin by ClusterRoleBinding/a-dormant",
		"User eve to cluster-admin by ClusterRoleBinding/chain",
	}
	person := func(n escalation.Node) bool { return n.Kind == escalation.User }
	for limit := range 4 {
		shown := want
		if limit > 0 {
			shown = want[:limit]
		}
		if paths, count := b.Reaching(person, limit); !slices.Equal(lines(paths), shown) || count != len(want) {
			t.Errorf("at most %d: %q, %d in all; want %q", limit, lines(paths), count, shown)
		}
	}
	for user, want := range map[string]struct{ goal, other string }{
		"root":    {"User root to cluster-admin", ""},
		"sleeper": {"User sleeper to cluster-admin by ClusterRoleBinding/a-dormant", ""},
		"eve":     {"User eve to cluster-admin by ClusterRoleBinding/chain", "User eve to User root by ClusterRoleBinding/chain"},
	} {
		r := b.Reach(user, []string{"system:authenticated"}, 1)
		if goals := lines(r.Goals); len(goals) == 0 || goals[0] != want.goal {
			t.Errorf("%s reaches %q, want %q", user, goals, want.goal)
		}
		if others := lines(r.Others); want.other != "" && (len(others) != 1 || others[0] != want.other) {
			t.Errorf("%s becomes %q, want %q", user, others, want.other)
		}
	}
	settled := escalation.NewBounds(state.View{RBAC: view.Most}, escalation.Accounts{})
	if paths, count := settled.Reaching(person, 0); count != 3 || slices.ContainsFunc(paths, func(p escalation.Path) bool {
		return len(p.Doubted) > 0
	}) {
		t.Errorf("settled: %q", lines(paths))
	}
}
