package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/retrial-io/retrial/internal/sample"
	chdb "github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/test/recorded"
)

// TestScripts runs both programs, built beside each other as make build does: the product finds
// the benchmarks, and they find the product.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs that no race detector watches; runs without -short")
	}
	t.Parallel()
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", bin+"/", ".", "../retrial")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	log := slices.DeleteFunc(recorded.Sample(t), func(line []byte) bool { // a log that shows the cluster's birth needs no state
		return bytes.Contains(line, []byte(`"requestURI":"/api/v1/namespaces","verb":"create"`)) &&
			bytes.Contains(line, []byte(`"name":"kube-system"`))
	})
	var more [][]byte // what RBAC alone allows or refuses
	for _, line := range log {
		if bytes.Contains(line, []byte(`"username":"system:serviceaccount:payments-`)) && len(more) < 20 {
			more = append(more, line)
		}
	}
	text := func(lines [][]byte) []byte { return append(bytes.Join(lines, []byte("\n")), '\n') }
	files := map[string][]byte{"audit.jsonl": text(log[:300]), "more.jsonl": text(more), "state.json.zst": sample.StateZstd()}
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
			env.Setenv("BIN", bin)
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "store" {
				return false, fmt.Errorf("unknown condition %s", cond)
			}
			if chdb.Suitable() != nil {
				return false, nil
			}
			_, err := chdb.Locate("")
			return err == nil, nil
		},
	})
}
