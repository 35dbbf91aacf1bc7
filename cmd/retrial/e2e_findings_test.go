package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/internal/cli"
)

// promptly makes a server work out findings as soon as anything changed.
var promptly = []string{"--detect-lateness", "0s", "--detect-every", "100ms"}

// storedFindings are the findings of a cluster as the command prints them, by id.
func (in install) storedFindings(t *testing.T, cluster string) map[string]detect.Finding {
	t.Helper()
	return findingsByID(t, in.run(t, "findings", "--cluster", cluster, "-o", "json").ok(t).out)
}

func findingsByID(t *testing.T, text string) map[string]detect.Finding {
	t.Helper()
	list := itemsOf[detect.Finding](t, text)
	out := map[string]detect.Finding{}
	for i, f := range list {
		if i > 0 && f.First.Before(list[i-1].First) {
			t.Errorf("finding %s is not in its place", f.ID)
		}
		out[f.ID] = f
	}
	return out
}

// settled waits until the server's findings are those that are wanted, and returns them.
func (s *running) settled(t *testing.T, cluster string, want map[string]detect.Finding) {
	t.Helper()
	var got map[string]detect.Finding
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if got = s.storedFindings(t, cluster); sameCounts(got, want) {
			return
		}
	}
	sameFindings(t, "what the server found", got, want)
}

func sameCounts(got, want map[string]detect.Finding) bool {
	if len(got) != len(want) {
		return false
	}
	for id, f := range want {
		if got[id].Count != f.Count {
			return false
		}
	}
	return true
}

// sameFindings compares findings. Requests of redacted events have other keys than those of
// the log.
func sameFindings(t *testing.T, what string, got, want map[string]detect.Finding) {
	t.Helper()
	bare := func(f detect.Finding) detect.Finding {
		f.Evidence = nil
		return f
	}
	for id, f := range want {
		if g, ok := got[id]; !ok || !reflect.DeepEqual(bare(g), bare(f)) {
			t.Errorf("%s: finding %s (found: %v)\n is  %+v\nwant %+v", what, id, ok, g, f)
		}
	}
	for id, f := range got {
		if _, ok := want[id]; !ok {
			t.Errorf("%s: there should be no finding %+v", what, f)
		}
	}
}

// TestStoredFindingsAreThoseOfTheLog: whatever way the same requests come in, once or twice,
// in order or not, with their state first or last, the findings are those of the log, under
// the same ids; and a start finds them as the one before left them.
func TestStoredFindingsAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	log := unborn(portion(t))
	file, state := writeLog(t, filepath.Join(in.dir, "audit.jsonl"), log), writeState(t, in.dir)
	offline := func(cluster string) map[string]detect.Finding {
		return findingsByID(t, in.runAlone(t, "findings", "--cluster", cluster, "--state", state, "--events", file, "-o", "json").ok(t).out)
	}

	in.run(t, "import", "--cluster", "alone", "--state", state, file).ok(t)
	want := offline("alone")
	if len(want) < 20 {
		t.Fatalf("%d findings of the log", len(want))
	}
	sameFindings(t, "after an import without a server", in.storedFindings(t, "alone"), want)

	s := in.serve(t, promptly...)
	posted := s.addCluster(t, "posted")
	postAll(t, posted, batches(log, 3))
	s.drained(t)
	// Of the control plane's rights nothing is known yet: its work looks like anybody's.
	unjudged := findingsByID(t, in.runAlone(t, "findings", "--cluster", "posted", "--events", file, "-o", "json").ok(t).out)
	s.settled(t, "posted", unjudged)
	in.run(t, "import", "--cluster", "posted", "--state", state).ok(t) // judges everything again
	s.drained(t)
	s.settled(t, "posted", offline("posted"))
	// Counted when the pass that did it ends.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !s.reach(ctx, "retrial_detect_withdrawn_total", 1) {
		t.Error("nothing was withdrawn when the state came in")
	}
	if n, _ := s.metric(t.Context(), "retrial_detect_errors_total"); n != 0 {
		t.Errorf("%v errors", n)
	}
	s.stop(t)

	s = in.serve(t, promptly...)
	postAll(t, s.sender(t, filepath.Join(in.dir, "posted.kubeconfig")), batches(log[:2000], 4))
	s.drained(t)
	s.settled(t, "alone", want)
	s.settled(t, "posted", offline("posted"))
	s.stop(t)
}

// runAlone runs a command that has nothing to do with the installation's data.
func (in install) runAlone(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, in.retrial(t.Context(), args...))
}

// TestFindingsQuestions asks the store with every filter there is.
func TestFindingsQuestions(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := newInstall(t)
	file, state := writeLog(t, filepath.Join(in.dir, "audit.jsonl"), recorded(t)), writeState(t, in.dir)
	in.run(t, "import", "--cluster", "a", "--state", state, file).ok(t)
	all := in.storedFindings(t, "a")
	for name, c := range map[string]struct {
		args []string
		keep func(detect.Finding) bool
	}{
		"rule": {[]string{"--rule", "pod-exec"}, func(f detect.Finding) bool { return f.Rule == "pod-exec" }},
		"severity": {[]string{"--min-severity", "high"},
			func(f detect.Finding) bool { return f.Severity == "high" || f.Severity == "critical" }},
		"subject": {[]string{"--subject", "bob"}, func(f detect.Finding) bool { return f.Subject == "bob" }},
		"at": {[]string{"--at", "2026-11-20T11:38:00Z"},
			func(f detect.Finding) bool { return !f.First.After(time.Date(2026, 11, 20, 11, 38, 0, 0, time.UTC)) }},
		"from": {[]string{"--from", "2026-11-20T11:40:00Z"},
			func(f detect.Finding) bool { return !f.Last.Before(time.Date(2026, 11, 20, 11, 40, 0, 0, time.UTC)) }},
		"to": {[]string{"--to", "2026-11-20T11:38:00Z"},
			func(f detect.Finding) bool { return f.First.Before(time.Date(2026, 11, 20, 11, 38, 0, 0, time.UTC)) }},
	} {
		want := map[string]detect.Finding{}
		for id, f := range all {
			if c.keep(f) {
				want[id] = f
			}
		}
		got := findingsByID(t, in.run(t, append([]string{"findings", "-o", "json"}, c.args...)...).ok(t).out)
		sameFindings(t, name, got, want)
		if len(want) == 0 || len(want) == len(all) {
			t.Errorf("%s: selects %d of %d: nothing is shown", name, len(want), len(all))
		}
	}
	says(t, in.run(t, "findings").ok(t).out, "SEVERITY", "credential-forged")
	in.run(t, "findings", "--cluster", "nobody").refused(t, cli.ExitNoMatch, "there is no cluster nobody; known: a")
	in.run(t, "findings", "--rule", "nothing").refused(t, cli.ExitNoMatch, "unknown rule nothing")
	in.run(t, "findings", "--at", "tomorrow").refused(t, cli.ExitUsage, "invalid time")
	if r := in.run(t, "findings", "--fail-on", "critical"); r.code != cli.ExitFinding {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// TestServeWithABrokenRule: the start fails and names the file.
func TestServeWithABrokenRule(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	dir := filepath.Join(in.dir, "rules")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte("id: x\nexpr: 'verb =='\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := in.start(t, "--detect-rules-dir", dir)
	if err == nil || !strings.Contains(err.Error(), "mine.yaml") || !strings.Contains(err.Error(), "detect-rules-dir") {
		t.Errorf("serve: %v; want it to name the file and the flag", err)
	}
}
