package configurations

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/apiserver/product"
	"github.com/retrial-io/retrial/test/recording"
)

// judge holds every verdict on a recording against what its requests were made to show, and
// wants the built product to come to the same ones.
func judge(t *testing.T, dir string) *recording.Result {
	t.Helper()
	result, err := recording.Judge(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range result.Problems {
		t.Error(p)
	}
	t.Logf("%d requests: %v", result.Requests, result.Outcomes)

	in := product.New(t)
	out := in.Offline(t, "evaluate", "--state", filepath.Join(dir, "state.json"), "--events", filepath.Join(dir, "audit.jsonl"),
		"--apiserver-config", filepath.Join(dir, "config"), "-o", "jsonl")
	got := map[string]int{}
	for line := range strings.Lines(out.Out) {
		var v struct{ Verdict, Class string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		got[outcome(v.Verdict, v.Class)]++
	}
	want := maps.Clone(result.Outcomes)
	maps.DeleteFunc(want, func(key string, _ int) bool { return strings.Contains(key, ":") })
	if !maps.Equal(got, want) {
		t.Errorf("retrial evaluate: %v, want %v", got, want)
	}
	if keep := os.Getenv("RETRIAL_RECORDED"); keep != "" { // to look at
		to := filepath.Join(keep, t.Name())
		if err := os.RemoveAll(to); err != nil {
			t.Error(err)
		}
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
	}
	return result
}

func outcome(name, class string) string {
	if class != "" {
		name += "/" + class
	}
	return name
}

// cluster is what the recorded cluster is called in the product.
const cluster = product.Cluster

// served is judge of a running server, which is handed the recording and told where the
// configuration lies.
func served(t *testing.T, dir string, result *recording.Result, servers ...string) {
	t.Helper()
	in := product.New(t)
	in.Serve(t, "127.0.0.1:0", "--apiserver-config", cluster+"="+filepath.Join(dir, "config"))
	in.Do(t, "import", "--cluster", cluster, "--state", filepath.Join(dir, "state.json"), filepath.Join(dir, "audit.jsonl"))
	for _, s := range servers {
		in.Do(t, "import", "--cluster", cluster, "--apiserver", s, filepath.Join(dir, "audit-"+s+".jsonl"))
	}
	compare(t, in, result)
}

// compare holds what a server has stored against what the replica came to.
func compare(t *testing.T, in *product.Install, result *recording.Result) {
	t.Helper()
	want := map[string]int{}
	for key, n := range result.Outcomes { // the list does not say which server it was
		_, name, found := strings.Cut(key, ":")
		if !found {
			name = key
		}
		want[name] += n
	}
	if got := stored(t, in); !maps.Equal(got, want) {
		t.Errorf("retrial serve: %v, want %v", got, want)
	}
}

// stored counts the outcomes of all requests of the cluster.
func stored(t *testing.T, in *product.Install) map[string]int {
	t.Helper()
	in.Drained(t)
	got := map[string]int{}
	for query := (url.Values{"cluster": {cluster}, "limit": {"500"}}); ; {
		var page struct {
			Events []struct{ Outcome, Class string }
			Older  string
		}
		in.Ask(t, "events", query, &page)
		for _, e := range page.Events {
			got[outcome(e.Outcome, e.Class)]++
		}
		if page.Older == "" {
			return got
		}
		query.Set("before", page.Older)
	}
}
