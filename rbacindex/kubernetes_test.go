package rbacindex

import "testing"

func TestOfKubernetes(t *testing.T) {
	for _, c := range []struct {
		namespace, name string
		want            bool
	}{
		{"", "system:node:n1", true}, {"", "system:masters", true}, {"kube-system", "coredns", true}, {"kube-flannel", "flannel", true},
		{"", "alice", false}, {"", "admin", false}, {"shop", "api", false}, {"kubeapps", "api", false}, {"", "systemd", false},
	} {
		if got := OfKubernetes(c.namespace, c.name); got != c.want {
			t.Errorf("%s/%s: %v", c.namespace, c.name, got)
		}
	}
	for k, want := range map[Key]bool{
		{Kind: KindClusterRole, Name: "view"}:                                  true,
		{Kind: KindRole, Namespace: "shop", Name: "view"}:                      false,
		{Kind: KindClusterRoleBinding, Name: "cluster-admin"}:                  true,
		{Kind: KindClusterRoleBinding, Name: "view"}:                           false,
		{Kind: KindRoleBinding, Namespace: "kube-system", Name: "leader"}:      true,
		{Kind: KindClusterRoleBinding, Name: "system:basic-user"}:              true,
		{Kind: KindRoleBinding, Namespace: "shop", Name: "system-controllers"}: false,
	} {
		if got := k.OfKubernetes(); got != want {
			t.Errorf("%s: %v", k, got)
		}
	}
}
