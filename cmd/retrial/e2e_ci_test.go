package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
)

// TestCIExamples runs the scripts of deploy/ci as GitHub and GitLab do, on manifests that make somebody cluster administrator: against a
// server, and on files. They fail by what they are to fail by, and leave a comment and SARIF.
func TestCIExamples(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := newInstall(t)
	write := func(name string, content []byte) {
		t.Helper()
		path := filepath.Join(in.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("audit/state.json.zst", sample.StateZstd())
	write("audit/audit.jsonl.zst", sample.AuditLogZstd())
	write("rbac/admins.yaml", []byte(makesAdmin))
	write("rbac/reader.yaml", []byte(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: of-ci}, rules: []}`))
	s := in.serve(t, "--replay-hold", "200ms")
	in.importSample(t, 6000)
	s.drained(t)
	for file, scripts := range map[string]func(*testing.T, []byte) map[string]string{
		"github.yaml": githubScripts, "gitlab.yaml": gitlabScripts} {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "ci", file))
		if err != nil {
			t.Fatal(err)
		}
		jobs := scripts(t, text)
		for _, job := range []string{"ask", "replay"} {
			t.Run(file+" "+job, func(t *testing.T) {
				script := strings.ReplaceAll(jobs[job], "--since 90d", "--since 9000d")
				cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
				cmd.Dir = in.dir
				cmd.Env = append(os.Environ(), "RETRIAL_SERVER="+s.ui, "CLUSTER=sample", "XDG_CONFIG_HOME="+in.dir, "TMPDIR="+in.dir)
				finish(t, cmd).refused(t, cli.ExitFinding, "would be allowed", "to cluster administrator would be opened")
				var sarif struct{ Runs []struct{ Results []any } }
				comment, err := os.ReadFile(filepath.Join(in.dir, "whatif.md"))
				if err != nil || !strings.Contains(string(comment), "| GAINED | `dave` |") {
					t.Errorf("%v: %.300s", err, comment)
				}
				body, err := os.ReadFile(filepath.Join(in.dir, "whatif.sarif"))
				if err != nil || json.Unmarshal(body, &sarif) != nil || len(sarif.Runs[0].Results) == 0 ||
					!strings.Contains(string(body), `"rbac/admins.yaml"`) {
					t.Errorf("%v: %.300s", err, body)
				}
				isSARIF(t, string(body))
			})
		}
	}
}

// githubScripts returns the first script of each job of a workflow.
func githubScripts(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var flow struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(text, &flow); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, job := range flow.Jobs {
		for _, step := range job.Steps {
			if out[name] == "" {
				out[name] = step.Run
			}
		}
	}
	return out
}

// gitlabScripts returns the script of each job.
func gitlabScripts(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var jobs map[string]struct{ Script []string }
	if err := yaml.Unmarshal(text, &jobs); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, job := range jobs {
		out[name] = strings.Join(job.Script, "\n")
	}
	return out
}
