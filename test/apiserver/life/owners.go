package life

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// owned returns a reference to an owner in the namespace.
func owned(kind string, by metav1.Object) []metav1.OwnerReference {
	block := true
	api := map[string]string{"ConfigMap": "v1", "Pod": "v1", "Role": rbacv1.SchemeGroupVersion.String(),
		"ClusterRole": rbacv1.SchemeGroupVersion.String()}
	return []metav1.OwnerReference{{APIVersion: api[kind], Kind: kind, Name: by.GetName(), UID: by.GetUID(), BlockOwnerDeletion: &block}}
}

var readPods = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}

// ownedRoles: a Role and a RoleBinding go with the ConfigMap that owns them, or are orphaned.
func (s *stage) ownedRoles() error {
	owner, err := s.developer.CoreV1().ConfigMaps(s.ns).Create(s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "release"}},
		create)
	if err != nil {
		return err
	}
	rbac := s.Admin.RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: owned("ConfigMap", owner)}, Rules: readPods}
	if _, err := rbac.Roles(s.ns).Create(s.ctx, role, create); err != nil {
		return err
	}
	given := within("owned", "Role", "owned", user("olaf-"+s.ns))
	given.OwnerReferences = role.OwnerReferences
	if _, err := rbac.RoleBindings(s.ns).Create(s.ctx, given, create); err != nil {
		return err
	}
	olaf := s.as(s.User(s.t, "olaf-"+s.ns))
	ask := func() (bool, error) {
		_, err := olaf.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	}
	if err := s.until("a right to be there", ask); err != nil {
		return err
	}
	if err := s.developer.CoreV1().ConfigMaps(s.ns).Delete(s.ctx, "release",
		metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	if err := s.until("the owner to be gone", func() (bool, error) {
		_, err := s.Admin.CoreV1().ConfigMaps(s.ns).Get(s.ctx, "release", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}); err != nil {
		return err
	}
	for range 5 {
		if _, err := ask(); err != nil {
			return err
		}
	}
	return nil
}

// ownedBindings: cluster-wide bindings are deleted in every way, by clients that ask for no
// more than metadata as well, and people use them until the end.
func (s *stage) ownedBindings() error {
	rbac, name := s.Admin.RbacV1(), "wide-"+s.ns
	role, err := rbac.ClusterRoles().Create(s.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: readPods}, create)
	if err != nil {
		return err
	}
	for i := range 2 {
		b := binding(fmt.Sprintf("%s-%d", name, i), name, user("willa-"+s.ns))
		b.OwnerReferences = owned("ClusterRole", role)
		if _, err := rbac.ClusterRoleBindings().Create(s.ctx, b, create); err != nil {
			return err
		}
	}
	if _, err := rbac.ClusterRoleBindings().Create(s.ctx, binding(name+"-own", name, user("willa-"+s.ns)), create); err != nil {
		return err
	}
	bindings := s.metadata.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"))
	willa := s.as(s.User(s.t, "willa-"+s.ns))
	ask := func() {
		_, _ = willa.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{Limit: 1}) // allowed or not, as it comes
		_, _ = s.visitor.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{Limit: 1})
	}
	ask()
	if _, err := bindings.Patch(s.ctx, name+"-own", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`),
		metav1.PatchOptions{}); err != nil {
		return err
	}
	ask()
	if err := bindings.Delete(s.ctx, name+"-own", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	ask()
	if err := rbac.ClusterRoles().Delete(s.ctx, name, metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	for range 4 {
		ask()
	}
	err = rbac.ClusterRoleBindings().Delete(s.ctx, name+"-0", metav1.DeleteOptions{PropagationPolicy: s.propagation()})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	ask()
	return nil
}

// ownedPods: pods that own pods and ConfigMaps.
func (s *stage) ownedPods() error {
	pods := s.developer.CoreV1().Pods(s.ns)
	owner, err := pods.Create(s.ctx, pod("parent", "runs"), create)
	if err != nil {
		return err
	}
	for i := range 2 {
		child := pod(fmt.Sprintf("child-%d", i), "runs")
		child.Labels, child.OwnerReferences = labels("child"), owned("Pod", owner)
		if _, err := pods.Create(s.ctx, child, create); err != nil {
			return err
		}
	}
	if err := s.run("app=child", 2); err != nil {
		return err
	}
	way := s.propagation()
	if err := pods.Delete(s.ctx, "parent", metav1.DeleteOptions{PropagationPolicy: way}); err != nil {
		return err
	}
	if err := s.gone("app=parent"); err != nil {
		return err
	}
	if way != nil && *way == metav1.DeletePropagationOrphan {
		return s.run("app=child", 2)
	}
	return s.gone("app=child")
}

// finalizers hold objects back until somebody takes them away: by a patch, by an update, by a
// client that asks for metadata alone.
func (s *stage) finalizers() error {
	hold := []string{"example.com/hold"}
	p := pod("held", "runs")
	p.Finalizers = hold
	if _, err := s.developer.CoreV1().Pods(s.ns).Create(s.ctx, p, create); err != nil {
		return err
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: hold}, Rules: readPods}
	if _, err := s.Admin.RbacV1().Roles(s.ns).Create(s.ctx, role, create); err != nil {
		return err
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: hold}}
	if _, err := s.Admin.CoreV1().ServiceAccounts(s.ns).Create(s.ctx, sa, create); err != nil {
		return err
	}
	if err := s.run("app=held", 1); err != nil {
		return err
	}
	free := []byte(`{"metadata":{"finalizers":null}}`)
	for _, gvr := range []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("pods"),
		rbacv1.SchemeGroupVersion.WithResource("roles"), corev1.SchemeGroupVersion.WithResource("serviceaccounts")} {
		held := s.metadata.Resource(gvr).Namespace(s.ns)
		if err := held.Delete(s.ctx, "held", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
			return err
		}
		way := s.rng.IntN(3)
		// The garbage collector changes what is being deleted in the foreground.
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			switch way {
			case 0:
				_, err := held.Patch(s.ctx, "held", types.MergePatchType, free, metav1.PatchOptions{})
				return err
			case 1:
				_, err := s.dynamic.Resource(gvr).Namespace(s.ns).Patch(s.ctx, "held", types.MergePatchType, free, metav1.PatchOptions{})
				return err
			default:
				o, err := s.dynamic.Resource(gvr).Namespace(s.ns).Get(s.ctx, "held", metav1.GetOptions{})
				if err != nil {
					return err
				}
				o.SetFinalizers(nil)
				_, err = s.dynamic.Resource(gvr).Namespace(s.ns).Update(s.ctx, o, metav1.UpdateOptions{})
				return err
			}
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	_, err := s.metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(s.ns).Patch(s.ctx, "held", types.MergePatchType,
		free, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return s.gone("app=held")
}

// tokens of service accounts are asked for, used, and outlive what they were bound to.
func (s *stage) tokens() error {
	accounts := s.developer.CoreV1().ServiceAccounts(s.ns)
	if _, err := accounts.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, create); err != nil {
		return err
	}
	if _, err := s.Admin.RbacV1().RoleBindings(s.ns).Create(s.ctx, within("robot", "ClusterRole", "view", account(s.ns, "robot")),
		create); err != nil {
		return err
	}
	p := pod("bound", "runs")
	p.Spec.ServiceAccountName = "robot"
	bound, err := s.developer.CoreV1().Pods(s.ns).Create(s.ctx, p, create)
	if err != nil {
		return err
	}
	var clients []func()
	for _, to := range []*authenticationv1.BoundObjectReference{nil, {APIVersion: "v1", Kind: "Pod", Name: bound.Name, UID: bound.UID}} {
		answer, err := s.Admin.CoreV1().ServiceAccounts(s.ns).CreateToken(s.ctx, "robot",
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: to}}, create)
		if err != nil {
			return err
		}
		robot := s.as(s.Bearer(answer.Status.Token))
		clients = append(clients, func() { // whatever the answer: the token may be worth nothing by now
			_, _ = robot.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{})
			_, _ = robot.CoreV1().Secrets(s.ns).List(s.ctx, metav1.ListOptions{})
		})
	}
	use := func() {
		for _, c := range clients {
			c()
		}
	}
	use()
	if err := s.run("app=bound", 1); err != nil {
		return err
	}
	use()
	if err := s.developer.CoreV1().Pods(s.ns).Delete(s.ctx, "bound", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := s.gone("app=bound"); err != nil {
		return err
	}
	use()
	if err := accounts.Delete(s.ctx, "robot", metav1.DeleteOptions{PropagationPolicy: s.propagation()}); err != nil {
		return err
	}
	use()
	return nil
}

// people ask what they may do, and try.
func (s *stage) people() error {
	for _, who := range []*kubernetes.Clientset{s.developer, s.visitor} {
		for _, resource := range []string{"pods", "secrets", "configmaps", "serviceaccounts"} {
			err := who.CoreV1().RESTClient().Get().Namespace(s.ns).Resource(resource).Do(s.ctx).Error()
			if err != nil && !apierrors.IsForbidden(err) {
				return err
			}
		}
	}
	for _, verb := range []string{"get", "create", "delete", "escalate"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.ns, Verb: verb, Resource: pick(s, "pods", "secrets",
				"deployments")}}}
		if _, err := s.visitor.AuthorizationV1().SelfSubjectAccessReviews().Create(s.ctx, review, create); err != nil {
			return err
		}
	}
	_, err := s.visitor.CoreV1().Pods(s.ns).Create(s.ctx, pod("mine", "runs"), create)
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("a visitor makes a pod: %w", errUnexpected)
	}
	return nil
}
