package deploy

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/ingest/watch"
)

// TestWatchRBAC: the manifest is valid to the letter and grants to list and watch what is
// watched, and nothing more.
func TestWatchRBAC(t *testing.T) {
	file, err := os.ReadFile("watch-rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var (
		namespace corev1.Namespace
		account   corev1.ServiceAccount
		role      rbacv1.ClusterRole
		binding   rbacv1.ClusterRoleBinding
	)
	into := map[string]any{"Namespace": &namespace, "ServiceAccount": &account, "ClusterRole": &role, "ClusterRoleBinding": &binding}
	for doc := range bytes.SplitSeq(file, []byte("\n---\n")) {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		target, ok := into[head.Kind]
		if !ok {
			t.Fatalf("kind %q is unexpected or there twice", head.Kind)
		}
		if err := yaml.UnmarshalStrict(doc, target); err != nil {
			t.Errorf("%s: %v", head.Kind, err)
		}
		delete(into, head.Kind)
	}
	if len(into) != 0 {
		t.Fatalf("missing: %v", into)
	}

	var granted, needed []string
	for _, rule := range role.Rules {
		if len(rule.ResourceNames)+len(rule.NonResourceURLs) != 0 {
			t.Errorf("rule %v is limited to names or grants paths", rule)
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					granted = append(granted, strings.TrimSuffix(verb+" "+resource+"."+group, "."))
				}
			}
		}
	}
	for _, k := range watch.Kinds() {
		if k.MetadataOnly {
			continue // more than that cannot be kept out of a grant
		}
		needed = append(needed, "list "+k.Resource, "watch "+k.Resource)
	}
	slices.Sort(granted)
	slices.Sort(needed)
	if !slices.Equal(granted, needed) {
		t.Errorf("granted %v\nneeded %v", granted, needed)
	}

	if binding.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}) {
		t.Errorf("the binding names %v", binding.RoleRef)
	}
	want := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
	if !slices.Equal(binding.Subjects, want) || account.Namespace != namespace.Name {
		t.Errorf("bound to %v, the account is %s/%s", binding.Subjects, account.Namespace, account.Name)
	}
}
