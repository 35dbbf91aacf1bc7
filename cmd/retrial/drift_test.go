package main

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/analysis/drift"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// TestDriftRoute: stored groups that differ in words alone are one group by cause, with their
// counts, their bounds and the earliest examples.
func TestDriftRoute(t *testing.T) {
	at := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	stored := func(reason string, n int64, first time.Time) queries.Drift {
		return queries.Drift{
			Outcome: verdict.OutcomeDrift, Class: verdict.ClassAllowForbid, Cause: "the recorded reason names what did not exist",
			Recorded: verdict.DecisionAllow, RecordedReason: reason, Replayed: verdict.DecisionForbid, Code: 200, Requests: n, Users: 2,
			First: first, Last: first.Add(time.Minute),
			Examples: []queries.DriftExample{
				{AuditID: "a" + first.String(), User: "ann", Verb: "get", URI: "/api/v1/pods", At: first},
				{AuditID: "b" + first.String(), User: "bob", Verb: "get", URI: "/api/v1/pods", At: first.Add(time.Second)},
			},
		}
	}
	f := &fakeStore{drift: []queries.Drift{
		stored(`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "ann"`, 7, at.Add(time.Hour)),
		stored(`RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "bob"`, 5, at),
	}}
	answer := decodeAnswer[query.DriftAnswer](t, askFake(t, f, http.MethodGet, "drift?cluster=c"))
	if len(answer.Groups) != 1 {
		t.Fatalf("%d groups: %+v", len(answer.Groups), answer.Groups)
	}
	g := answer.Groups[0]
	if g.About != "ClusterRoleBinding b" || g.Count != 12 || g.Users != 2 || !g.First.Equal(at) ||
		!g.Last.Equal(at.Add(time.Hour+time.Minute)) ||
		len(g.Examples) != 3 || !g.Examples[0].At.Equal(at) || g.Likely[0].Kind != drift.KindState {
		t.Errorf("got %+v", g)
	}
	if w := askFake(t, f, http.MethodGet, "drift"); w.Code != http.StatusBadRequest ||
		!strings.Contains(w.Body.String(), "cluster is missing") {
		t.Errorf("without a cluster: %d %s", w.Code, w.Body)
	}
}

// TestNoDriftOfNothing: no groups are an all-clear only where something was judged.
func TestNoDriftOfNothing(t *testing.T) {
	for want, f := range map[string]*fakeStore{
		"Nothing can be said of cluster c: it has no requests of that time.\n":                            {},
		"Nothing can be said of cluster c: none of the 3 requests of that time could be compared (docs/v": {requests: 3},
		"Nothing drifts in cluster c: all 2 judged requests of that time match the record.\n":             {requests: 3, judged: 2},
		"Nothing drifts in cluster c: the one judged request of that time matches the record.\n":          {requests: 1, judged: 1},
	} {
		answer := decodeAnswer[query.DriftAnswer](t, askFake(t, f, http.MethodGet, "drift?cluster=c"))
		if out, _ := printed(printDrift, &answer); !strings.HasPrefix(out, want) || answer.Requests != f.requests ||
			answer.Judged != f.judged {
			t.Errorf("%q; want %q", out, want)
		}
	}
}

// TestKindsOfDriftAreDocumented holds docs/cli.md to the likely causes there are.
func TestKindsOfDriftAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, kind := range drift.Kinds() {
		i := bytes.Index(doc, []byte("\n| `"+kind+"` | "))
		if i <= at {
			t.Errorf("docs/cli.md does not say what %s is, or not in its place", kind)
		}
		at = max(at, i)
	}
}

// TestPrintDriftIsSafe: what clients chose does not reach a terminal as it is.
func TestPrintDriftIsSafe(t *testing.T) {
	hostile := "x\x1b[2J\nDRIFT  forged"
	out, _ := printed(printDrift, &query.DriftAnswer{Cluster: hostile, Truncated: true, Groups: []drift.Group{{
		Verdict: "drift", Class: hostile, Text: hostile, About: hostile, Server: hostile, Count: 1, Users: 1,
		Examples: []drift.Example{{AuditID: hostile, User: hostile, Verb: hostile, URI: hostile, Cause: hostile}},
		Likely:   []drift.Cause{{Kind: hostile, Why: hostile, Give: hostile}},
	}}})
	if strings.ContainsAny(out, "\x1b\a") || strings.Contains(out, "\nDRIFT  forged") {
		t.Errorf("a control byte, or a forged line, came through:\n%q", out)
	}
	if !strings.Contains(out, "more than one answer can hold") {
		t.Error("nothing says that the answer is cut off")
	}
}
