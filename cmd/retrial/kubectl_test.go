package main

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: work
contexts:
- {name: work, context: {cluster: prod, user: me, namespace: shop}}
- {name: test, context: {cluster: elsewhere, user: me}}
- {name: lab, context: {cluster: unknown, user: me}}
clusters:
- {name: prod, cluster: {server: "https://prod:6443"}}
- {name: elsewhere, cluster: {server: "https://test:6443"}}
- {name: unknown, cluster: {server: "https://lab:6443"}}
users:
- {name: me, user: {}}
`

// TestKubectlPlugin: called as a plugin, the commands ask about the cluster and the namespace of the context, as kubectl does, unless flags
// name others; called by its own name the program has nothing to do with a kubeconfig.
func TestKubectlPlugin(t *testing.T) {
	var asked url.Values
	dir := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/clusters" {
			completable(t, nil)(w, r)
			return
		}
		asked = r.URL.Query()
		_, _ = w.Write([]byte(`{}`))
	})
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(twoContexts), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	run := func(program, line string) (code int, errs string) {
		var out, err bytes.Buffer
		asked = nil
		code = executeAs(t.Context(), program, strings.Fields(strings.Replace(line, " ", " --data-dir "+dir+" ", 1)),
			cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
		return code, err.String()
	}
	for line, want := range map[string]string{
		"who-can get pods":                                        "prod shop",
		"who-can get deployments.apps web":                        "prod shop",
		"who-can get pods --context test":                         "test default",
		"who-can get pods -n other":                               "prod other",
		"who-can get pods -A":                                     "prod ",
		"who-can get nodes":                                       "prod ",
		"who-can get clusterroles.rbac.authorization.k8s.io view": "prod ",
		"who-can get /metrics":                                    "prod ",
		"who-can get pods --cluster test":                         "test shop",
		"can alice":                                               "prod ",
		"can alice get pods":                                      "prod shop",
		"hygiene --context test":                                  "test ",
	} {
		code, errs := run("/usr/local/bin/kubectl-retrial", line)
		if got := asked.Get("cluster") + " " + asked.Get("namespace"); got != want || code != cli.ExitOK && code != cli.ExitFinding {
			t.Errorf("%s: asked about %q, want %q; exit code %d: %s", line, got, want, code, errs)
		}
		if named := strings.Contains(line, "--cluster"); strings.Contains(errs, "hint: --cluster") == named {
			t.Errorf("%s: standard error has %q", line, errs)
		}
	}
	for line, want := range map[string]string{
		"who-can get pods --context nothing":          `kubeconfig has no context "nothing"`,
		"who-can get pods --context lab":              "there are several clusters: name one with --cluster: prod, test",
		"who-can get pods --kubeconfig /nothing/here": "/nothing/here",
	} {
		if code, errs := run("kubectl-retrial", line); code != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s, want %s", line, code, errs, want)
		}
	}
	if code, errs := run("kubectl-retrial", "who-cn"); code != cli.ExitUsage ||
		!strings.Contains(errs, `unknown command "who-cn" for "kubectl retrial", did you mean who-can?`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, errs := run("retrial", "who-can get pods --context test"); code != cli.ExitUsage ||
		!strings.Contains(errs, "unknown flag: --context") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, errs := run("retrial", "who-can get pods"); code != cli.ExitUsage || !strings.Contains(errs, "there are several clusters") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
