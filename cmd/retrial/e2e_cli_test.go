package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
	chdb "github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/test/golden"
)

// TestScripts runs the command line as an operator does; testdata/script holds the scripts.
// Each finds a piece of the recorded log in its folder, plain and compressed, and the state
// it began with.
func TestScripts(t *testing.T) {
	t.Parallel()
	log := unborn(recorded(t))[:300]
	plain := append(bytes.Join(log, []byte("\n")), '\n')
	var more []byte // what RBAC alone allows or refuses
	for _, line := range recorded(t) {
		if bytes.Contains(line, []byte(`"username":"system:serviceaccount:payments-`)) && bytes.Count(more, []byte("\n")) < 20 {
			more = append(append(more, line...), '\n')
		}
	}
	// One event of the log, its recorded decision flipped.
	tampered := bytes.Clone(plain)
	first := bytes.Index(tampered, []byte(`"authorization.k8s.io/decision":"allow"`))
	tampered = append(tampered[:first], bytes.Replace(tampered[first:], []byte(`decision":"allow"`), []byte(`decision":"forbid"`), 1)...)
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, _ = z.Write(plain)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"audit.jsonl": plain, "more.jsonl": more, "tampered.jsonl": tampered, "audit.jsonl.gz": gz.Bytes(),
		"audit.jsonl.zst": enc.EncodeAll(plain, nil), "state.json.zst": sample.StateZstd(),
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), content, 0o600); err != nil {
					return err
				}
			}
			if library, err := chdb.Locate(""); err == nil { // scripts have no home to look in
				env.Setenv(chdb.EnvLibrary, library)
			}
			env.Setenv("RETRIAL_DATA_DIR", filepath.Join(env.WorkDir, "data"))
			env.Setenv("RETRIAL_KEY_FILE", filepath.Join(env.WorkDir, "key"))
			env.Setenv("RETRIAL_REPLAY_HOLD", "0s")
			env.Setenv("ID", decoded(t, log[0]).AuditID)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "store" {
				return false, fmt.Errorf("unknown condition %s", cond)
			}
			if err := chdb.Suitable(); err != nil {
				return false, nil //nolint:nilerr // that is the answer
			}
			_, err := chdb.Locate("")
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exitcode N ARGS: retrial ARGS ends with that code.
			"exitcode": func(ts *testscript.TestScript, _ bool, args []string) {
				want := args[0]
				err := ts.Exec("retrial", args[1:]...)
				got := "0"
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					got = strconv.Itoa(exit.ExitCode())
				} else {
					ts.Check(err)
				}
				if got != want {
					ts.Fatalf("exit code %s, want %s", got, want)
				}
			},
			// append FROM TO: what a log does while it is written.
			"append": func(ts *testscript.TestScript, _ bool, args []string) {
				old, add := ts.ReadFile(args[1]), ts.ReadFile(args[0])
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(old+add), 0o600))
			},
		},
	})
}

