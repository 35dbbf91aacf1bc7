package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		"a singular": {args: "who-can get secret", files: sample, says: []string{"Who can get secrets, in cluster", "Group system:masters", "hint: secret was read as secrets"}},
		"a name that is no resource": {args: "who-can get sercet", files: sample, code: cli.ExitUsage,
			says: []string{"no rule names the resource sercet", "did you mean secrets?"}, never: []string{"system:masters"}},
		"drift of no time": {args: "drift --from 2020-01-01T00:00:00Z --to 2020-01-02T00:00:00Z", files: sample,
			says: []string{"Nothing can be said of cluster evaluate: it has no requests of that time."}, never: []string{"match", "all "}},
		"letters swapped":                    {args: "can carlo", files: sample, code: cli.ExitNoMatch, says: []string{`did you mean "carol"?`}, never: []string{"RESOURCES"}},
		"letters swapped, one request":       {args: "can carlo get pods", files: sample, code: cli.ExitNoMatch, says: []string{`did you mean "carol"?`}, never: []string{"MAY"}},
		"letters swapped, in JSON":           {args: "can carlo -o json", files: sample, code: cli.ExitNoMatch, says: []string{`did you mean "carol"?`}, never: []string{"scopes"}},
		"letters swapped, what it can reach": {args: "escalations carlo", files: sample, code: cli.ExitNoMatch, says: []string{`did you mean "carol"?`}},
		"nobody like anybody": {args: "can nobody-like-it", files: sample,
			says: []string{"nobody of that name is known, and this is what everybody has", `hint: no request of "nobody-like-it" is stored and no binding names it`}},
		"nobody like anybody, in JSON": {args: "can nobody-like-it -o json", files: sample, says: []string{`"stranger": true`}},
		"cluster-admin bound": {args: "findings --rule cluster-admin-binding", files: of("bound", requestsOf(t, rules, "cluster-admin-binding")),
			says: []string{"it gives cluster-admin to Group kubeadm:cluster-admins by ClusterRoleBinding kubeadm:cluster-admins"}},
		"an account deleted": {args: "findings --rule deleted-account-active", files: of("deleted", requestsOf(t, rules, "deleted-account-active")),
			says: []string{"deleted-account-active  system:serviceaccount:sandbox:short-af4fd  ", "kubernetes-admin delete serviceaccounts sandbox/short-af4fd: 200; the account went on making requests"}},
		"who acted as another": {args: "why " + acting, files: sample, says: []string{"USER           audit-reader\n", "ACTING AS      carol\n", "IMPERSONATION  "}},
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
