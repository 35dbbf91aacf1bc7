package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/verdict"
)

// commandLine runs one command in this process.
func commandLine(t *testing.T, in string, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	code = execute(t.Context(), args, cli.Streams{In: strings.NewReader(in), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "a.log")
	if err := os.WriteFile(log, []byte("kind: Event\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a command mistyped": {[]string{"evalute"}, cli.ExitUsage,
			`unknown command "evalute" for "retrial", did you mean evaluate?; see retrial --help`},
		"a subcommand mistyped": {[]string{"cluster", "lst"}, cli.ExitUsage, `did you mean list?; see retrial cluster --help`},
		"a flag mistyped": {[]string{"serve", "--ui-lisen", "x"}, cli.ExitUsage,
			`unknown flag: --ui-lisen; see retrial serve --help`},
		"nothing to explain": {[]string{"why"}, cli.ExitUsage,
			"AUDIT-ID is missing; --last takes the newest request that was refused; see retrial why --help"},
		"an empty audit ID": {[]string{"why", ""}, cli.ExitUsage, "AUDIT-ID is empty"},
		"two clusters":      {[]string{"cluster", "add", "a", "b"}, cli.ExitUsage, `unexpected argument "b": one NAME at a time`},
		"unknown form": {[]string{"cluster", "list", "-o", "xml"}, cli.ExitUsage,
			`invalid --output "xml": want one of table, wide, name, json, yaml, csv, jsonpath=EXPRESSION`},
		"a log without its flag": {[]string{"evaluate", log}, cli.ExitUsage, "logs are named with --events"},
		"a folder of logs":       {[]string{"evaluate", "--events", dir}, cli.ExitUsage, "is a directory: name the logs in it"},
		"standard input twice": {[]string{"evaluate", "--events", "-", "--events", "-"}, cli.ExitUsage,
			"standard input is named twice"},
		"a lag below nothing": {[]string{"evaluate", "--events", log, "--lag", "-1s"}, cli.ExitUsage,
			"--lag -1s: must not be negative"},
		"no audit log": {[]string{"evaluate", "--events", log}, cli.ExitError,
			"no line is an audit event: want audit.k8s.io/v1 events as JSON"},
		"a hostile name": {[]string{"evaluate", "--events", "no\x1b[31m\u202e"}, cli.ExitUsage, `no\x1b[31m\u202e`},
		"no cluster to rotate": {[]string{"cluster", "rotate", "x", "--data-dir", filepath.Join(dir, "none")}, cli.ExitError,
			"no cluster is registered in"},
		"no cluster to revoke": {[]string{"cluster", "revoke", "x", "--data-dir", filepath.Join(dir, "none")}, cli.ExitError,
			"`retrial cluster add NAME` registers one"},
		"a kubeconfig for nowhere": {[]string{"cluster", "add", "x", "--data-dir", filepath.Join(dir, "d"), "-o",
			filepath.Join(dir, "none", "x")}, cli.ExitError, "write the webhook's kubeconfig"},
		"a file that does not exist": {[]string{"serve", "--data-dir", filepath.Join(dir, "none"), "--ui-tls-cert", log + "x",
			"--ui-tls-key", log}, cli.ExitUsage, "ui-tls-cert: open "},
		"a receiver without a host": {[]string{"cluster", "add", "x", "--data-dir", filepath.Join(dir, "d"), "--server", "nonsense"},
			cli.ExitUsage, "want http or https, and a host"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, err := commandLine(t, "", tc.args...)
			if code != tc.code || !strings.Contains(err, tc.want) {
				t.Errorf("code %d, want %d; said %q, want %q", code, tc.code, err, tc.want)
			}
			if strings.ContainsAny(out+err, "\x1b\u202e") {
				t.Errorf("%q reaches the terminal", out+err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a command that only asks made a folder")
	}
	if _, out, _ := commandLine(t, "", "cluster", "list", "--data-dir", filepath.Join(dir, "d")); strings.Contains(out, "x") {
		t.Errorf("a cluster was registered whose key is nowhere:\n%s", out)
	}
}

func TestEvaluateHints(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing in it": {"", "there is no event in it"},
		"no state": {`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete",` +
			`"requestURI":"/api/v1/pods",` +
			`"verb":"list","user":{"username":"sue"},"responseStatus":{"code":200},` +
			`"requestReceivedTimestamp":"2026-05-04T11:00:00.000001Z",` +
			`"stageTimestamp":"2026-05-04T11:00:00.000002Z","annotations":{"authorization.k8s.io/decision":"allow"}}`,
			"hint: no --state was given"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, err := commandLine(t, tc.in, "evaluate", "--events", "-", "-o", "json")
			if code != cli.ExitOK || !strings.Contains(err, tc.want) {
				t.Errorf("code %d, said %q, want %q", code, err, tc.want)
			}
			if !json.Valid([]byte(out)) {
				t.Errorf("standard output is not JSON alone: %s", out)
			}
		})
	}
}

// TestHintsOfState: that no state was given is said where one would help, and nowhere else.
func TestHintsOfState(t *testing.T) {
	const hint = "hint: no --state was given"
	const list = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete",` +
		`"requestURI":"/api/v1/pods",` +
		`"verb":"list","user":{"username":"sue"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-05-04T11:00:00.000001Z",` +
		`"stageTimestamp":"2026-05-04T11:00:00.000002Z","annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n"
	birth := func(code string) string {
		return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"b","stage":"ResponseComplete",` +
			`"requestURI":"/api/v1/namespaces",` +
			`"verb":"create","user":{"username":"system:apiserver","groups":["system:masters"]},"objectRef":{"resource":"namespaces",` +
			`"name":"kube-system","apiVersion":"v1"},` +
			`"responseStatus":{"code":` + code +
			`},"requestReceivedTimestamp":"2026-05-04T10:00:00.000001Z","stageTimestamp":"2026-05-04T10:00:00.000002Z",` +
			`"responseObject":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u","resourceVersion":"4"}},` +
			`"annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n"
	}
	// Whom it binds was not recorded, whatever else is known.
	const open = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"c","stage":"ResponseComplete",` +
		`"requestURI":"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings","verb":"create","user":{"username":"admin",` +
		`"groups":["system:masters"]},` +
		`"objectRef":{"resource":"clusterrolebindings","name":"x","apiGroup":"rbac.authorization.k8s.io","apiVersion":"v1"},` +
		`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-05-04T10:30:00.000001Z",` +
		`"stageTimestamp":"2026-05-04T10:30:00.000002Z","annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n"
	for name, tc := range map[string]struct {
		in     string
		more   []string
		hinted bool
	}{
		"no state":                 {list, nil, true},
		"from empty":               {open + list, []string{"--from-empty"}, false},
		"the cluster's birth":      {birth("201") + open + list, nil, false},
		"a birth that was refused": {birth("409") + list, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range [][]string{{"evaluate", "-o", "json"}, {"findings", "-o", "json"}} {
				code, out, err := commandLine(t, tc.in, append(append(command, "--events", "-"), tc.more...)...)
				if code != cli.ExitOK || strings.Contains(err, hint) != tc.hinted {
					t.Errorf("%s: code %d, said %q", command[0], code, err)
				}
				if command[0] == "evaluate" && !tc.hinted && !strings.Contains(out, `"indeterminate": 1`) {
					t.Errorf("nothing is left open, so no hint is due: %s", out)
				}
			}
		})
	}
}

// TestFormsAreSafe prints what a client chose in every form.
func TestFormsAreSafe(t *testing.T) {
	const hostile = "a\x1b[31m\u009b\x7f\u202e\u2028\U000e0041&<b"
	in, err := json.Marshal(map[string]string{"name": hostile})
	if err != nil {
		t.Fatal(err)
	}
	var sunk bytes.Buffer
	if _, err := cli.SafeJSON(&sunk).Write(in); err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{"lines": sunk.String()}
	for _, form := range []string{"json", "yaml"} {
		var b bytes.Buffer
		if err := cli.PrintAs(&b, form,
			map[string]string{"name": hostile, "quiet": "a\u202eb", "lines": "a\nb", "number": "12"}); err != nil {
			t.Fatal(err)
		}
		outputs[form] = b.String()
	}
	for form, out := range outputs {
		var back map[string]string
		read := json.Unmarshal
		if form == "yaml" {
			read = func(text []byte, v any) error { return yaml.Unmarshal(text, v) }
		}
		if err := read([]byte(out), &back); err != nil || back["name"] != hostile ||
			form != "lines" && (back["quiet"] != "a\u202eb" || back["lines"] != "a\nb" || back["number"] != "12") {
			t.Errorf("%s: %q is read as %q (%v)", form, out, back["name"], err)
		}
		if strings.ContainsAny(out, "\x1b\u009b\x7f\u202e\u2028\U000e0041") {
			t.Errorf("%s: %q reaches the terminal", form, out)
		}
	}
}

func TestClusterAddSaysWhatIsNeededToReachIt(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	add := func(name string, args ...string) string {
		code, _, err := commandLine(t, "", append([]string{"cluster", "add", name, "--data-dir", dir, "-o", kubeconfig}, args...)...)
		if code != cli.ExitOK {
			t.Fatalf("code %d: %s", code, err)
		}
		return err
	}
	if said := add("here"); !strings.Contains(said, "note: only this machine reaches 127.0.0.1") {
		t.Errorf("said %q", said)
	}
	info, err := os.Stat(kubeconfig)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a private key lies in a file of mode %v (%v)", info.Mode(), err)
	}
	const elsewhere = "https://retrial.example:9443"
	if said := add("there", "--server", elsewhere); !strings.Contains(said, "does not name retrial.example yet; start it with: retrial "+
		"serve --webhook-listen 0.0.0.0:9443 --webhook-advertise retrial.example") {
		t.Errorf("said %q", said)
	}
	if said := add("named", "--server", elsewhere, "--webhook-advertise", "retrial.example", "--token"); strings.Contains(said, "note:") ||
		!strings.Contains(said, "its token is valid until the cluster is revoked") {
		t.Errorf("said %q", said)
	}
	_, out, _ := commandLine(t, "", "cluster", "list", "--data-dir", dir, "-o", "json")
	if list := itemsOf[server.Registered](t, out); len(list) != 3 || list[1].Name != "named" || list[1].Tokens != 1 ||
		list[1].Expires == nil {
		t.Errorf("%s", out)
	}
}

// TestSocketOfAnotherUser tells a socket that may not be opened from one that is not there.
func TestSocketOfAnotherUser(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may open every socket")
	}
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, apiclient.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(filepath.Join(dir, apiclient.SocketName), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := apiclient.Dial(t.Context(), "", dir); err == nil || errors.Is(err, apiclient.ErrNoServer) ||
		!strings.Contains(err.Error(), "another user") {
		t.Errorf("said %v", err)
	}
}

// TestAdviceIsInSentences holds the page's advice for every class to the form of a text.
func TestAdviceIsInSentences(t *testing.T) {
	for _, class := range []string{verdict.ClassNoState, verdict.ClassUnknown, verdict.ClassNodeGraph, verdict.ClassConfig,
		verdict.ClassWebhook, verdict.ClassUnparsable, verdict.ClassNoSubject, "of another version"} {
		a := query.AdviceFor("prod", class)
		for _, text := range []string{a.Title, a.Text} {
			if text == "" || !unicode.IsUpper(rune(text[0])) {
				t.Errorf("%s: %q", class, text)
			}
		}
		if !strings.HasSuffix(a.Text, ".") {
			t.Errorf("%s: %q", class, a.Text)
		}
	}
}

// itemsOf returns the items of a list that a command printed as JSON.
func itemsOf[T any](t *testing.T, text string) []T {
	t.Helper()
	var list struct{ Items []T }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return list.Items
}
