package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
)

// makesAdmin binds cluster-admin to a user of the sample, and to names that are misspelt.
const makesAdmin = `
# the object begins two lines further down

apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: more-admins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: User, name: dave}
- {kind: User, name: alicee}
- {kind: Group, name: "team:catalgo"}
`

// draftCase runs whatif on the bundled recording.
type draftCase func(in string, args ...string) (code int, out, errs string)

func draftOn(t *testing.T) (run draftCase, draft string) {
	t.Helper()
	dir := t.TempDir()
	state, log, draft := filepath.Join(dir, "state"), filepath.Join(dir, "log"), filepath.Join(dir, "draft.yaml")
	for path, content := range map[string][]byte{state: sample.StateZstd(), log: sample.AuditLogZstd(), draft: []byte(makesAdmin)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(in string, args ...string) (int, string, string) {
		return commandLine(t, in, append([]string{"whatif", "--state", state, "--events", log}, args...)...)
	}, draft
}

// drafted asks for JSON.
func drafted(t *testing.T, run draftCase, args ...string) (a query.WhatIfAnswer) {
	t.Helper()
	code, out, errs := run("", append(args, "-o", "json")...)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	defs := outputSchema(t)["$defs"].(document)
	var doc document
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if wrong := conforms(defs, defs["WhatIf"].(document), doc, "WhatIf"); doc["kind"] != "WhatIf" || wrong != "" {
		t.Errorf("kind %v: %s", doc["kind"], wrong)
	}
	return a
}

func TestWhatIfRevokes(t *testing.T) {
	needWhole(t)
	run, _ := draftOn(t)
	const bound = "ClusterRoleBinding/a-bot1"
	a := drafted(t, run, "--delete", bound)
	if a.Summary.Revoked == 0 || a.Summary.Gained != 0 || len(a.Accesses) == 0 || a.More != 0 {
		t.Fatalf("%+v, %d accesses", a.Summary, len(a.Accesses))
	}
	for i := range a.Accesses {
		x := &a.Accesses[i]
		if x.Class != "REVOKED" || x.Subject != "backup-bot" || len(x.Before) != 1 || x.Before[0].Binding != bound || len(x.After) != 0 ||
			len(x.Sample) == 0 || x.Because[0] != bound || x.Count == 0 || x.Last.Before(x.First) {
			t.Fatalf("%+v", x)
		}
	}
	code, out, _ := run("", "--delete", "clusterrolebinding/a-bot1")
	first, _, _ := strings.Cut(out, "\n")
	if code != cli.ExitOK || !strings.Contains(first, "would be refused (") || !strings.Contains(out, "\nREVOKED  backup-bot") {
		t.Errorf("exit code %d: %s", code, first)
	}
	if other := drafted(t, run, "--delete", bound, "--subject", "dave"); len(other.Accesses) != 0 {
		t.Errorf("dave loses %+v", other.Accesses)
	}
	code, out, errs := run("", "--delete", bound, "--fail-on", "gained,maybe", "--fail-on", "revoked", "-o", "markdown")
	if code != cli.ExitFinding || !strings.Contains(out, "| **REVOKED** | `backup-bot` |") ||
		!strings.Contains(errs, "accesses would be refused") {
		t.Errorf("exit code %d: %.300s %s", code, out, errs)
	}
}

func TestWhatIfGains(t *testing.T) {
	needWhole(t)
	run, draft := draftOn(t)
	a := drafted(t, run, "-f", draft)
	if a.Summary.Gained == 0 || a.Summary.Revoked != 0 || a.Escalation.OpenedCount == 0 || a.Escalation.ClosedCount != 0 {
		t.Errorf("%+v %+v", a.Summary, a.Escalation)
	}
	if i := slices.IndexFunc(a.Possible, func(s query.ChangedSubject) bool { return s.Kind == "User" && s.Name == "dave" }); i < 0 ||
		a.Possible[i].Scopes[0].Gained[0].Verbs[0] != "*" ||
		a.Possible[i].Scopes[0].Gained[0].Because[0] != "ClusterRoleBinding/more-admins" {
		t.Errorf("it does not say what dave could then do: %+v", a.Possible)
	}
	if text := strings.Join(a.Notes, "\n"); !strings.Contains(text, `did you mean "alice"?`) || !strings.Contains(text, `"team:catalog"`) {
		t.Errorf("the notes %s do not tell who was meant", text)
	}
	for _, on := range []string{"gained", "escalation"} {
		if code, _, errs := run(makesAdmin, "-f", "-", "--fail-on", on); code != cli.ExitFinding {
			t.Errorf("--fail-on %s: exit code %d: %s", on, code, errs)
		}
	}
	code, out, errs := run("", "-f", draft, "--fail-on", "revoked,maybe", "-o", "sarif")
	var doc struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != cli.ExitOK || doc.Version != "2.1.0" {
		t.Fatalf("exit code %d: %v %s", code, err, errs)
	}
	isSARIF(t, out)
	rules := map[string]int{}
	for _, r := range doc.Runs[0].Results {
		rules[r.RuleID]++
		if len(r.Locations) != 1 || r.Locations[0].PhysicalLocation.ArtifactLocation.URI != draft ||
			r.Locations[0].PhysicalLocation.Region.StartLine != 4 {
			t.Fatalf("%+v", r)
		}
	}
	if rules["GAINED"] != int(a.Summary.Gained) || rules["ESCALATION"] != a.Escalation.OpenedCount {
		t.Errorf("%v", rules)
	}
}

func TestWhatIfRefuses(t *testing.T) {
	needWhole(t)
	t.Parallel()
	run, draft := draftOn(t)
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("\nkind: ClusterRoel\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{nil, cli.ExitUsage, "name a file with -f"},
		{[]string{"-f", "absent.yaml"}, cli.ExitUsage, "absent.yaml"},
		{[]string{"-f", draft, "-f", draft}, cli.ExitUsage, "given twice"},
		{[]string{"-f", broken}, cli.ExitUsage, `broken.yaml:2: kind "ClusterRoel" is none of`},
		{[]string{"-f", "-"}, cli.ExitUsage, "-: it holds no object"},
		{[]string{"--delete", "Roles"}, cli.ExitUsage, "want KIND/NAME"},
		{[]string{"--delete", "ClusterRoleBinding/kubeadm:cluster-admns"}, cli.ExitUsage,
			"did you mean ClusterRoleBinding/kubeadm:cluster-admins?"},
		{[]string{"-f", draft, "--fail-on", "revokd"}, cli.ExitUsage, "did you mean revoked?"},
		{[]string{"-f", draft, "-o", "html"}, cli.ExitUsage, "markdown, sarif"},
		{[]string{"-f", draft, "--subject", "davee"}, cli.ExitNoMatch, `did you mean "dave"?`},
		{[]string{"-f", draft, "--from", "2026-12-01T00:00:00Z"}, cli.ExitNoMatch, "ask about a longer one"},
	} {
		if code, _, errs := run("", tc.args...); code != tc.code || !strings.Contains(errs, tc.says) {
			t.Errorf("%v: exit code %d, want %d: %s", tc.args, code, tc.code, errs)
		}
	}
}
