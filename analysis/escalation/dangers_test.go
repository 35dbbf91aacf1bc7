package escalation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestDangers: every way to more rights takes a danger, every danger is documented, and what a right is restricted to counts.
func TestDangers(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "escalations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var taken []Edge
	for _, d := range Dangers() {
		if d.ID != "cluster-admin" {
			taken = append(taken, d.Edges...)
		}
		if !strings.Contains(string(docs), "`"+d.ID+"`") {
			t.Errorf("docs/escalations.md does not name %s", d.ID)
		}
	}
	for _, e := range Edges() {
		if !slices.Contains(taken, e) {
			t.Errorf("no danger is taken by %s", e)
		}
	}
	rule := func(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names}
	}
	for _, c := range []struct {
		what   string
		rule   rbacv1.PolicyRule
		wide   string // dangers by a ClusterRoleBinding
		narrow string // by a RoleBinding
	}{
		{"nothing", rule("", "configmaps", nil, "*"), "", ""},
		{"secrets", rule("", "secrets", nil, "list"), "secrets-read", "secrets-read"},
		{"one secret", rule("", "secrets", []string{"s"}, "get"), "secrets-read", "secrets-read"},
		{"create of one secret", rule("", "secrets", []string{"s"}, "create"), "", ""},
		{"another group", rule("x", "secrets", nil, "list"), "", ""},
		{"nodes", rule("", "nodes/proxy", nil, "get"), "node-proxy", ""},
		{"subresources", rule("", "*/exec", nil, "create"), "pod-exec", "pod-exec"},
		{"clusterroles", rule(rbacv1.GroupName, "clusterroles", []string{"admin"}, "bind", "escalate"), "escalate bind", "bind"},
		{"signers", rule("certificates.k8s.io", "signers", []string{"kubernetes.io/*"}, "approve"), "csr-approve", ""},
		{"everything", rule("*", "*", nil, "*"), "cluster-admin escalate bind impersonate rbac-write node-proxy token-request " +
			"secrets-read secrets-write csr-approve webhook-write policy-write pod-exec pod-create workload-write",
			"cluster-admin escalate bind impersonate rbac-write token-request secrets-read secrets-write pod-exec pod-create " +
				"workload-write"},
	} {
		for namespaced, want := range map[bool]string{false: c.wide, true: c.narrow} {
			var got []string
			for _, d := range Dangers() {
				if names, ok := d.Held(&c.rule, namespaced); ok {
					got = append(got, d.ID)
					if !slices.Equal(names, c.rule.ResourceNames) {
						t.Errorf("%s: %s of %q", c.what, d.ID, names)
					}
				}
			}
			if text := strings.Join(got, " "); text != want {
				t.Errorf("%s, namespaced %v: %q, want %q", c.what, namespaced, text, want)
			}
		}
	}
	for _, d := range Dangers() {
		if d.ID == "secrets-read" && (!d.Asked("get", "", "secrets", "") || d.Asked("get", "", "pods", "")) ||
			d.ID == "cluster-admin" && !d.Asked("get", "", "pods", "") {
			t.Errorf("%s is asked otherwise", d.ID)
		}
	}
}
