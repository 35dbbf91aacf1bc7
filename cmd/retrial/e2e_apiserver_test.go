package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/verdict"
)

// TestServeWithAnApiserversConfiguration imports recordings of apiservers that authenticate and
// authorize in other ways into a server that was told how: its verdicts are those of evaluate.
func TestServeWithAnApiserversConfiguration(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	clusters := []string{"abac", "webhooks"}
	if long() {
		clusters = append(clusters, "always-allow", "always-deny", "identities", "nodes", "oidc", "oidc-flags", "reload")
	}
	folder := func(cluster string) string {
		dir, err := filepath.Abs(filepath.Join("..", "..", "replay", "testdata", "recordings", cluster))
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	var flags []string
	for _, c := range clusters {
		flags = append(flags, "--apiserver-config", c+"="+filepath.Join(folder(c), "config"))
	}
	s := in.serve(t, append(flags, "--replay-hold", "0s")...)
	queries := map[string]string{}
	for _, c := range clusters {
		in.run(t, "import", "--cluster", c, "--state", filepath.Join(folder(c), "state.json.zst"),
			filepath.Join(folder(c), "audit.jsonl.zst")).ok(t)
		queries[filepath.Join(in.dir, c)] = verdictsOf(c)
	}
	s.drained(t)
	says(t, in.run(t, "doctor", "-o", "json").out, "Its apiserver's configuration is")
	refused := ""
	for _, c := range clusters {
		for _, l := range verdictLines(t, folder(c)) {
			if l.Recorded == "forbid" && l.Verdict == "match" && c == "abac" {
				refused = l.AuditID
			}
		}
	}
	says(t, in.run(t, "explain-deny", refused, "--cluster", "abac").ok(t).out, "REFUSED BY",
		"abac: no opinion  no line of the policy file allows it")
	in.run(t, "drift", "--cluster", "abac", "--fail").ok(t)
	s.stop(t)

	inspect(t, inspection{Data: in.data(), Queries: queries})
	for _, c := range clusters {
		t.Run(c, func(t *testing.T) { sameVerdicts(t, lines(t, filepath.Join(in.dir, c)), verdictLines(t, folder(c))) })
	}
}

// sameVerdicts compares what is stored of verdicts with what evaluate prints of them.
func sameVerdicts(t *testing.T, stored []string, printed []verdict.Line) {
	t.Helper()
	type verdict struct {
		Outcome, Class, Recorded, Replayed, Authorizer, Credential string
		Config                                                     string `json:"config_version"`
		Explained, Missing                                         []string
	}
	type key struct{ id, user, uri string }
	text := func(v verdict) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	got, want := map[key][]string{}, map[key][]string{}
	for _, line := range stored {
		var k struct {
			AuditID string `json:"audit_id"`
			User    string `json:"user_name"`
			URI     string `json:"request_uri"`
		}
		v := verdict{}
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		got[key{k.AuditID, k.User, k.URI}] = append(got[key{k.AuditID, k.User, k.URI}], text(v))
	}
	for _, l := range printed {
		v := verdict{l.Verdict, l.Class, l.Recorded, l.Replayed, l.Authorizer, l.Credential, l.Config, append([]string{}, l.Explained...),
			append([]string{}, l.Missing...)}
		k := key{l.AuditID, l.User, l.RequestURI}
		want[k] = append(want[k], text(v))
		if !strings.Contains(l.Config, ";apiserver=") {
			t.Fatalf("%+v is judged without the configuration: %s", k, l.Config)
		}
	}
	different := 0
	for k, w := range want {
		g := got[k]
		slices.Sort(g)
		slices.Sort(w)
		if !slices.Equal(g, w) {
			if different++; different <= 3 {
				t.Errorf("%+v\nstored  %v\nprinted %v", k, g, w)
			}
		}
	}
	if different > 0 || len(got) != len(want) {
		t.Errorf("%d of %d requests are judged otherwise; %d are stored", different, len(want), len(got))
	}
}
