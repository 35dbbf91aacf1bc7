package recording

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJudgeTells: what was meant is held against what came out. Each change of a recording or
// of its meaning is a problem, and the recording as it is is none.
func TestJudgeTells(t *testing.T) {
	const from = "../../replay/testdata/recordings/abac"
	for _, tc := range []struct {
		name, file, old, new string
		problem              string // "" for none
	}{
		{name: "as it is"},
		{name: "another authorizer", file: "scenarios.jsonl", old: `"authorizer":"abac"`, new: `"authorizer":"rbac"`,
			problem: `decided by "abac", meant to be "rbac"`},
		{name: "another authenticator", file: "scenarios.jsonl", old: `"authenticator":"x509"`, new: `"authenticator":"token-file"`,
			problem: "came by token-file, explained by [x509]"},
		{name: "another decision", file: "scenarios.jsonl", old: `"expect":"forbid"`, new: `"expect":"allow"`,
			problem: "recorded forbid, meant to be allow"},
		{name: "a contradiction that is none", file: "scenarios.jsonl", old: `"id":"erin"`, new: `"id":"erin","findings":["sa-unknown"]`,
			problem: "not found: erin: sa-unknown"},
		{name: "a contradiction that was not meant", file: "scenarios.jsonl", old: `"findings":["node-unknown"]`, new: `"findings":[]`,
			problem: "found node-unknown"},
		{name: "a policy for somebody else", file: "config/abac.jsonl", old: `{"user":"alice"`, new: `{"user":"nobody"`, problem: "drift"},
		{name: "an answer that was another", file: "audit.jsonl", old: `"authorization.k8s.io/decision":"forbid"`,
			new: `"authorization.k8s.io/decision":"allow"`, problem: "drift"},
		{name: "a log that is cut", file: "audit.jsonl", old: `{"kind":"Event"`, new: `"kind":"Event"`, problem: "lines are not events"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			config, err := os.ReadDir(filepath.Join(from, "config"))
			if err != nil {
				t.Fatal(err)
			}
			names := []string{"audit.jsonl", "state.json", "scenarios.jsonl"}
			for _, f := range config {
				names = append(names, filepath.Join("config", f.Name()))
			}
			if err := os.Mkdir(filepath.Join(dir, "config"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				text, err := Read(from, name)
				if err != nil {
					t.Fatal(err)
				}
				if name == tc.file {
					changed := bytes.ReplaceAll(text, []byte(tc.old), []byte(tc.new))
					if bytes.Equal(changed, text) {
						t.Fatalf("%s holds no %s", name, tc.old)
					}
					text = changed
				}
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			result, err := Judge(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(result.Problems, "\n")
			if tc.problem == "" && all != "" || tc.problem != "" && !strings.Contains(all, tc.problem) {
				t.Errorf("problems:\n%.2000s\nwant %q", all, tc.problem)
			}
		})
	}
}
