package changeset

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/query"
)

func meta(kind, namespace, name string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}, metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func clusterRole(name string, verbs ...string) *rbacv1.ClusterRole {
	t, m := meta("ClusterRole", "", name)
	return &rbacv1.ClusterRole{TypeMeta: t, ObjectMeta: m,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}}}
}

func roleBinding(namespace, name, role string, users ...string) *rbacv1.RoleBinding {
	t, m := meta("RoleBinding", namespace, name)
	b := &rbacv1.RoleBinding{TypeMeta: t, ObjectMeta: m,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	for _, u := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: u})
	}
	return b
}

// sampled is a change of every kind.
func sampled(evil string) *query.SuggestAnswer {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	removes := func(b *rbacv1.RoleBinding, action string, rest any) leastpriv.Remove {
		return leastpriv.Remove{Kind: "RoleBinding", Namespace: b.Namespace, Name: b.Name, Action: action, Subjects: b.Subjects[:1],
			Object: rest}
	}
	alone, shared := roleBinding("shop", "alone", "wide", "ann"), roleBinding("shop", "shared", "wide", "ann", "ben")
	chart, odd := roleBinding("shop", "chart", "wide", "ann"), roleBinding("shop", evil, "wide", "ann")
	return &query.SuggestAnswer{
		Cluster: "test|" + evil, Window: leastpriv.Recording{From: at, To: at.Add(24 * time.Hour), Requests: 9, Gaps: []string{evil}},
		Suggestions: []*leastpriv.Suggestion{{Subject: evil, What: leastpriv.WhatSubject, Gaps: []string{evil},
			Size: leastpriv.Size{Apply: 1}}},
		Plan: &leastpriv.Plan{
			Apply: leastpriv.Objects{clusterRole("mine", "get"), clusterRole("theirs", "get"), clusterRole("copy:a.b", "get"),
				roleBinding("shop", "copy", "copy:a.b", "ann")},
			Remove: []leastpriv.Remove{removes(alone, leastpriv.ActionDelete, nil), removes(chart, leastpriv.ActionDelete, nil),
				removes(shared, leastpriv.ActionReplace, roleBinding("shop", "shared", "wide", "ben")),
				removes(odd, leastpriv.ActionDelete, nil),
				{Kind: "ClusterRole", Name: "wide", Action: leastpriv.ActionDelete}},
			Rollback: leastpriv.Objects{clusterRole("mine", "*"), clusterRole("theirs", "*"), clusterRole("wide", "*"), alone, shared,
				chart, odd},
			Owned: []leastpriv.Owned{{Object: "ClusterRole/theirs", Owner: "a Helm release"},
				{Object: "RoleBinding/shop/chart", Owner: "Helm release shop/web"}},
			Why: []leastpriv.RuleReason{{Role: "ClusterRole/mine", Texts: []string{"because " + evil}},
				{Role: "ClusterRole/copy:a.b", Texts: []string{"because"}}}},
	}
}

