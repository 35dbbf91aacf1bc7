package apiserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// charted is what Helm would have written for the robot, which uses nothing of it.
const charted = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: chart, labels: {app.kubernetes.io/managed-by: Helm},
  annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop}}
rules: [{apiGroups: [""], resources: [limitranges], verbs: [get, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: chart, labels: {app.kubernetes.io/managed-by: Helm},
  annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: chart}
subjects: [{kind: ServiceAccount, name: robot, namespace: shop}]
`

// kubectl runs in a directory of its own, as an administrator.
type kubectl struct{ program, config, home string }

// run runs a program with KUBECTL set, and returns what it printed, and whether it said that it worked.
func (k *kubectl) run(t *testing.T, name string, args ...string) (string, bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(os.Environ(), "HOME="+k.home, "KUBECTL="+k.program+" --kubeconfig "+k.config)
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

// script runs a script that has to work.
func (k *kubectl) script(t *testing.T, dir, name string) string {
	t.Helper()
	out, ok := k.run(t, "sh", filepath.Join(dir, name))
	if !ok {
		t.Fatalf("%s: %s", name, out)
	}
	return out
}

// TestSuggestedDirectory: the directory that is written for a subject is applied by its own scripts, in the order that README.md names.
func TestSuggestedDirectory(t *testing.T) {
	t.Parallel()
	k := &kubectl{program: controlplane.Binary(t, "kubectl"), home: t.TempDir()}
	l := connect(t)
	k.config = filepath.Join(k.home, "admin.kubeconfig")
	controlplane.Kubeconfig(t, k.config, l.Admin(t))
	l.objects.mustPut(t, decode(t, []byte(generous)))
	l.objects.mustPut(t, decode(t, []byte(charted)))
	l.tell(t)
	cfg := l.ServiceAccount(t, l.admin, "shop", "robot")
	robot := newPerson(t, l.ledger, "robot", cfg)
	for _, f := range forms {
		l.decided(t, true, robotName, robotGroups, f.probe)
	}
	first := l.works(t, robot, cfg)
	l.arrived(t)
	dirs := make([]string, len(forms))
	for i, f := range forms {
		dirs[i] = filepath.Join(k.home, f.name)
		l.Do(t, append([]string{"suggest", "--cluster", clusterName, "--subject", robotName, "--force", "-o", "dir=" + dirs[i]},
			f.flags...)...)
	}
	for i, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			l.merges(t, k, dirs[i], &f, robot, func() []string { return l.works(t, robot, cfg) }, first)
		})
	}
	l.noDrift(t, map[string]call{})
}

// merges takes the steps of a directory, and those back.
func (l *live) merges(t *testing.T, k *kubectl, dir string, f *form, robot *person, works func() []string, first []string) {
	said, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, step := range []string{"sh apply.sh", "Helm release shop/web", "sh remove.sh", "sh rollback.sh"} {
		next := strings.Index(string(said)[at:], step)
		if next < 0 {
			t.Fatalf("README.md does not name %q in its order:\n%s", step, said)
		}
		at += next
	}
	builds(t, k, dir)

	k.script(t, dir, "apply.sh")
	if out := k.script(t, dir, "apply.sh"); strings.Contains(out, "patched") || strings.Contains(out, "created") {
		t.Errorf("a second time it changes something:\n%s", out)
	}
	if again := works(); !slices.Equal(first, again) {
		t.Errorf("the same requests were answered\n%v, and with what replaces\n%v", first, again)
	}

	// Somebody joins a binding that the robot leaves.
	shared := named("ClusterRoleBinding", "", "see-everything")
	before, err := l.objects.of(t, shared).Get(t.Context(), shared.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	joined := before.DeepCopy()
	joined.Object["subjects"] = append(joined.Object["subjects"].([]any),
		map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "newcomer"})
	l.update(t, joined)
	out, ok := k.run(t, "sh", filepath.Join(dir, "remove.sh"))
	if ok || !strings.Contains(out, "some objects have changed since this was made") {
		t.Errorf("a binding that has changed is patched: %s", out)
	}
	l.sameAs(t, decode(t, mustJSON(t, joined)))
	left, err := l.objects.of(t, shared).Get(t.Context(), shared.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left.Object["subjects"] = before.Object["subjects"]
	l.update(t, left)

	k.script(t, dir, "remove.sh")
	if out := k.script(t, dir, "remove.sh"); strings.Contains(out, "patched") || strings.Contains(out, "deleted") {
		t.Errorf("a second time it changes something:\n%s", out)
	}
	l.decided(t, false, robotName, robotGroups, f.probe)
	l.decided(t, true, "olga", nil, f.probe)
	l.decided(t, true, robotName, robotGroups, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "shop"})
	l.decided(t, true, robotName, robotGroups, authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"})
	if again := works(); !slices.Equal(first, again) {
		t.Errorf("the same requests were answered\n%v, and after the change\n%v", first, again)
	}
	robot.mayNot(t, append([]string{f.probed}, f.others...)...)
	l.sameAs(t, decode(t, []byte(charted)))

	k.script(t, dir, "rollback.sh")
	if out := k.script(t, dir, "rollback.sh"); strings.Contains(out, "patched") || strings.Contains(out, "created") {
		t.Errorf("a second time it changes something:\n%s", out)
	}
	l.decided(t, true, robotName, robotGroups, f.probe)
	l.decided(t, true, robotName, robotGroups, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "stock"})
	works()
	robot.may(t, f.probed)
	l.sameAs(t, decode(t, []byte(generous)))
	if left, _ := k.run(t, k.program, "--kubeconfig", k.config, "get", "roles,clusterroles,rolebindings,clusterrolebindings", "-A", "-l",
		"app.kubernetes.io/managed-by=retrial", "-o", "name"); strings.TrimSpace(left) != "" && !strings.Contains(left, "No resources") {
		t.Errorf("what was made is still there: %s", left)
	}
}

// update writes an object that is there.
func (l *live) update(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := l.objects.of(t, o).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// builds: a kustomization that has the objects takes the change in, and one that has others does not.
func builds(t *testing.T, k *kubectl, dir string) {
	t.Helper()
	var whole, without []string
	for _, doc := range strings.Split(generous+"---\n"+charted, "\n---\n") {
		whole = append(whole, doc)
		without = append(without, strings.ReplaceAll(doc, "name: olga", "name: newcomer"))
	}
	for name, objects := range map[string][]string{"whole": whole, "changed": without, "missing": whole[:3]} {
		base := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+"-"+name)
		if err := os.Mkdir(base, 0o700); err != nil {
			t.Fatal(err)
		}
		kustomization := "resources: [objects.yaml, ../" + filepath.Base(dir) + "]\ncomponents:\n"
		for _, part := range []string{"patches", "remove"} {
			if _, err := os.Stat(filepath.Join(dir, part, "kustomization.yaml")); err == nil {
				kustomization += "- ../" + filepath.Base(dir) + "/" + part + "\n"
			}
		}
		for file, text := range map[string]string{"objects.yaml": strings.Join(objects, "\n---\n"), "kustomization.yaml": kustomization} {
			if err := os.WriteFile(filepath.Join(base, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, ok := k.run(t, k.program, "kustomize", base)
		if ok != (name == "whole") {
			t.Errorf("with the objects %s, it builds: %t: %.500s", name, ok, out)
		}
	}
}
