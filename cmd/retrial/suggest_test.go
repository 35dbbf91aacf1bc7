package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/cmd/retrial/advice"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/test/golden"
)

// suggestOn runs suggest on the bundled recording.
func suggestOn(t *testing.T, want int, args ...string) (stdout []byte, stderr string) {
	t.Helper()
	dir := t.TempDir()
	state, log := filepath.Join(dir, "state"), filepath.Join(dir, "log")
	for path, content := range map[string][]byte{state: sample.StateZstd(), log: sample.AuditLogZstd()} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if code := execute(t.Context(), append([]string{"suggest", "--state", state, "--events", log}, args...),
		cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != want {
		t.Fatalf("exit code %d, want %d: %s", code, want, errs.String())
	}
	t.Log(errs.String())
	return out.Bytes(), errs.String()
}

func TestSuggestSystemSubjects(t *testing.T) {
	needWhole(t)
	t.Parallel()
	const scheduler = "system:kube-scheduler"
	if _, errs := suggestOn(t, cli.ExitUsage, "--subject", scheduler); !strings.Contains(errs, "add --include-system") {
		t.Errorf("%q does not say how to mean it", errs)
	}
	if out, _ := suggestOn(t, cli.ExitOK, "--subject", scheduler, "--include-system"); !bytes.Contains(out, []byte("\n"+scheduler)) {
		t.Errorf("%s does not hold the subject asked for", out)
	}
	out, _ := suggestOn(t, cli.ExitOK, "--subject", scheduler, "--include-system", "-o", "json")
	sets := itemsOf[struct {
		Rollback []struct{ Metadata metav1.ObjectMeta }
		Gaps     []string
	}](t, string(out))
	if len(sets) != 1 || len(sets[0].Rollback) == 0 || sets[0].Rollback[0].Metadata.Labels["kubernetes.io/bootstrapping"] == "" {
		t.Errorf("%s: want a rollback with the labels objects had", out)
	}
	if !strings.Contains(strings.Join(sets[0].Gaps, "\n"), "is made again when an apiserver starts") {
		t.Errorf("%q do not say that the bindings come back", sets[0].Gaps)
	}
	if out, _ := suggestOn(t, cli.ExitOK); bytes.Contains(out, []byte(scheduler)) {
		t.Errorf("%s is suggested for without being asked for", scheduler)
	}
}

// strictObjects decodes YAML documents, each strictly as its kind.
func strictObjects(t *testing.T, text []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, doc := range strings.Split("\n"+string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		into, ok := map[string]any{"Role": &rbacv1.Role{}, "ClusterRole": &rbacv1.ClusterRole{}, "RoleBinding": &rbacv1.RoleBinding{},
			"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}}[kind.Kind]
		if !ok || kind.APIVersion != "rbac.authorization.k8s.io/v1" {
			t.Fatalf("%+v is not an RBAC object in\n%s", kind, doc)
		}
		if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
			t.Errorf("%v in\n%s", err, doc)
		}
		meta := into.(metav1.Object)
		out[kind.Kind+"/"+meta.GetNamespace()+"/"+meta.GetName()] = into
	}
	return out
}

// TestSuggestForms holds what the forms say against each other, on the whole recording.
func TestSuggestForms(t *testing.T) {
	needWhole(t)
	t.Parallel()
	text, _ := suggestOn(t, cli.ExitOK, "--strict", "-o", "json")
	all := itemsOf[struct {
		Subject string
		Proof   struct{ Holds bool }
		Apply   []struct {
			Kind     string
			Metadata metav1.ObjectMeta
		}
	}](t, string(text))
	text, _ = suggestOn(t, cli.ExitOK, "--strict", "-o", "yaml", "--force")
	end, _ := suggestOn(t, cli.ExitOK, "--strict", "-o", "yaml", "--force", "--final")
	applied, final := strictObjects(t, text), strictObjects(t, end)
	n := 0
	for _, s := range all {
		if !s.Proof.Holds {
			t.Errorf("%s: the proof does not hold", s.Subject)
		}
		for _, o := range s.Apply {
			n++
			key := o.Kind + "/" + o.Metadata.Namespace + "/" + o.Metadata.Name
			if applied[key] == nil || final[key] == nil {
				t.Errorf("%s of %s: in YAML %t, in the final state %t; want both", key, s.Subject, applied[key] != nil, final[key] != nil)
			}
		}
	}
	if n != len(applied) || n < 100 {
		t.Errorf("%d objects in JSON, %d in YAML", n, len(applied))
	}
	// Narrowed roles are planned together: those of several holders are written once.
	text, _ = suggestOn(t, cli.ExitOK, "-o", "yaml", "--force")
	end, _ = suggestOn(t, cli.ExitOK, "-o", "yaml", "--force", "--final")
	applied, final = strictObjects(t, text), strictObjects(t, end)
	for key := range applied {
		if final[key] == nil {
			t.Errorf("%s is applied and not in the final state", key)
		}
	}
	if len(applied) < 20 || len(applied) > n/2 || !bytes.Contains(text, []byte("\n# kept although never used: list of ClusterRole/")) {
		t.Errorf("%d objects to narrow roles, %d for exact ones; or what is kept is not told", len(applied), n)
	}
	if !bytes.Contains(text, []byte("\n#   kubectl delete clusterrolebinding/")) ||
		!bytes.Contains(text, []byte(`--type=merge -p '{"subjects":[`)) {
		t.Error("the YAML names no binding to delete, or none to patch")
	}
}

// TestSuggestHostileNames: nothing a subject, an object or a gap is called ends a comment,
// breaks a document or reaches a terminal.
func TestSuggestHostileNames(t *testing.T) {
	t.Parallel()
	evil := "eve\n---\nkind: ClusterRoleBinding\u2028\x1b[2J\u202e'; rm -rf /; '"
	binding := &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: evil}, Subjects: []rbacv1.Subject{{Kind: "User", Name: evil}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: evil}}
	s := &leastpriv.Suggestion{Subject: evil, What: leastpriv.WhatSubject, Apply: []leastpriv.Object{binding}, Gaps: []string{evil},
		Keeps: []leastpriv.Keep{{Binding: evil, Group: evil, Undoes: []string{evil}}}}
	plan := &leastpriv.Plan{Apply: s.Apply, Remove: []leastpriv.Remove{
		{Kind: "ClusterRoleBinding", Name: evil, Action: leastpriv.ActionDelete},
		{Kind: "ClusterRoleBinding", Name: evil, Action: leastpriv.ActionReplace, Object: binding},
	}}
	answer := &query.SuggestAnswer{Window: leastpriv.Recording{Gaps: []string{evil}}, Suggestions: []*leastpriv.Suggestion{s}, Plan: plan,
		Unseen: []leastpriv.Unseen{{Subject: evil + "2"}}}
	var out bytes.Buffer
	if err := answer.WriteYAML(&out, false); err != nil {
		t.Fatal(err)
	}
	table, _ := printed(advice.Table, answer)
	for _, bad := range []string{"\x1b", "\u202e", "\u2028", "\nkind"} {
		if strings.Contains(out.String(), bad) || strings.Contains(table, bad) {
			t.Errorf("%q is in the output", bad)
		}
	}
	objects := strictObjects(t, out.Bytes())
	if got, ok := objects["ClusterRoleBinding//"+evil].(*rbacv1.ClusterRoleBinding); len(objects) != 1 || !ok ||
		got.Subjects[0].Name != evil {
		t.Errorf("%d objects are read back, want the one with its odd name", len(objects))
	}
	delete, err := plan.Remove[0].Command()
	if err != nil {
		t.Fatal(err)
	}
	if want := `'\''; rm -rf /; '\'''`; !strings.HasSuffix(delete, want) {
		t.Errorf("%q, want the name in quotes", delete)
	}
}

