package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// youngCluster is a log that begins with a cluster's first start, without the creation of
// kube-system: two objects are made, then alice makes requests.
func youngCluster(t *testing.T) string {
	t.Helper()
	const made = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"%s","stage":"ResponseComplete",` +
		`"requestURI":"/apis/rbac.authorization.k8s.io/v1/%s",` +
		`"verb":"create","user":{"username":"admin","groups":["system:masters","system:authenticated"]},"objectRef":{"resource":"%[2]s",` +
		`"name":"%s","apiGroup":"rbac.authorization.k8s.io","apiVersion":"v1"},` +
		`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-05-04T10:00:0%d.000001Z",` +
		`"stageTimestamp":"2026-05-04T10:00:0%[4]d.000002Z",` +
		`"responseObject":{"apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"%[3]s","uid":"%[1]s",` +
		`"resourceVersion":"%[4]d"},%s},` +
		`"annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n"
	log := fmt.Sprintf(made, "role", "clusterroles", "reader", 1,
		`"kind":"ClusterRole","rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods","secrets"]}]`)
	log += fmt.Sprintf(made, "binding", "clusterrolebindings", "readers", 2,
		`"kind":"ClusterRoleBinding","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},`+
			`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"devs"}]`)
	for i := range 3 {
		log += fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"list%d",`+
			`"stage":"ResponseComplete","requestURI":"/api/v1/pods",`+
			`"verb":"list","user":{"username":"alice","groups":["devs","system:authenticated"]},"objectRef":{"resource":"pods",`+
			`"apiVersion":"v1"},"responseStatus":{"code":200},`+
			`"requestReceivedTimestamp":"2026-05-04T11:00:0%[1]d.000001Z","stageTimestamp":"2026-05-04T11:00:0%[1]d.000002Z",`+
			`"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding `+
			`\"readers\" of ClusterRole \"reader\" to Group \"devs\""}}`+"\n", i)
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFromEmptyEverywhere: every command that asks about a policy takes the log of a new
// cluster instead of a store.
func TestFromEmptyEverywhere(t *testing.T) {
	needWhole(t)
	storagetest.Need(t)
	log := youngCluster(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"evaluate": {[]string{"evaluate", "-o", "json"}, cli.ExitOK, []string{`"match": 5`}},
		"findings": {[]string{"findings"}, cli.ExitOK, nil},
		"drift":    {[]string{"drift"}, cli.ExitOK, []string{"Nothing drifts"}},
		"lineage":  {[]string{"lineage", "alice"}, cli.ExitOK, []string{"(not told by the events)", "3 requests"}},
		"ask events": {[]string{"ask", "events", "--param", "user=alice", "-o", "json"}, cli.ExitOK,
			[]string{`"auditID": "list2"`, `"outcome": "match"`}},
		"ask classes":   {[]string{"ask", "classes"}, cli.ExitOK, []string{"class: policy-changed-in-window"}},
		"ask drift":     {[]string{"ask", "drift", "--param", "from=2026-05-04T00:00:00Z"}, cli.ExitOK, []string{"Nothing drifts"}},
		"ask audit-id":  {[]string{"ask", "audit-id", "--param", "id=list0"}, cli.ExitOK, []string{"ClusterRoleBinding/readers"}},
		"ask top-users": {[]string{"ask", "top-users"}, cli.ExitOK, []string{"alice", "3"}},
		"completeness":  {[]string{"completeness", "-o", "json"}, cli.ExitOK, []string{`"cluster": "evaluate"`}},
		"why":           {[]string{"why", "list0"}, cli.ExitOK, []string{"ClusterRoleBinding/readers"}},
		"explain-deny":  {[]string{"explain-deny", "list0"}, cli.ExitOK, []string{"rbac allows it"}},
		"suggest":       {[]string{"suggest", "--subject", "alice", "-o", "json"}, cli.ExitOK, []string{`"alice"`, `"holds": true`}},
		"who-can":       {[]string{"who-can", "list", "secrets"}, cli.ExitOK, []string{"Group devs", "ClusterRoleBinding/readers"}},
		"who-can, before": {[]string{"who-can", "list", "secrets", "--at", "2026-05-04T10:00:01.5Z", "-o", "json"}, cli.ExitOK,
			[]string{`"known": true`, `"subjects": [`}},
		"can":               {[]string{"can", "alice"}, cli.ExitOK, []string{"secrets", "devs"}},
		"can, a request":    {[]string{"can", "alice", "list", "secrets"}, cli.ExitOK, []string{"yes"}},
		"can, another":      {[]string{"can", "alice", "delete", "pods", "-n", "x"}, cli.ExitFinding, []string{"no"}},
		"can, mistyped":     {[]string{"can", "alic"}, cli.ExitNoMatch, nil},
		"hygiene":           {[]string{"hygiene", "-o", "json"}, cli.ExitOK, []string{`"flaws"`}},
		"escalations":       {[]string{"escalations"}, cli.ExitOK, nil},
		"escalations, hers": {[]string{"escalations", "alice", "-o", "json"}, cli.ExitOK, []string{`"groupsFrom": "requests"`, `"devs"`}},
		"changes": {[]string{"changes", "--from", "2026-05-04T10:00:01.5Z", "-o", "json"}, cli.ExitOK,
			[]string{`"devs"`, `"auditID": "binding"`, `"user": "admin"`}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, err := commandLine(t, "", append(tc.args, "--events", log, "--from-empty")...)
			if code != tc.code {
				t.Errorf("code %d, want %d: %s%s", code, tc.code, out, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in %s%s", want, out, err)
				}
			}
			if strings.Contains(err, "not known") {
				t.Errorf("something is said not to be known: %s", err)
			}
		})
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"neither state nor birth": {[]string{"suggest", "--events", log}, "--state is missing"},
		"no log":                  {[]string{"who-can", "list", "pods", "--from-empty"}, "need a log: add --events"},
		"no log for suggest":      {[]string{"suggest", "--from-empty"}, "need a log: add --events"},
		"a log and a server": {[]string{"can", "alice", "--events", log, "--server", "http://x"},
			"--server and --events exclude each other"},
		"no such log": {[]string{"hygiene", "--events", log + "x"}, "no such file"},
	} {
		if code, _, err := commandLine(t, "", tc.args...); code != cli.ExitUsage || !strings.Contains(err, tc.want) {
			t.Errorf("%s: code %d, said %q, want %q", name, code, err, tc.want)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.log")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"who-can", "list", "secrets"}, {"suggest", "--subject", "alice"}, {"hygiene", "--from-empty"}} {
		code, _, err := commandLine(t, "", append(args, "--events", empty)...)
		if code != cli.ExitNoMatch || !strings.Contains(err, "the log has no event") || strings.Contains(err, "--from-empty") {
			t.Errorf("%s of a log without events: code %d, said %q", args[0], code, err)
		}
	}
	if code, _, err := commandLine(t, "", "who-can", "list", "secrets", "--events", log); code != cli.ExitNoMatch ||
		!strings.Contains(err, "or --from-empty if") {
		t.Errorf("without --from-empty: code %d, said %q", code, err)
	}
}
