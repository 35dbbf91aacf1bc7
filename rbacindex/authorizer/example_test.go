package authorizer_test

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	rbacauthorizer "github.com/retrial-io/retrial/rbacindex/authorizer"
)

// An apiserver takes it as genericapiserver.Config.Authorization.Authorizer, in a union behind
// the authorizer of privileged groups, and as Config.RuleResolver.
func ExampleNew() {
	client := fake.NewClientset(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "devs"}}},
	)
	factory := kubeinformers.NewSharedInformerFactory(client, 0)

	rbac, err := rbacauthorizer.New(rbacauthorizer.Config{Informers: factory.Rbac().V1()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rbac.Close()

	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	cache.WaitForCacheSync(ctx.Done(), rbac.HasSynced)

	decision, reason, err := rbac.Authorize(ctx, authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "alice", Groups: []string{"devs"}}, Verb: "get", Namespace: "shop", Resource: "pods",
		ResourceRequest: true})
	fmt.Println(decision == authorizer.DecisionAllow, reason, err)
	// Output:
	// true RBAC: allowed by RoleBinding "team/shop" of ClusterRole "view" to Group "devs" <nil>
}
