package kubenames

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestUpstream holds the names to those of k8s.io/apiserver and k8s.io/api.
func TestUpstream(t *testing.T) {
	for ours, theirs := range map[string]string{
		Anonymous: user.Anonymous, APIServer: user.APIServerUser, Masters: user.SystemPrivilegedGroup, Nodes: user.NodesGroup,
		Authenticated: user.AllAuthenticated, Unauthenticated: user.AllUnauthenticated,
		ServiceAccounts: serviceaccount.AllServiceAccountsGroup, ServiceAccountPrefix: serviceaccount.ServiceAccountUsernamePrefix,
		ServiceAccount("a", "b"): serviceaccount.MakeUsername("a", "b"), ServiceAccountsOf("a"): serviceaccount.MakeNamespaceGroupName("a"),
		Node("n"): "system:node:n", LastApplied: corev1.LastAppliedConfigAnnotation,
	} {
		if ours != theirs {
			t.Errorf("got %q, want %q", ours, theirs)
		}
	}
}

// TestSplitServiceAccount: what k8s.io/apiserver takes apart is taken apart alike.
func TestSplitServiceAccount(t *testing.T) {
	for _, name := range []string{
		"", "alice", "system:serviceaccount:", "system:serviceaccount:a", "system:serviceaccount:a:", "system:serviceaccount::b",
		"system:serviceaccount:a:b", "system:serviceaccount:a:b:c", "system:serviceaccounts:a:b", "system:serviceaccount:kube-system:x.y-z",
	} {
		namespace, account, ok := SplitServiceAccount(name)
		wantNamespace, wantAccount, err := serviceaccount.SplitUsername(name)
		if ok != (err == nil) || namespace != wantNamespace || account != wantAccount {
			t.Errorf("%q: got %q, %q, %v; want %q, %q, %v", name, namespace, account, ok, wantNamespace, wantAccount, err)
		}
	}
}
