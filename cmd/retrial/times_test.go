package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
)

// TestTimesOnTheCommandLine asks a log of requests of the last hours by times as people write them: what is asked is what they mean, and
// is told on standard error.
func TestTimesOnTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	now := time.Now().UTC()
	lines := recorded(t)[:3]
	for i, ago := range []time.Duration{time.Hour, 30 * time.Hour, 100 * time.Hour} {
		at := now.Add(-ago).Format("2006-01-02T15:04:05.000000Z")
		e := decoded(t, lines[i])
		lines[i] = []byte(strings.NewReplacer(e.RequestReceivedTimestamp.Format("2006-01-02T15:04:05.000000Z"), at,
			e.StageTimestamp.Format("2006-01-02T15:04:05.000000Z"), at).Replace(string(lines[i])))
	}
	files := []string{"--state", writeState(t, dir), "--events", writeLog(t, filepath.Join(dir, "log.jsonl"), lines)}
	for name, tc := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"a duration":           {[]string{"--since", "24h"}, cli.ExitOK, []string{`"requests": 1`, "hint: --since 24h is "}},
		"days":                 {[]string{"--since", "2d"}, cli.ExitOK, []string{`"requests": 2`}},
		"a duration as --from": {[]string{"--from", "1w"}, cli.ExitOK, []string{`"requests": 3`, "hint: --from 1w is "}},
		"words": {[]string{"--from", "2 days ago", "--to", "24h"}, cli.ExitOK,
			[]string{`"requests": 1`, "hint: --to 24h is "}},
		"the other end by name": {[]string{"--from", "2w", "--until", "2d"}, cli.ExitOK, []string{`"requests": 1`}},
		"RFC 3339 is not told":  {[]string{"--since", "2026-01-01T00:00:00Z"}, cli.ExitOK, []string{`"requests": 3`}},
		"both names": {[]string{"--since", "24h", "--from", "2d"}, cli.ExitUsage,
			[]string{`"--from" flag: --since gives the same: leave one out`}},
		"no time": {[]string{"--since", "tomorow"}, cli.ExitUsage,
			[]string{`--since: invalid time "tomorow": want 24h, 7d, "2 days ago", today, yesterday`, "see retrial drift --help"}},
		"the wrong way round":   {[]string{"--from", "24h", "--to", "2d"}, cli.ExitUsage, []string{"is not before to"}},
		"before there was time": {[]string{"--since", "1960-01-01"}, cli.ExitUsage, []string{"want a time between 1970 and 2106"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := commandLine(t, "", append(append([]string{"drift", "-o", "json"}, tc.args...), files...)...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, errs)
			}
			says(t, out+errs, tc.says...)
			if strings.Contains(errs, "2026-01-01") {
				t.Errorf("what was written in full is told: %s", errs)
			}
		})
	}
	for args, want := range map[string]string{
		"ask denials --param from=tomorow":                      `--param from: invalid time "tomorow"`,
		"ask overview --param from=24h --param to=x":            `--param to: invalid time "x"`,
		"ask denials --param from=2d --since 2d":                "--param from is given by a flag as well",
		"ask objects-changed --since 2d":                        "unknown question",
		"suggest --min-window 2x":                               `invalid duration "2x"`,
		"suggest --min-window -2d":                              "--min-window -2d: must not be negative",
		"connect x --timeout 1y":                                `invalid duration "1y"`,
		"who-can get pods --at 2026-02-30":                      `--at: invalid time "2026-02-30"`,
		"rejudge --since yesteday":                              `--since: invalid time "yesteday"`,
		"rejudge --from 2026-11-20T11:00:00Z --since yesterday": "--from gives the same",
	} {
		code, _, errs := commandLine(t, "", strings.Fields(args)...)
		if code != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, said %q, want %q", args, code, errs, want)
		}
	}
}
