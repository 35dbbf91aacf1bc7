package main

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/verdict"
)

// TestBenchRBACConcludes: cores are rate × cost, and what is said of them follows.
func TestBenchRBACConcludes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		us, rate float64
		want     string
	}{
		"a small cluster": {8, 0, "does not matter here: in the busiest minute it takes less than 0.01 % of a core and adds 8.0 " +
			"µs to a request. A tenth of a core would take 12,500 requests a second."},
		"many requests":            {8, 2000, "can be noticed here: at this rate it takes 2 % of a core"},
		"more requests":            {8, 20000, "matters here: at this rate it takes 16 % of a core"},
		"few requests, many roles": {1500, 0.1, "matters here: at this rate it takes 0.01 % of a core and adds 1.5 ms to a request."},
	} {
		b := &rbacBench{rate: tt.rate, first: at, last: at.Add(100 * time.Second), minutes: map[int64]int64{1: 150, 2: 50}}
		b.result.ReachRBAC, b.result.ScanUS = 200, tt.us
		b.conclude()
		if tt.rate == 0 && (b.result.Rate != 2 || b.result.BusiestRate != 2.5 || b.result.BusiestScanCores != 2.5*tt.us/1e6) {
			t.Errorf("%s: %+v", name, b.result)
		}
		if !strings.Contains(b.result.Answer, tt.want) {
			t.Errorf("%s: %q, want %q", name, b.result.Answer, tt.want)
		}
	}
}

// TestBenchRBACOnSample counts what the whole recorded log has, and finds that index and scan
// agree on each of its requests.
func TestBenchRBACOnSample(t *testing.T) {
	if testing.Short() {
		t.Skip("replays the whole sample; runs without -short")
	}
	t.Parallel()
	dir := t.TempDir()
	files := map[string][]byte{"audit.jsonl.zst": sample.AuditLogZstd(), "state.json.zst": sample.StateZstd()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &rbacBench{
		states: []string{filepath.Join(dir, "state.json.zst")}, events: []string{filepath.Join(dir, "audit.jsonl.zst")},
		spend: time.Second,
	}
	r, err := b.run(t.Context(), cli.Streams{Out: io.Discard, Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if r.ClusterRoleBindings != 68 || r.RoleBindings != 118 || r.Requests != 36_602 || r.ReachRBAC != 33_085 {
		t.Errorf("%+v", r)
	}
	if r.ScanUS <= 0 || r.IndexUS <= 0 || r.Rate < 64 || r.BusiestRate < r.Rate {
		t.Errorf("%+v", r)
	}
}

// TestBenchRBACKeeps: only requests that come to RBAC are measured, and of many of them some.
func TestBenchRBACKeeps(t *testing.T) {
	t.Parallel()
	b := &rbacBench{minutes: map[int64]int64{}, random: rand.New(rand.NewPCG(1, 2))}
	e := &event.Event{RequestReceivedTimestamp: time.Unix(1_800_000_000, 0), User: event.User{Username: "ann"}}
	for _, answer := range []string{verdict.AnswerAllow, verdict.AnswerNoOpinion, verdict.AnswerUnknown, verdict.AnswerNotAsked} {
		chain := []verdict.ChainStep{{Authorizer: verdict.AuthorizerNode}, {Authorizer: verdict.AuthorizerRBAC, Answer: answer}}
		if err := b.observe(e, &verdict.Verdict{Chain: chain}); err != nil {
			t.Fatal(err)
		}
	}
	if b.result.Requests != 4 || b.result.ReachRBAC != 3 || len(b.sample) != 3 || b.sample[0].User != "ann" {
		t.Errorf("%+v, %d kept", b.result, len(b.sample))
	}
	asked := &verdict.Verdict{Chain: []verdict.ChainStep{{Authorizer: verdict.AuthorizerRBAC, Answer: verdict.AnswerAllow}}}
	for range 2 * sampledRequests {
		e.User.Username = "bob"
		if err := b.observe(e, asked); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.sample) != sampledRequests || b.result.ReachRBAC != 2*sampledRequests+3 {
		t.Errorf("%d kept of %d", len(b.sample), b.result.ReachRBAC)
	}
}
