package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/internal/sample"
)

// runFindings runs the command with its output captured.
func runFindings(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), append([]string{"findings"}, args...), streams{strings.NewReader(""), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFindingsOfTheSample holds the whole recording against what docs/detections.md says of
// it: a rule that grows loud or falls silent shows here.
func TestFindingsOfTheSample(t *testing.T) {
	state, log := writeFile(t, sample.StateName, sample.StateZstd()), writeFile(t, sample.AuditLogName, sample.AuditLogZstd())
	code, out, errs := runFindings(t, "--state", state, "--events", log, "-o", "json")
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, stderr %q", code, errs)
	}
	var found []detect.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range found {
		got[f.Rule]++
		if f.Text == "" || len(f.Evidence) == 0 || f.Count < 1 || f.Last.Before(f.First) {
			t.Errorf("incomplete finding %+v", f)
		}
	}
	doc, err := os.ReadFile("../../docs/detections.md")
	if err != nil {
		t.Fatal(err)
	}
	set, err := detect.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range set.Rules() {
		_, row, ok := strings.Cut(string(doc), "\n| `"+r.ID+"` | ")
		if !ok {
			t.Errorf("docs/detections.md has no row for rule %s", r.ID)
			continue
		}
		cells := strings.SplitN(row, " | ", 5)
		if cells[0] != r.Severity || cells[1] != r.Kind || cells[2] != jsonText(got[r.ID]) {
			t.Errorf("docs/detections.md says %q of %s; it is %s, %s, with %d findings", cells[:3], r.ID, r.Severity, r.Kind, got[r.ID])
		}
	}
}

// TestRuleLanguageIsDocumented holds the table of names to those there are.
func TestRuleLanguageIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/detections.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range detect.Variables() {
		if !strings.Contains(string(doc), "\n| `"+v.Name+"` | ") || !strings.Contains(string(doc), " | "+v.Doc+" |\n") {
			t.Errorf("docs/detections.md does not say of %s: %s", v.Name, v.Doc)
		}
	}
	for _, f := range detect.Functions() {
		if !strings.Contains(string(doc), "\n| `"+f.String()+"` | "+f.Doc+" |\n") {
			t.Errorf("docs/detections.md does not say of %s: %s", f.Name, f.Doc)
		}
	}
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const oneEvent = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete","requestURI":"/api/v1/secrets","verb":"list","user":{"username":"bob\u001b[2J","groups":["system:authenticated"]},"sourceIPs":["10.0.0.1"],"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:00.001000Z","annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""}}` + "\n"

func TestFindingsCommand(t *testing.T) {
	log := writeFile(t, "audit.log", []byte(oneEvent))
	broken := filepath.Dir(writeFile(t, "broken.yaml", []byte("id: x\nexpr: 'verb =='\n")))
	own := filepath.Dir(writeFile(t, "own.yaml", []byte("id: any-list\ntitle: A list\ndescription: Somebody listed.\nseverity: info\nkind: event\nmatch: {verbs: [list]}\n")))
	for _, c := range []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{"table, hostile name", []string{"--events", log}, exitOK, "secrets-list", "no --state was given"},
		{"nothing that grave", []string{"--events", log, "--min-severity", "critical"}, exitOK, "no findings", ""},
		{"nothing that grave, as json", []string{"--events", log, "--min-severity", "critical", "-o", "json"}, exitOK, "[]\n", ""},
		{"yaml", []string{"--events", log, "-o", "yaml"}, exitOK, "rule: secrets-list", ""},
		{"own rules", []string{"--events", log, "--rules", own}, exitOK, "any-list", ""},
		{"fails on", []string{"--events", log, "--fail-on", "high"}, exitFinding, "secrets-list", "severity high or more"},
		{"does not fail on", []string{"--events", log, "--fail-on", "critical"}, exitOK, "secrets-list", ""},
		{"rules", []string{"--list-rules"}, exitOK, "cluster-admin-binding", ""},
		{"broken rule", []string{"--events", log, "--rules", broken}, exitUsage, "", "broken.yaml"},
		{"rules nowhere", []string{"--events", log, "--rules", own + "/none"}, exitUsage, "", "--rules"},
		{"rules in a file", []string{"--events", log, "--rules", log}, exitUsage, "", "is no directory"},
		{"a rule", []string{"--events", log, "--rule", "secrets-list"}, exitOK, "secrets-list", ""},
		{"another rule", []string{"--events", log, "--rule", "pod-exec", "--fail-on", "high"}, exitOK, "no findings", ""},
		{"another subject", []string{"--events", log, "--subject", "eve"}, exitOK, "no findings", ""},
		{"before there was any", []string{"--events", log, "--at", "2025-12-31T00:00:00Z"}, exitOK, "no findings", ""},
		{"at that time", []string{"--events", log, "--at", "2026-01-01T00:00:00Z", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:00:01Z"}, exitOK, "secrets-list", ""},
		{"no time", []string{"--events", log, "--from", "yesterday"}, exitUsage, "", "no RFC 3339 time"},
		{"a state without events", []string{"--state", log}, exitUsage, "", "--state is about a log"},
		{"rules without events", []string{"--rules", own}, exitUsage, "", "--rules is about a log"},
		{"nothing stored", []string{"--data-dir", filepath.Join(own, "none")}, exitError, "", "no server is running"},
		{"severity", []string{"--events", log, "--min-severity", "huge"}, exitUsage, "", `--min-severity "huge"`},
		{"no log", []string{"--events", log + "x"}, exitUsage, "", "--events"},
		{"not a log", []string{"--events", filepath.Join(own, "own.yaml")}, exitError, "", "no line is an audit event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := runFindings(t, c.args...)
			if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
				t.Errorf("exit %d, want %d; out %q, want %q; err %q, want %q", code, c.code, out, c.out, errs, c.errs)
			}
			if strings.Contains(out+errs, "\x1b") {
				t.Error("a control character reaches the terminal")
			}
		})
	}
}

func TestFindingsFromStandardInput(t *testing.T) {
	var stdout bytes.Buffer
	if code := execute(t.Context(), []string{"findings", "--events", "-"}, streams{strings.NewReader(oneEvent), &stdout, io.Discard}); code != exitOK || !strings.Contains(stdout.String(), "secrets-list") {
		t.Errorf("exit %d, %q", code, stdout.String())
	}
}
