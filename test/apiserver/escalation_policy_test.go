package apiserver

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
		_, err := a.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-mine"},
			Subjects: a.self(), RoleRef: clusterAdmin}, metav1.CreateOptions{})
		return a.config, err
	}},
	{edge: "bind", how: "namespace", namespaced: true, grants: func(string, string) []grant {
		return []grant{{namespace: metav1.NamespaceSystem, verb: "create", group: rbacGroup, resource: "rolebindings"},
			{namespace: metav1.NamespaceSystem, verb: "bind", group: rbacGroup, resource: "clusterroles", name: "cluster-admin"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-mine"},
			Subjects: a.self(), RoleRef: clusterAdmin}, metav1.CreateOptions{})
		return a.config, err
	}},
	// A binding to a role one may bind takes in whoever one likes.
	{edge: "bind", how: "patch", grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: rbacGroup, resource: "clusterrolebindings", name: name + "-theirs"},
			{verb: "bind", group: rbacGroup, resource: "clusterroles", name: "cluster-admin"}}
	}, prepare: func(t *testing.T, s *scene, _, name string) {
		_, err := s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-theirs"},
			RoleRef: clusterAdmin}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().ClusterRoleBindings().Patch(ctx, a.name+"-theirs", types.MergePatchType, mustJSON(a.t, map[string]any{"subjects": a.self()}), metav1.PatchOptions{})
		return a.config, err
	}},
	// The role that is changed is the one that gives the right to change it.
	{edge: "escalate", grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: rbacGroup, resource: "clusterroles", name: name + "-1"},
			{verb: "escalate", group: rbacGroup, resource: "clusterroles", name: name + "-1"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().ClusterRoles().Patch(ctx, a.name+"-1", types.MergePatchType, mustJSON(a.t, map[string]any{"rules": everything}), metav1.PatchOptions{})
		return a.config, err
	}},
	{edge: "escalate", how: "namespace", namespaced: true, grants: func(_, name string) []grant {
		return []grant{{namespace: metav1.NamespaceSystem, verb: "patch", group: rbacGroup, resource: "roles", name: name + "-1"},
			{namespace: metav1.NamespaceSystem, verb: "escalate", group: rbacGroup, resource: "roles", name: name + "-1"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		_, err := a.client.RbacV1().Roles(metav1.NamespaceSystem).Patch(ctx, a.name+"-1", types.MergePatchType, mustJSON(a.t, map[string]any{"rules": everything}), metav1.PatchOptions{})
		return a.config, err
	}},
	// Neither of the last two: what one holds may be passed on, nothing else.
	{edge: "role-write", none: true, grants: func(_, name string) []grant {
		return []grant{{verb: "patch", group: rbacGroup, resource: "clusterroles", name: name + "-1"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		held := append(everything[:0:0], a.grants[0].rule(), a.grants[0].rule())
		if _, err := a.client.RbacV1().ClusterRoles().Patch(ctx, a.name+"-1", types.MergePatchType, mustJSON(a.t, map[string]any{"rules": held}), metav1.PatchOptions{}); err != nil {
			a.t.Errorf("what is held: %v", err)
		}
		_, err := a.client.RbacV1().ClusterRoles().Patch(ctx, a.name+"-1", types.MergePatchType, mustJSON(a.t, map[string]any{"rules": everything}), metav1.PatchOptions{})
		return a.config, err
	}},
	{edge: "binding-write", none: true, grants: func(_, name string) []grant {
		return []grant{{verb: "create", group: rbacGroup, resource: "clusterrolebindings"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		held := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: a.name + "-1"}
		for _, to := range []rbacv1.RoleRef{held, clusterAdmin} {
			_, err := a.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-to-" + to.Name},
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

// self is the attacker as a binding names it.
func (a *attacker) self() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacGroup, Kind: rbacv1.UserKind, Name: a.name}}
}
