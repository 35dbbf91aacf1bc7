package main

import (
	"regexp"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query"
)

// TestLogAnswersAsServer asks questions about a policy of a server that took a log in, and of
// the log itself: the answers are the same.
func TestLogAnswersAsServer(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := newInstall(t)
	s := in.serve(t, "--replay-hold", "0s")
	state, log := writeState(t, in.dir), writeLog(t, in.dir+"/audit.jsonl", portion(t))
	in.run(t, "import", "--cluster", "prod", "--state", state, log).ok(t)
	s.drained(t)

	var list struct{ Events []query.Event }
	s.get(t, "events?cluster=prod&limit=500&outcome=match", &list)
	var account string
	first := time.Now()
	for _, e := range list.Events {
		if regexp.MustCompile(`^system:serviceaccount:[a-z]*:[a-z-]*$`).MatchString(e.User) {
			account = e.User
		}
		if at := e.Time; at.Before(first) {
			first = at
		}
	}
	at := first.Add(time.Minute).UTC().Format(time.RFC3339Nano)
	for _, question := range [][]string{
		{"who-can", "get", "/healthz"},
		{"who-can", "list", "secrets", "--all-namespaces", "--at", at},
		{"can", account},
		{"can", "nobody-known"},
		{"can", account, "create", "pods", "--namespace", "default"},
		{"hygiene"},
		{"hygiene", "--include-system", "--at", at},
		{"escalations", "--include-system"},
		{"escalations", account},
		{"changes", "--from", at},
		{"changes", "--from", at, "--subject", account},
	} {
		args := append(question, "--cluster", "prod", "-o", "json")
		want := in.run(t, args...)
		got := in.run(t, append(args, "--state", state, "--events", log)...)
		if got.code != want.code || got.out != want.out || len(want.out) < 50 {
			t.Errorf("retrial %v\nof the log %d, %.2000s%s\nof the server %d, %.2000s%s", question, got.code, got.out, got.err, want.code,
				want.out, want.err)
		}
	}
}