// TestFiles: everything of a change is in the file it belongs in, nobody's name reaches a terminal or ends a comment, and what reads files
// reads these.
func TestFiles(t *testing.T) {
	evil := "eve\n---\nkind: Secret\u2028\x1b[2J`'; rm -rf /; '|"
	list, err := Files(sampled(evil))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
		files[f.Name] = string(f.Text)
		for _, bad := range []string{"\x1b", "\u2028", "\nkind: Secret"} {
			if strings.Contains(string(f.Text), bad) {
				t.Errorf("%q is in %s", bad, f.Name)
			}
		}
		if into := new(any); strings.HasSuffix(f.Name, ".yaml") {
			for _, doc := range strings.Split(string(f.Text), "\n---\n") {
				if err := yaml.Unmarshal([]byte(doc), into); err != nil {
					t.Errorf("%s: %v in\n%s", f.Name, err, doc)
				}
			}
		}
		if strings.HasSuffix(f.Name, ".sh") {
			if out, err := exec.Command("sh", "-n", "-c", string(f.Text)).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", f.Name, err, out)
			}
		}
	}
	want := []string{"README.md", "apply.sh", "apply/clusterrole.copy-a.b-" + hashOf(files) + ".yaml", "kustomization.yaml",
		"owners/helm-release-shop-web.yaml", "owners/helm-release.yaml", "patches/clusterrole.mine.yaml", "patches/kustomization.yaml",
		"remove.sh", "remove/clusterrole.wide.yaml", "remove/kustomization.yaml", "remove/rolebinding.shop.alone.yaml",
		"remove/rolebinding.shop.shared.yaml", "rollback.sh", "rollback/clusterrole.mine.yaml", "rollback/clusterrole.wide.yaml",
		"rollback/rolebinding.shop.alone.yaml", "rollback/rolebinding.shop.shared.yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("files\n%q, want\n%q", names, want)
	}
	for name, parts := range map[string][]string{
		"patches/clusterrole.mine.yaml": {"- op: test\n  path: /rules", "- op: replace\n  path: /rules",
			"\n  # because eve\\n---"},
		"rollback/clusterrole.mine.yaml": {"- op: test\n  path: /rules", "- '*'\n"},
		"remove/rolebinding.shop.shared.yaml": {"- op: test\n  path: /subjects",
			"apiGroup: rbac.authorization.k8s.io\n    kind: User\n    name: ben"},
		"remove/rolebinding.shop.alone.yaml": {"path: /roleRef", "path: /subjects"},
		"remove/kustomization.yaml":          {"kind: Component", "$patch: delete", "- path: clusterrole.wide.yaml"},
		"owners/helm-release-shop-web.yaml": {"# Helm release shop/web writes", "not applied",
			"# Delete RoleBinding/shop/chart (User ann)."},
		"owners/helm-release.yaml": {"kind: ClusterRole\n", "name: theirs"},
		"README.md":                {"sh apply.sh", "sh remove.sh", "sh rollback.sh", "owners/", "by hand", "`test\\|eve"},
	} {
		for _, part := range parts {
			if !strings.Contains(files[name], part) {
				t.Errorf("%s lacks %q:\n%s", name, part, files[name])
			}
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "owners/") || name == "README.md" {
			continue
		}
		if strings.Contains(files[name], "theirs") || strings.Contains(files[name], "chart") {
			t.Errorf("%s has what somebody else writes:\n%s", name, files[name])
		}
	}
	first, last := strings.Index(files["remove.sh"], "rolebinding/shared"), strings.Index(files["remove.sh"], "clusterrole/wide")
	stop := strings.LastIndex(files["remove.sh"][:last], "exit 1")
	if first < 0 || stop < first {
		t.Errorf("a role goes although a binding of it stayed:\n%s", files["remove.sh"])
	}
}

// hashOf returns the hash in the name of the only new file.
func hashOf(files map[string]string) string {
	for name := range files {
		if rest, ok := strings.CutPrefix(name, "apply/clusterrole.copy-a.b-"); ok {
			return strings.TrimSuffix(rest, ".yaml")
		}
	}
	return ""
}

// TestNothing: of a change that is none nothing is written; one of which everything belongs to others has no script.
func TestNothing(t *testing.T) {
	a := &query.SuggestAnswer{Plan: &leastpriv.Plan{}}
	if _, err := Files(a); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v", err)
	}
	a.Plan.Apply, a.Plan.Rollback = leastpriv.Objects{clusterRole("r", "get")}, leastpriv.Objects{clusterRole("r", "*")}
	a.Plan.Owned = []leastpriv.Owned{{Object: "ClusterRole/r", Owner: "Argo CD application shop"}}
	list, err := Files(a)
	if err != nil || len(list) != 2 || list[1].Name != "owners/argo-cd-application-shop.yaml" ||
		strings.Contains(string(list[0].Text), ".sh") {
		t.Errorf("got %+v, %v", list, err)
	}
}
