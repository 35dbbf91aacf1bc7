package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
)

// TestAnswersThatMislead asks what security people ask, wrongly or of the wrong time, by the commands: what
// is answered is what was meant, or says that it is not.
func TestAnswersThatMislead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acting string // the audit ID of a request of audit-reader as carol
	log := recorded(t)[:300]
	for _, line := range recorded(t)[300:] {
		switch {
		case acting == "" && bytes.Contains(line, []byte(`"impersonatedUser":{"username":"carol"`)):
			acting = decoded(t, line).AuditID
		case !bytes.Contains(line, []byte(`"user":{"username":"carol"`)):
			continue
		}
		log = append(log, line)
	}
	rules := filepath.Join("..", "..", "analysis", "detect", "testdata", "rules")
	state := writeState(t, dir)
	of := func(name string, lines [][]byte) []string {
		return []string{"--state", state, "--events", writeLog(t, filepath.Join(dir, name+".jsonl"), lines)}
	}
	sample := of("sample", log)
	for name, tc := range map[string]struct {
		args  string
		files []string
		code  int
		says  []string // of both outputs
		never []string
	}{
		"a singular": {args: "who-can get secret", files: sample,
			says: []string{"Who can get secrets, in cluster", "Group system:masters", "hint: secret was read as secrets"}},
		"a name that is not a resource": {args: "who-can get sercet", files: sample, code: cli.ExitUsage,
			says: []string{"no rule names the resource sercet", "did you mean secrets?"}, never: []string{"system:masters"}},
		"drift of no time": {args: "drift --from 2020-01-01T00:00:00Z --to 2020-01-02T00:00:00Z", files: sample,
			says: []string{"Nothing can be said of cluster evaluate: it has no requests of that time."}, never: []string{"match", "all "}},
		"letters swapped": {args: "can carlo", files: sample, code: cli.ExitNoMatch,
			says: []string{`did you mean "carol"?`}, never: []string{"RESOURCES"}},
		"letters swapped, one request": {args: "can carlo get pods", files: sample, code: cli.ExitNoMatch,
			says: []string{`did you mean "carol"?`}, never: []string{"MAY"}},
		"letters swapped, in JSON": {args: "can carlo -o json", files: sample, code: cli.ExitNoMatch,
			says: []string{`did you mean "carol"?`}, never: []string{"scopes"}},
		"letters swapped, what it can reach": {args: "escalations carlo", files: sample, code: cli.ExitNoMatch,
			says: []string{`did you mean "carol"?`}},
		"nobody like anybody": {args: "can nobody-like-it", files: sample,
			says: []string{"nobody of that name is known, and this is what everybody has",
				`hint: no request of "nobody-like-it" is stored and no binding names it`}},
		"nobody like anybody, in JSON": {args: "can nobody-like-it -o json", files: sample, says: []string{`"stranger": true`}},
		"cluster-admin bound": {args: "findings --rule cluster-admin-binding",
			files: of("bound", requestsOf(t, rules, "cluster-admin-binding")),
			says:  []string{"it gives cluster-admin to Group kubeadm:cluster-admins by ClusterRoleBinding kubeadm:cluster-admins"}},
		"an account deleted": {args: "findings --rule deleted-account-active",
			files: of("deleted", requestsOf(t, rules, "deleted-account-active")),
			says: []string{"deleted-account-active  system:serviceaccount:sandbox:short-af4fd  ",
				"kubernetes-admin delete serviceaccounts sandbox/short-af4fd: 200; the account went on making requests"}},
		"who acted as another": {args: "why " + acting, files: sample,
			says: []string{"USER           audit-reader\n", "ACTING AS      carol\n", "IMPERSONATION  "}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := commandLine(t, "", append(strings.Fields(tc.args), tc.files...)...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			says(t, out+errs, tc.says...)
			for _, text := range tc.never {
				if strings.Contains(out+errs, text) {
					t.Errorf("%q is said:\n%s%s", text, out, errs)
				}
			}
		})
	}
}