// TestDocsSuggest keeps the table of the bundled recording in docs/suggest.md.
func TestDocsSuggest(t *testing.T) {
	needWhole(t)
	t.Parallel()
	text, _ := suggestOn(t, cli.ExitOK, "--include-system", "-o", "json")
	all := itemsOf[leastpriv.Suggestion](t, string(text))
	var b strings.Builder
	b.WriteString("| subject | excess before | after | by groups | requests | to apply | to remove | refused | newly allowed | allowed " +
		"before | by groups now | implied |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	var sum leastpriv.Suggestion
	still := 0
	for _, s := range all {
		sum.Excess.Before, sum.Excess.After = sum.Excess.Before+s.Excess.Before, sum.Excess.After+s.Excess.After
		sum.Proof.Requests += s.Proof.Requests
		if s.Excess.Before == 0 {
			still++
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", s.Subject, s.Excess.Before, s.Excess.After,
			s.Excess.Kept, s.Proof.Requests,
			len(s.Apply), len(s.Remove), s.Proof.Refused, s.Proof.NewlyAllowed, s.Proof.AllowedBefore, s.Proof.AllowedByKept,
			s.Proof.Implied)
	}
	fmt.Fprintf(&b,
		"| **all %d subjects** | **%d** | **%d** | | **%d** | | | | | | | |\n\n%d subjects hold nothing by name that they did not use.\n",
		len(all), sum.Excess.Before, sum.Excess.After, sum.Proof.Requests, still)
	const begin, end = "<!-- sample: rewritten by make golden -->\n", "<!-- end of sample -->\n"
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "suggest.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/suggest.md has no place for the table")
	}
	golden.File(t, "docs/suggest.md", before+begin+b.String()+end+after)
}

// TestSurfaceSuggestDirectoryGolden keeps the directory that is written for some subjects of the bundled recording.
func TestSurfaceSuggestDirectoryGolden(t *testing.T) {
	needWhole(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "change")
	suggestOn(t, cli.ExitOK, "--subject", "carol", "--subject", "heidi", "--subject", "sa/payments-dev:worker", "-o", "dir="+dir, "--force")
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "-- %s --\n%s", filepath.ToSlash(name), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, surface("suggest-dir.txtar"), b.String())
}
