package apiserver

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

const rbacGroup = rbacv1.GroupName

// everything is what cluster-admin may do with resources.
var everything = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}

// policyEscalations change roles and bindings.
var policyEscalations = []escalation{
	{edge: "bind", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: rbacGroup, resource: "clusterrolebindings"},
			{verb: "bind", group: rbacGroup, resource: "clusterroles", name: "cluster-admin"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-mine"},
				Subjects: a.self(), RoleRef: clusterAdmin}, metav1.CreateOptions{})
		return a.config, err
	}},
	{edge: "bind", how: "namespace", namespaced: true, grants: func(string, string) []grant {
		return []grant{{namespace: vault, verb: "create", group: rbacGroup, resource: "rolebindings"},
			{namespace: vault, verb: "bind", group: rbacGroup, resource: "clusterroles", name: "cluster-admin"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().RoleBindings(vault).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-mine"},
				Subjects: a.self(), RoleRef: clusterAdmin}, metav1.CreateOptions{})
		return a.config, err
	}},
	// The namespace of the controllers leads further: whoever may do everything there is any of
	// them.
	{edge: "bind", how: "chain", path: []string{"bind", "token-request|impersonate", "escalate"}, grants: func(string, string) []grant {
		return []grant{{namespace: metav1.NamespaceSystem, verb: "create", group: rbacGroup, resource: "rolebindings"},
			{namespace: metav1.NamespaceSystem, verb: "bind", group: rbacGroup, resource: "clusterroles", name: "cluster-admin"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-mine"},
				Subjects: a.self(), RoleRef: clusterAdmin}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return a.aggregator(), nil
	}},
	// A binding to a role one may bind takes in whoever one likes.
	{edge: "bind", how: "patch", grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: rbacGroup, resource: "clusterrolebindings", name: name + "-theirs"},
			{verb: "bind", group: rbacGroup, resource: "clusterroles", name: "cluster-admin"}}
	}, prepare: func(t *testing.T, s *scene, _, name string) {
		_, err := s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-theirs"},
				RoleRef: clusterAdmin}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().ClusterRoleBindings().Patch(ctx, a.name+"-theirs", types.MergePatchType,
			mustJSON(a.t, map[string]any{"subjects": a.self()}), metav1.PatchOptions{})
		return a.config, err
	}},
	// The role that is changed is the one that gives the right to change it.
	{edge: "escalate", grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: rbacGroup, resource: "clusterroles", name: name + "-1"},
			{verb: "escalate", group: rbacGroup, resource: "clusterroles", name: name + "-1"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().ClusterRoles().Patch(ctx, a.name+"-1", types.MergePatchType,
			mustJSON(a.t, map[string]any{"rules": everything}), metav1.PatchOptions{})
		return a.config, err
	}},
	{edge: "escalate", how: "namespace", namespaced: true, grants: func(_, name string) []grant {
		return []grant{{namespace: vault, verb: "patch", group: rbacGroup, resource: "roles", name: name + "-1"},
			{namespace: vault, verb: "escalate", group: rbacGroup, resource: "roles", name: name + "-1"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().Roles(vault).Patch(ctx, a.name+"-1", types.MergePatchType,
			mustJSON(a.t, map[string]any{"rules": everything}), metav1.PatchOptions{})
		return a.config, err
	}},
	// Neither of the last two: what one holds may be passed on, nothing else.
	{edge: "role-write", none: true, grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: rbacGroup, resource: "clusterroles", name: name + "-1"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		held := append(everything[:0:0], a.grants[0].rule(), a.grants[0].rule())
		if _, err := a.client.RbacV1().ClusterRoles().Patch(ctx, a.name+"-1", types.MergePatchType,
			mustJSON(a.t, map[string]any{"rules": held}), metav1.PatchOptions{}); err != nil {
			a.t.Errorf("what is held: %v", err)
		}
		_, err := a.client.RbacV1().ClusterRoles().Patch(ctx, a.name+"-1", types.MergePatchType,
			mustJSON(a.t, map[string]any{"rules": everything}), metav1.PatchOptions{})
		return a.config, err
	}},
	{edge: "binding-write", none: true, grants: func(_, name string) []grant {
		return []grant{{verb: "create", group: rbacGroup, resource: "clusterrolebindings"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		held := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: a.name + "-1"}
		for _, to := range []rbacv1.RoleRef{held, clusterAdmin} {
			_, err := a.client.RbacV1().ClusterRoleBindings().Create(ctx,
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-to-" + to.Name},
					Subjects: a.self(), RoleRef: to}, metav1.CreateOptions{})
			if to == clusterAdmin {
				return a.config, err
			}
			if err != nil {
				a.t.Errorf("what is held: %v", err)
			}
		}
		return nil, nil
	}},
}

// self returns the attacker as a binding names it.
func (a *attacker) self() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacGroup, Kind: rbacv1.UserKind, Name: a.name}}
}

// aggregator returns the controller of aggregated roles, which may change any, and has: its own.
// Nobody has made its account here yet.
func (a *attacker) aggregator() *rest.Config {
	const account = "clusterrole-aggregation-controller"
	var reached *rest.Config
	controlplane.Poll(a.t, "to have all rights in kube-system", func(ctx context.Context) (bool, string) {
		accounts := a.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
		_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return false, err.Error()
		}
		answer, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			return false, err.Error()
		}
		reached = a.Bearer(answer.Status.Token)
		return true, ""
	})
	_, err := clientOf(a.t, reached).RbacV1().ClusterRoles().Patch(a.t.Context(), "system:controller:"+account, types.MergePatchType,
		mustJSON(a.t, map[string]any{"rules": everything}), metav1.PatchOptions{})
	if err != nil {
		a.t.Errorf("as %s: %v", account, err)
	}
	return reached
}
