package main

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// answering serves a handler as the server of a data directory, and returns that.
func answering(t *testing.T, h http.HandlerFunc) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, apiclient.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return dir
}

// completable answers what there is to complete, of two clusters, as api/v1/complete does.
func completable(t *testing.T, of map[string][]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch r.URL.Path {
		case "/api/v1/clusters":
			_, _ = w.Write([]byte(`{"clusters":[{"name":"prod"},{"name":"test"}]}`))
		case "/api/v1/complete":
			type value struct {
				Value string `json:"value"`
				Kind  string `json:"kind,omitempty"`
			}
			var values []value
			if k := q.Get("kind"); k != "cluster" && k != "rule" && q.Get("cluster") != "prod" {
				t.Errorf("asked of cluster %q: %s", q.Get("cluster"), r.URL)
			}
			for _, v := range of[q.Get("kind")+q.Get("resource")+q.Get("namespace")] {
				if strings.Contains(v, q.Get("prefix")) {
					values = append(values, value{Value: v})
				}
			}
			if err := json.NewEncoder(w).Encode(map[string]any{"values": values}); err != nil {
				t.Error(err)
			}
		default:
			http.NotFound(w, r)
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	dir := answering(t, completable(t, map[string][]string{
		"cluster": {"prod", "test"}, "subject": {"alice", "system:serviceaccount:shop:api", "system:node:n1", "hostile\x1b", "malice"},
		"group": {"devs", "system:masters"}, "verb": {"get", "list"}, "resource": {"pods", "deployments.apps"},
		"namepods": {"web-0", "web-1"}, "namepodsshop": {"web-1"}, "namespace": {"shop", "default"}, "rule": {"pod-exec"},
	}))
	for line, want := range map[string]string{
		"can --cluster prod |":                         "alice malice sa/shop:api system:node:n1",
		"can --cluster prod al|":                       "alice",
		"can --cluster prod sa/sh|":                    "sa/shop:api",
		"can --cluster prod system:serviceaccount:s|":  "system:serviceaccount:shop:api",
		"can --cluster prod node/|":                    "node/n1",
		"can --cluster prod group/d|":                  "group/devs",
		"can --cluster prod alice l|":                  "list",
		"can --cluster prod alice get pod|":            "pods",
		"can --cluster prod alice get pods web|":       "web-0 web-1",
		"can --cluster prod alice get pods -n shop w|": "web-1",
		"who-can --cluster prod get dep|":              "deployments.apps",
		"who-can --cluster prod get pods -n sh|":       "shop",
		"who-can --cluster p|":                         "prod",
		"findings --cluster prod --subject a|":         "alice",
		"findings --rule pod|":                         "pod-exec",
		"findings --min-severity h|":                   "high",
		"findings -o js|":                              "json",
		"lineage --cluster prod ali|":                  "alice",
		"escalations --cluster prod alice x|":          "",
		"tail --cluster prod --decision f|":            "forbid",
		"doctor te|":                                   "test",
		"can |":                                        "", // there are two clusters
		"can --events x.log al|":                       "",
	} {
		words := strings.Fields(strings.TrimSuffix(line, "|"))
		begun := ""
		if !strings.HasSuffix(line, " |") {
			begun, words = words[len(words)-1], words[:len(words)-1]
		}
		args := append([]string{"__complete", words[0], "--data-dir", dir}, words[1:]...)
		code, out, errs := commandLine(t, "", append(args, begun)...)
		if got := completions(out, begun); got != want || code != cli.ExitOK || strings.Contains(errs, "rror") {
			t.Errorf("%s: got %q, want %q; exit code %d: %s", line, got, want, code, errs)
		}
	}
}

// completions returns what a shell offers of what it is given, sorted.
func completions(out, begun string) string {
	var words []string
	for _, l := range strings.Split(out, "\n") {
		word, _, _ := strings.Cut(l, "\t")
		if strings.HasPrefix(word, ":") {
			break
		}
		if strings.HasPrefix(word, begun) {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestCompletionNeverWaits: where nobody answers, or not in time, nothing is offered, and nothing is said.
func TestCompletionNeverWaits(t *testing.T) {
	t.Parallel()
	slow := answering(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	broken := answering(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) })
	for name, dir := range map[string]string{"slow": slow, "broken": broken, "none": t.TempDir()} {
		began := time.Now()
		code, out, errs := commandLine(t, "", "__complete", "can", "--data-dir", dir, "al")
		if took := time.Since(began); completions(out, "al") != "" || code != cli.ExitOK || strings.Contains(errs, "rror") ||
			took > 20*completeWithin {
			t.Errorf("%s: %q %q, exit code %d, in %s", name, out, errs, code, took)
		}
	}
}
