package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
)

// TestSubjectsOnTheCommandLine names a subject in every way there is, in every command that asks for one: all mean the same.
func TestSubjectsOnTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	const account = "system:serviceaccount:ci:runner"
	log := recorded(t)[:1]
	for _, line := range recorded(t) {
		if len(log) < 60 && strings.Contains(string(line), `"user":{"username":"`+account+`"`) {
			log = append(log, line)
		}
	}
	files := []string{"--state", writeState(t, dir), "--events", writeLog(t, filepath.Join(dir, "log.jsonl"), log)}
	ask := func(words ...string) (int, string, string) {
		return commandLine(t, "", append(words, files...)...)
	}
	for name, words := range map[string][]string{
		"can": {"can", "SUBJECT"}, "escalations": {"escalations", "SUBJECT"}, "lineage": {"lineage", "SUBJECT"},
		"changes":  {"changes", "--from", "2026-11-20T11:36:00Z", "--subject", "SUBJECT"},
		"findings": {"findings", "--subject", "SUBJECT"}, "suggest": {"suggest", "--subject", "SUBJECT"},
		"events": {"ask", "events", "--param", "subject=SUBJECT"},
	} {
		t.Run(name, func(t *testing.T) {
			written := func(subject string) []string {
				out := []string{}
				for _, w := range words {
					out = append(out, strings.ReplaceAll(w, "SUBJECT", subject))
				}
				return append(out, "-o", "json")
			}
			if name != "events" { // what it reads takes a library; that it is read at all is below
				code, want, errs := ask(written(account)...)
				if code != cli.ExitOK || len(want) < 3 {
					t.Fatalf("%d %s", code, errs)
				}
				for _, subject := range []string{"sa/ci:runner", "sa/ci/runner", "ServiceAccount/ci/runner", "user/" + account} {
					if code, got, errs := ask(written(subject)...); code != cli.ExitOK || got != want {
						t.Errorf("%s: code %d, another answer: %.300s", subject, code, got+errs)
					}
				}
			}
			for subject, want := range map[string]string{"sa/runner": `invalid subject "sa/runner": want sa/NAMESPACE:NAME`,
				"system:serviceaccount:ci/runner": "want system:serviceaccount:NAMESPACE:NAME or sa/NAMESPACE:NAME",
				"group/":                          `invalid subject "group/": want group/NAME`} {
				if code, _, errs := ask(written(subject)...); code != cli.ExitUsage || !strings.Contains(errs, want) {
					t.Errorf("%s: code %d, said %q", subject, code, errs)
				}
			}
			code, out, errs := ask(written("group/system:authenticated")...)
			switch name {
			case "can", "escalations", "changes":
				if code != cli.ExitOK || !strings.Contains(out, `"system:authenticated"`) && name != "changes" {
					t.Errorf("a group: %d %s", code, errs)
				}
			default:
				if code != cli.ExitUsage || !strings.Contains(errs, "group/system:authenticated is a group: requests are a user's or") {
					t.Errorf("a group: %d %s", code, errs)
				}
			}
		})
	}
	code, _, errs := commandLine(t, "", "rejudge", "--since", "1d", "--where", "subject=sa/x", "--data-dir", filepath.Join(dir, "none"))
	if code != cli.ExitUsage || !strings.Contains(errs, `--where subject: invalid subject "sa/x"`) {
		t.Errorf("%d %s", code, errs)
	}
}
