package configurations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/apiserver/product"
)

// judge lets the built product judge a recording.
func judge(t *testing.T, dir string) {
	t.Helper()
	in := product.New(t)
	args := []string{"evaluate", "--state", filepath.Join(dir, "state.json"), "--events", filepath.Join(dir, "audit.jsonl"), "-o", "jsonl"}
	if strings.Contains(in.Offline(t, "evaluate", "--help").Out, "--apiserver-config") {
		args = append(args, "--apiserver-config", filepath.Join(dir, "config"))
	}
	out := in.Offline(t, args...)
	count := map[string]int{}
	for line := range strings.Lines(out.Out) {
		var v struct{ Verdict, Class string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		count[v.Verdict+"/"+v.Class]++
	}
	t.Logf("verdicts: %v", count)
	if keep := os.Getenv("RETRIAL_RECORDED"); keep != "" {
		_ = os.RemoveAll(filepath.Join(keep, t.Name()))
		_ = os.CopyFS(filepath.Join(keep, t.Name()), os.DirFS(dir))
		_ = os.WriteFile(filepath.Join(keep, t.Name(), "verdicts.jsonl"), []byte(out.Out), 0o600)
	}
}
