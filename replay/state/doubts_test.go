package state_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

func TestDoubts(t *testing.T) {
	ref := func(kind, name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: kind, Name: name} }
	rbac, err := rbacindex.New(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "known"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, RoleRef: ref("ClusterRole", "known")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: ref("ClusterRole", "hidden")},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, RoleRef: ref("Role", "local")},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "d"}, RoleRef: ref("ClusterRole", "far")},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "e"}, RoleRef: ref("ClusterRole", "hidden")},
	)
	if err != nil {
		t.Fatal(err)
	}
	key := func(kind rbacindex.Kind, ns, name string) rbacindex.Key {
		return rbacindex.Key{Kind: kind, Namespace: ns, Name: name}
	}
	const role, clusterRole, binding, clusterBinding = rbacindex.KindRole, rbacindex.KindClusterRole, rbacindex.KindRoleBinding,
		rbacindex.KindClusterRoleBinding
	some := []rbacindex.Key{
		key(role, "n", ""), key(clusterRole, "", "far"), key(clusterRole, "", "hidden"), key(clusterRole, "", "unbound"),
		key(binding, "m", "x"), key(binding, "n", ""), key(clusterBinding, "", "y"),
	}
	for _, c := range []struct {
		name       string
		view       state.View
		namespace  string
		everywhere bool
		want       []rbacindex.Key
	}{
		{name: "certain", view: state.View{RBAC: rbac}, everywhere: true},
		{name: "cluster-wide", view: state.View{RBAC: rbac, Unknown: some}, want: []rbacindex.Key{key(clusterRole, "", "hidden"),
			key(clusterBinding, "", "y")}},
		{name: "in a namespace with unnamed objects", view: state.View{RBAC: rbac, Unknown: some}, namespace: "n",
			want: []rbacindex.Key{key(role, "n", "local"), key(clusterRole, "", "hidden"), key(binding, "n", ""), key(clusterBinding, "",
				"y")}},
		{name: "in a namespace with others'", view: state.View{RBAC: rbac, Unknown: some}, namespace: "m",
			want: []rbacindex.Key{key(clusterRole, "", "far"), key(clusterRole, "", "hidden"), key(binding, "m", "x"), key(clusterBinding,
				"", "y")}},
		{name: "everywhere", view: state.View{RBAC: rbac, Unknown: some}, everywhere: true,
			want: []rbacindex.Key{key(role, "n", "local"), key(clusterRole, "", "far"), key(clusterRole, "", "hidden"),
				key(binding, "m", "x"), key(binding, "n", ""), key(clusterBinding, "", "y")}},
		{name: "kinds, cluster-wide", view: state.View{RBAC: rbac, UnknownKinds: []rbacindex.Kind{role, clusterRole, binding,
			clusterBinding}},
			want: []rbacindex.Key{key(clusterRole, "", "hidden"), key(clusterBinding, "", "")}},
		{name: "kinds, in a namespace", view: state.View{RBAC: rbac, UnknownKinds: []rbacindex.Kind{role, binding}}, namespace: "n",
			want: []rbacindex.Key{key(role, "n", "local"), key(binding, "", "")}},
		{name: "roles that nobody names", view: state.View{RBAC: rbac, Unknown: some[3:4]}, everywhere: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.view.Doubts(c.namespace, c.everywhere)
			order := func(a, b rbacindex.Key) int {
				return slices.Compare([]string{fmt.Sprint(a.Kind), a.Namespace, a.Name}, []string{fmt.Sprint(b.Kind), b.Namespace, b.Name})
			}
			slices.SortFunc(got, order)
			slices.SortFunc(c.want, order)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v\nwant %v", got, c.want)
			}
		})
	}
}
