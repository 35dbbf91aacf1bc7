package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
)

// TestWhyByPrefix asks for requests by the beginning of their audit IDs.
func TestWhyByPrefix(t *testing.T) {
	dir := t.TempDir()
	lines := recorded(t)[:3]
	for i, id := range []string{"c92de1f9-7e5f-49f9-bb96-e6860b36ec49", "c92d21b9-ed52-4f5f-8da5-0c68768580af", "of-a-client's-choice"} {
		lines[i] = []byte(strings.ReplaceAll(string(lines[i]), decoded(t, lines[i]).AuditID, id))
	}
	files := []string{"--state", writeState(t, dir), "--events", writeLog(t, filepath.Join(dir, "log.jsonl"), lines)}
	for _, command := range []string{"why", "explain-deny"} {
		for id, tc := range map[string]struct {
			code int
			says []string
		}{
			"c92de1f9-7e5f-49f9-bb96-e6860b36ec49": {cli.ExitOK, []string{"REQUEST "}},
			"c92de": {cli.ExitOK, []string{"REQUEST ",
				"hint: audit ID c92de1f9-7e5f-49f9-bb96-e6860b36ec49"}},
			"c92de1f9-7e5f": {cli.ExitOK, []string{"REQUEST "}},
			"of-a":          {cli.ExitOK, []string{"REQUEST ", "hint: audit ID of-a-client's-choice"}},
			"c92d": {cli.ExitNoMatch, []string{"several audit IDs begin with c92d, the first are\n",
				"  c92d21b9-ed52-4f5f-8da5-0c68768580af  20",
				"  c92de1f9-7e5f-49f9-bb96-e6860b36ec49  20"}},
			"c92":  {cli.ExitNoMatch, []string{"carries the audit ID c92; the beginning of one takes at least 4 letters"}},
			"92de": {cli.ExitNoMatch, []string{"no judged request of the log carries the audit ID 92de"}},
		} {
			code, out, errs := commandLine(t, "", append([]string{command, id}, files...)...)
			if code != tc.code {
				t.Errorf("%s %s: code %d, want %d", command, id, code, tc.code)
			}
			says(t, out+errs, tc.says...)
		}
	}
	for args, want := range map[string]string{
		"why --last c92d":              "--last names the request",
		"why --subject alice":          "--subject and --include-system go with --last",
		"why --last --subject sa/x":    `--subject: invalid subject "sa/x"`,
		"why --last --subject group/x": "group/x is a group",
		"why":                          "AUDIT-ID is missing",
	} {
		if code, _, errs := commandLine(t, "", strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, said %q", args, code, errs)
		}
	}
}