// TestNoTryIsRecordedAsDone: sixteen tries to bind cluster-admin, to none of which an answer of success was recorded. Each
// is a critical finding before anybody uses it, who-can says that the binding may be there, and what others were
// refused is as certain as before.
func TestNoTryIsRecordedAsDone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log, refused [][]byte
	for _, line := range recorded(t) {
		if bytes.Contains(line, []byte(`"user":{"username":"carol"`)) && bytes.Contains(line, []byte(`decision":"forbid"`)) &&
			len(refused) < 20 {
			refused = append(refused, line)
		}
	}
	const tries = 16
	at := decoded(t, refused[0]).RequestReceivedTimestamp
	for i := range tries {
		answer := `"responseStatus":{"metadata":{},"status":"Failure","reason":"Timeout","message":"Timeout: request did not complete ` +
			`within requested timeout - context deadline exceeded","code":504},`
		if i%4 == 0 {
			answer = "" // cut off
		}
		made := at.Add(time.Duration(i-tries) * time.Millisecond).Format("2006-01-02T15:04:05.000000Z")
		log = append(log, fmt.Appendf(nil,
			`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"e0000000-0000-4000-8000-0000000000%02d",`+
				`"stage":"ResponseComplete","requestURI":"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?timeout=900us",`+
				`"verb":"create",`+
				`"user":{"username":"kubernetes-super-admin","groups":["system:masters","system:authenticated"]},"sourceIPs":["10.0.0.1"],`+
				`"objectRef":{"resource":"clusterrolebindings","name":"dormant-%d","apiGroup":"rbac.authorization.k8s.io",`+
				`"apiVersion":"v1"},%s`+
				`"requestObject":{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1",`+
				`"metadata":{"name":"dormant-%d"},`+
				`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"sleeper-%d"}],`+
				`"roleRef":{"apiGroup":"rbac.authorization.k8s.io",`+
				`"kind":"ClusterRole","name":"cluster-admin"}},"requestReceivedTimestamp":%q,"stageTimestamp":%q,`+
				`"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""}}`, i, i, answer, i, i, made,
			made))
	}
	state := writeState(t, dir)
	ask := func(log [][]byte, args ...string) string {
		t.Helper()
		file := writeLog(t, filepath.Join(dir, fmt.Sprint(len(log), ".jsonl")), log)
		code, out, errs := commandLine(t, "", append(args, "--state", state, "--events", file)...)
		if code != cli.ExitOK {
			t.Fatalf("%q: exit code %d: %s", args, code, errs)
		}
		return out + errs
	}
	found := ask(log, "findings", "--rule", "cluster-admin-binding", "--min-severity", "critical")
	can := ask(log, "who-can", "get", "secrets", "-o", "json")
	for i := range tries {
		says(t, found,
			fmt.Sprintf("it gives cluster-admin to User sleeper-%d by ClusterRoleBinding dormant-%d; its answer was lost, and it may "+
				"have been done", i, i))
		says(t, can, fmt.Sprintf("%q", fmt.Sprint("ClusterRoleBinding/dormant-", i)))
	}
	both := slices.Concat(log, refused)
	if want, got := ask(refused, "drift"), ask(both, "drift"); strings.Contains(got, "INDETERMINATE") != strings.Contains(want,
		"INDETERMINATE") ||
		strings.Count(got, "DRIFT") != strings.Count(want, "DRIFT") {
		t.Errorf("what carol was refused is judged otherwise after the tries:\n%s\nand without them:\n%s", got, want)
	}
}

// requestsOf returns the events of a rule's first case, which fires.
func requestsOf(t *testing.T, folder, rule string) (log [][]byte) {
	t.Helper()
	cases, err := os.ReadFile(filepath.Join(folder, rule+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(cases, []byte("\n"))
	var c struct {
		Fires    bool
		Requests []struct{ Event json.RawMessage }
	}
	if err := json.Unmarshal(first, &c); err != nil || !c.Fires {
		t.Fatalf("%s: the first case fires: %t, %v", rule, c.Fires, err)
	}
	for _, r := range c.Requests {
		log = append(log, r.Event)
	}
	return log
}