// TestVerdictLines holds -o jsonl and -o json to their documented members.
func TestVerdictLines(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := install{t.TempDir()}
	state, file := writeState(t, in.dir), writeLog(t, filepath.Join(in.dir, "audit.jsonl"), portion(t))
	r := finish(t, in.retrial(t.Context(), "evaluate", "-o", "jsonl", "--state", state, "--events", file)).ok(t)
	granted := false
	for line := range bytes.Lines([]byte(r.out)) {
		var v map[string]json.RawMessage
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, member := range []string{"auditID", "requestURI", "requestReceivedTimestamp", "user", "verb", "recorded", "replayed",
			"outcome", "verdict", "class", "grants", "cause", "engine", "config"} {
			if v[member] == nil {
				t.Fatalf("no %s in %s", member, line)
			}
		}
		for member, allowed := range map[string]string{
			"recorded": `^"(allow|forbid|none)"$`, "replayed": `^"(allow|forbid|none)"$`,
			"outcome": `^"(match|drift|ambiguous|indeterminate|not_judged)"$`, "grants": `^\[`,
		} {
			if !regexp.MustCompile(allowed).Match(v[member]) {
				t.Fatalf("%s is %s", member, v[member])
			}
		}
		var grants []struct{ Binding, Role, Subject, Reason string }
		if err := json.Unmarshal(v["grants"], &grants); err != nil {
			t.Fatal(err)
		}
		for _, g := range grants {
			if granted = true; g.Binding == "" || g.Role == "" || g.Subject == "" || g.Reason == "" {
				t.Fatalf("incomplete grant in %s", line)
			}
		}
	}
	if !granted {
		t.Error("no request has a grant")
	}
	var sum map[string]json.RawMessage
	r = finish(t, in.retrial(t.Context(), "evaluate", "-o", "json", "--state", state, "--events", file)).ok(t)
	if err := json.Unmarshal([]byte(r.out), &sum); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"events", "requests", "verdicts", "classes", "agreement", "seconds"} {
		if sum[member] == nil {
			t.Errorf("no %s in the summary", member)
		}
	}
	var verdicts map[string]int64
	if err := json.Unmarshal(sum["verdicts"], &verdicts); err != nil {
		t.Fatal(err)
	}
	var requests, all int64
	if err := json.Unmarshal(sum["requests"], &requests); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"match", "drift", "ambiguous", "indeterminate", "not_judged"} {
		n, ok := verdicts[name]
		if !ok {
			t.Errorf("no %s among the verdicts", name)
		}
		all += n
	}
	if all != requests {
		t.Errorf("%d verdicts for %d requests", all, requests)
	}
}

// TestBlind evaluates the log once as recorded and once without the apiserver's answers: the
// replica decides the same, by the same grants.
func TestBlind(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := install{t.TempDir()}
	at := func(name string) string { return filepath.Join(in.dir, name) }
	state := writeState(t, in.dir)
	log := portion(t)
	blind := make([][]byte, 0, len(log))
	for _, line := range log {
		var e map[string]json.RawMessage
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		// A policy write counts when it succeeded, which its status alone tells.
		if !bytes.Contains(line, []byte(`"responseObject"`)) && !bytes.Contains(e["verb"], []byte("delete")) {
			delete(e, "responseStatus")
		}
		delete(e, "annotations")
		stripped, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		blind = append(blind, stripped)
	}
	decisions := func(name string, log [][]byte) map[string]string {
		out := map[string]string{}
		for id, line := range offline(t, in, state, writeLog(t, at(name), log)) {
			var v struct {
				Replayed, Authorizer string
				Grants               json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			out[id] = v.Replayed + " " + v.Authorizer + " " + string(v.Grants)
		}
		return out
	}
	seeing, notSeeing := decisions("audit.jsonl", log), decisions("blind.jsonl", blind)
	different := changed(seeing, notSeeing)
	for id := range different {
		t.Errorf("%s\nwas %s\nis  %s", id, seeing[id], notSeeing[id])
		if len(different) > 5 {
			break
		}
	}
	if len(different) > 0 || len(seeing) < 10_000 {
		t.Errorf("%d of %d requests are decided otherwise without the answers", len(different), len(seeing))
	}
}

// TestDocsCommands holds docs/cli.md to the commands there are. A command that it does not mention gets a row of its
// own with what its help says.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.HasParent() && !bytes.Contains(doc, []byte("`"+c.CommandPath())) {
			fmt.Fprintf(&rows, "| `%s` | %s |\n", strings.ReplaceAll(c.CommandPath()+strings.TrimPrefix(c.Use, c.Name()), "|", `\|`),
				c.Short)
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				visit(sub)
			}
		}
	}
	visit(newRoot(cli.Streams{}))
	before, after, ok := strings.Cut(string(doc), "| `retrial version` |")
	if !ok {
		t.Fatal("docs/cli.md has no row for retrial version")
	}
	golden.File(t, "docs/cli.md", before+rows.String()+"| `retrial version` |"+after)
}
