package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/golden"
)

// mistakes are command lines that are wrong in some way.
var mistakes = []string{ //nolint:gochecknoglobals // constant table
	"hygene", "cluster lst", "--nothing", "whi abc", "help nothing-of-it", "help hygeine", "help cluster lst", "help can nobody",
	"drift LOG --since tomorow", "drift LOG --since 24", "drift LOG --from 2026-02-30", "drift LOG --since 24h --from 2d",
	"drift LOG --from 2026-11-21T00:00:00Z --to 2026-11-20T00:00:00Z", "drift LOG --to 1969-12-31", "drift LOG --form today",
	"drift LOG --from 2020-01-01T00:00:00Z --to 2020-01-02T00:00:00Z", "drift LOG extra", "drift LOG -o xml", "drift --state STATE",
	"can LOG", "can LOG sa/runner", "can LOG sa/ci:runner:x", "can LOG group/", "can LOG carlo", "can LOG alice get",
	"can LOG alice gte pods", "can LOG alice get sercet", "can LOG alice get pods a b", "can LOG system:serviceaccount:ci",
	"can LOG group/opps", "can LOG group/opps get pods", "can LOG group/system:authenticatd", "can LOG group/system:nodes",
	"can LOG group/kubeadm:cluster-admin", "can LOG alice get pods -n kube-systm", "can LOG alice -n nowhere-at-all",
	"who-can LOG get pods -n kube-systm", "who-can LOG get pods -n nowhere-at-all", "can LOG group/ops --group devs", "who-can LOG",
	"who-can LOG get", "who-can LOG get /healthz x", "who-can LOG get pods -n a -A", "escalations LOG carlo", "escalations LOG group/opps",
	"escalations LOG group/kubeadm:cluster-admin", "escalations LOG a b", "changes LOG", "changes LOG --since 1d --group ops",
	"changes LOG --from 2026-11-22T11:00:00Z", "changes LOG --from 2026-11-19T11:00:00Z --subject carlo",
	"changes LOG --from 2026-11-19T11:00:00Z --subject group/opps", "changes LOG --from 2026-11-20T11:00:00Z --to 2026-11-19T11:00:00Z",
	"lineage LOG", "lineage LOG group/ops", "lineage LOG carlo", "lineage LOG sa/ci:runer", "lineage LOG JTI=nothing",
	"findings LOG --rule pod-exex", "findings LOG --subject carlo", "findings LOG --subject nobody-like-it",
	"findings LOG --min-severity hihg", "findings LOG --subject group/ops", "findings LOG --fail-on bad", "suggest LOG --subject carlo",
	"suggest LOG --all --subject carol", "suggest LOG --min-window 2x", "suggest LOG --final", "why LOG", "why LOG ab", "why LOG nothing",
	"why LOG --last abc", "why LOG --last --subject carlo", "why LOG abc --subject carol", "explain-deny LOG nothing", "ask LOG denails",
	"ask LOG events -o csv", "tail extra", "tail --decision no", "tail --for -1s", "hygiene LOG -o jsonpath={.items[",
	"hygiene LOG --color blue", "ask LOG why", "ask LOG denials --param from", "ask LOG denials --param from=tomorow",
	"ask LOG denials --param x=1", "rejudge", "rejudge --since 2026-11-20T11:00:00Z --where nobody",
	"rejudge --since 2026-11-20T11:00:00Z --where subject=group/ops", "evaluate --events NOFILE",
}

// TestMistakesGolden holds what wrong command lines are answered: the exit code, and standard error. Nothing may be on standard output that
// passes for an answer.
func TestMistakesGolden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state, log := writeState(t, dir), writeLog(t, filepath.Join(dir, "log.jsonl"), recorded(t)[:300])
	var b strings.Builder
	for _, line := range mistakes {
		words := strings.Fields(strings.NewReplacer("LOG", "--state STATE --events EVENTS").Replace(line))
		for i := range words {
			words[i] = strings.NewReplacer("STATE", state, "EVENTS", log, "NOFILE", filepath.Join(dir, "none.log")).Replace(words[i])
		}
		if words[0] == "rejudge" {
			words = append(words, "--data-dir", filepath.Join(dir, "none"))
		}
		code, out, errs := commandLine(t, "", words...)
		fmt.Fprintf(&b, "=== retrial %s\n%d\n", line, code)
		if out != "" {
			first, _, _ := strings.Cut(out, "\n")
			fmt.Fprintf(&b, "prints: %.160s\n", first)
		}
		b.WriteString(strings.ReplaceAll(errs, dir, "DIR"))
	}
	golden.File(t, surface("mistakes.txt"), b.String())
}
