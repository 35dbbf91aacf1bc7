package rbacindex_test

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

func ExampleSnapshot_Authorize() {
	view := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	team := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"},
		RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "devs"}, {Kind: "User", Name: "alice"}}}
	s, err := rbacindex.New(view, team)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := rbacindex.Attributes{User: "alice", Verb: "get", Namespace: "shop", Resource: "pods", Name: "p", ResourceRequest: true}
	for _, g := range s.Authorize(&request, nil).Grants {
		fmt.Println(g.Reason())
	}

	next, err := s.Apply(rbacindex.Change{Key: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "view"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(next.Authorize(&request, nil).Reason())
	// Output:
	// RBAC: allowed by RoleBinding "team/shop" of ClusterRole "view" to User "alice"
	// RBAC: clusterrole.rbac.authorization.k8s.io "view" not found
}
