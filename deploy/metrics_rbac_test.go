package deploy

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestMetricsRBAC: the manifest is valid to the letter and grants its account the path of the
// counters, and nothing more.
func TestMetricsRBAC(t *testing.T) {
	docs := bytes.Split(MetricsRBAC, []byte("\n---\n"))
	if len(docs) != 4 {
		t.Fatalf("%d documents", len(docs))
	}
	var namespace corev1.Namespace
	var account corev1.ServiceAccount
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	for i, into := range []any{&namespace, &account, &role, &binding} {
		if err := yaml.UnmarshalStrict(docs[i], into); err != nil {
			t.Fatal(err)
		}
	}
	if len(role.Rules) != 1 || len(role.Rules[0].NonResourceURLs) != 1 || role.Rules[0].NonResourceURLs[0] != "/metrics" ||
		len(role.Rules[0].Verbs) != 1 || role.Rules[0].Verbs[0] != "get" || len(role.Rules[0].Resources) != 0 {
		t.Errorf("it grants %+v", role.Rules)
	}
	if binding.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}) ||
		len(binding.Subjects) != 1 ||
		binding.Subjects[0] != (rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}) ||
		account.Namespace != namespace.Name {
		t.Errorf("binding %+v of %+v", binding, account)
	}
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken ||
		namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("account %+v in %+v", account, namespace)
	}
}
