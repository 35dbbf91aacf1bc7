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
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
)

// runFindings runs the command with its output captured.
func runFindings(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), append([]string{"findings"}, args...), cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
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
	needWhole(t)
	state, log := writeFile(t, sample.StateName, sample.StateZstd()), writeFile(t, sample.AuditLogName, sample.AuditLogZstd())
	code, out, errs := runFindings(t, "--state", state, "--events", log, "-o", "json")
	if code != cli.ExitOK || errs != "" {
		t.Fatalf("exit %d, stderr %q", code, errs)
	}
	found := itemsOf[detect.Finding](t, out)
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
	set, err := detect.Load(detect.BuiltinFiles())
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
		var params []string
		for _, p := range f.Params {
			params = append(params, p.Name)
		}
		if !strings.Contains(string(doc), "\n| `"+f.Name+"("+strings.Join(params, ", ")+")` | "+f.Doc+" |\n") {
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

const oneEvent = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete",` +
	`"requestURI":"/api/v1/secrets","verb":"list","user":{"username":"bob\u001b[2J","groups":["system:authenticated"]},` +
	`"sourceIPs":["10.0.0.1"],"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z",` +
	`"stageTimestamp":"2026-01-01T00:00:00.001000Z","annotations":{"authorization.k8s.io/decision":"allow",` +
	`"authorization.k8s.io/reason":""}}` + "\n"

func TestFindingsCommand(t *testing.T) {
	log := writeFile(t, "audit.log", []byte(oneEvent))
	broken := filepath.Dir(writeFile(t, "broken.yaml", []byte("id: x\nexpr: 'verb =='\n")))
	own := filepath.Dir(writeFile(t, "own.yaml",
		[]byte("id: any-list\ntitle: A list\ndescription: Somebody listed.\nseverity: info\nkind: event\nmatch: {verbs: [list]}\n")))
	for _, c := range []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{"table, hostile name", []string{"--events", log}, cli.ExitOK, "secrets-list", "no --state was given"},
		{"nothing that grave", []string{"--events", log, "--min-severity", "critical"}, cli.ExitOK, "no findings", ""},
		{"nothing that grave, as json", []string{"--events", log, "--min-severity", "critical", "-o", "json"}, cli.ExitOK, "[]\n", ""},
		{"yaml", []string{"--events", log, "-o", "yaml"}, cli.ExitOK, "rule: secrets-list", ""},
		{"own rules", []string{"--events", log, "--rules", own}, cli.ExitOK, "any-list", ""},
		{"fails on", []string{"--events", log, "--fail-on", "high"}, cli.ExitFinding, "secrets-list", "severity high or more"},
		{"does not fail on", []string{"--events", log, "--fail-on", "critical"}, cli.ExitOK, "secrets-list", ""},
		{"rules", []string{"--list-rules"}, cli.ExitOK, "cluster-admin-binding", ""},
		{"broken rule", []string{"--events", log, "--rules", broken}, cli.ExitUsage, "", "broken.yaml"},
		{"rules nowhere", []string{"--events", log, "--rules", own + "/none"}, cli.ExitUsage, "", "--rules"},
		{"rules in a file", []string{"--events", log, "--rules", log}, cli.ExitUsage, "", "not a directory"},
		{"a rule", []string{"--events", log, "--rule", "secrets-list"}, cli.ExitOK, "secrets-list", ""},
		{"another rule", []string{"--events", log, "--rule", "pod-exec", "--fail-on", "high"}, cli.ExitOK, "no findings", ""},
		{"another subject", []string{"--events", log, "--subject", "eve"}, cli.ExitNoMatch, "", "no request of eve is stored"},
		{"before there was any", []string{"--events", log, "--at", "2025-12-31T00:00:00Z"}, cli.ExitOK, "no findings", ""},
		{"at that time", []string{"--events", log, "--at", "2026-01-01T00:00:00Z", "--from", "2026-01-01T00:00:00Z", "--to",
			"2026-01-01T00:00:01Z"}, cli.ExitOK, "secrets-list", ""},
		{"no time", []string{"--events", log, "--from", "tomorrow"}, cli.ExitUsage, "", `invalid time "tomorrow"`},
		{"a state without events", []string{"--state", log}, cli.ExitUsage, "", "need a log: add --events"},
		{"rules without events", []string{"--rules", own}, cli.ExitUsage, "", "--rules needs a log"},
		{"nothing stored", []string{"--data-dir", filepath.Join(own, "none")}, cli.ExitError, "", "no server is running"},
		{"severity", []string{"--events", log, "--min-severity", "huge"}, cli.ExitUsage, "",
			`"huge" for "--min-severity" flag: want one of info`},
		{"no log", []string{"--events", log + "x"}, cli.ExitUsage, "", "--events"},
		{"not a log", []string{"--events", filepath.Join(own, "own.yaml")}, cli.ExitError, "", "no line is an audit event"},
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
	if code := execute(t.Context(), []string{"findings", "--events", "-"}, cli.Streams{In: strings.NewReader(oneEvent), Out: &stdout,
		Err: io.Discard}); code != cli.ExitOK || !strings.Contains(stdout.String(), "secrets-list") {
		t.Errorf("exit %d, %q", code, stdout.String())
	}
}
