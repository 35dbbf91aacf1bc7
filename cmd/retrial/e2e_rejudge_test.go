package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

// TestRejudgeWithAConfigurationSuppliedLate brings in recordings of apiservers that authorize in
// other ways than is assumed, gives their configurations afterwards, and judges again: with a
// server running, and without one. In the end the verdicts are those of evaluate.
func TestRejudgeWithAConfigurationSuppliedLate(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	served, alone := []string{"abac"}, []string{"always-allow"}
	if long() {
		served, alone = append(served, "always-deny", "webhooks"), append(alone, "reload")
	}
	if testing.Short() {
		alone = nil // one process judges one request after another, as evaluate does: nothing for the race detector
	}
	clusters := slices.Concat(served, alone)
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
	stored := func() map[string]map[string]int {
		t.Helper()
		queries := map[string]string{}
		for _, c := range clusters {
			queries[filepath.Join(in.dir, c)] = verdictsOf(c)
		}
		totals := inspect(t, inspection{Data: in.data(), Queries: queries})
		if totals.Rows != totals.Events || totals.Volume != totals.Events || totals.Usage != totals.Judged ||
			totals.Grants != totals.GrantRows {
			t.Errorf("totals do not add up: %+v", totals)
		}
		out := map[string]map[string]int{}
		for _, c := range clusters {
			out[c] = map[string]int{}
			for _, line := range lines(t, filepath.Join(in.dir, c)) {
				var v struct{ Outcome, Class string }
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				out[c][judgement(v.Outcome, v.Class)]++
			}
		}
		return out
	}

	// Nothing is known of the configurations.
	s := in.serve(t, "--replay-hold", "0s")
	for _, c := range clusters {
		in.run(t, "import", "--cluster", c, "--state", filepath.Join(folder(c), "state.json.zst"),
			filepath.Join(folder(c), "audit.jsonl.zst")).ok(t)
	}
	s.drained(t)
	s.stop(t)
	before := stored()
	want := map[string]map[string]int{}
	for _, c := range clusters {
		want[c] = map[string]int{}
		for _, l := range verdictLines(t, folder(c)) {
			want[c][judgement(l.Verdict, l.Class)]++
		}
		if maps.Equal(before[c], want[c]) {
			t.Fatalf("%s: the configuration changes nothing: %v", c, want[c])
		}
	}

	// judge runs the command of one cluster and returns its report.
	judge := func(cluster string, args ...string) query.RejudgeJob {
		t.Helper()
		var answer struct{ Jobs []query.RejudgeJob }
		out := in.run(t, append([]string{"rejudge", "--cluster", cluster, "-o", "json"}, args...)...).ok(t).out
		if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Jobs) != 1 || !answer.Jobs[0].Done {
			t.Fatalf("%v: %s", err, out)
		}
		return answer.Jobs[0]
	}
	// moved is what becomes of counts by what a report says.
	moved := func(counts map[string]int, r *verdict.RejudgeReport) map[string]int {
		out := maps.Clone(counts)
		for _, tr := range r.Transitions {
			out[judgement(tr.From.Verdict, tr.From.Class)] -= int(tr.Count)
			out[judgement(tr.To.Verdict, tr.To.Class)] += int(tr.Count)
		}
		maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
		return out
	}
	again := func(c, since string, more ...string) {
		t.Helper()
		dry := judge(c, append(more, "--since", since, "--dry-run")...)
		if dry.Report.Changed == 0 || !maps.Equal(moved(before[c], &dry.Report), want[c]) {
			t.Errorf("%s: the dry run says %+v; before it is %v, with the configuration %v", c, dry.Report, before[c], want[c])
		}
		done := judge(c, append(more, "--since", since)...)
		if done.Report.Changed != dry.Report.Changed || done.Report.Visited != dry.Report.Visited || done.Report.Failed != 0 ||
			done.Interrupted != 0 ||
			!maps.Equal(moved(before[c], &done.Report), want[c]) {
			t.Errorf("%s: judged again: %+v, the dry run said %+v", c, done.Report, dry.Report)
		}
		if r := judge(c, append(more, "--since", since)...).Report; r.Changed != 0 || r.Visited != done.Report.Visited {
			t.Errorf("%s: a second time: %+v, want none that changes of %d", c, r, done.Report.Visited)
		}
	}

	// With a server, which says what to do.
	offer := regexp.MustCompile(`retrial rejudge --cluster (\S+) --since (\S+) --data-dir`)
	s = in.serve(t, append(flags, "--replay-hold", "0s")...)
	s.drained(t)
	if !s.reach(t.Context(), "retrial_runner_rows_judged_otherwise", 1) {
		t.Fatal("no request is said to have been judged otherwise")
	}
	doctor := in.run(t, "doctor").out
	for _, c := range served {
		since := ""
		for _, m := range offer.FindAllStringSubmatch(s.log.String(), -1) {
			if m[1] == c {
				since = m[2]
			}
		}
		if since == "" {
			t.Fatalf("%s: the log offers nothing", c)
		}
		says(t, doctor, "judged-otherwise", "retrial rejudge --cluster "+c+" --since "+since)
		again(c, since)
	}
	doctor = in.run(t, "doctor").out
	for _, c := range clusters {
		if offered := strings.Contains(doctor, "retrial rejudge --cluster "+c+" "); offered != slices.Contains(alone, c) {
			t.Errorf("%s: offered by the doctor afterwards: %v\n%s", c, offered, doctor)
		}
	}
	s.stop(t)
	for c, got := range stored() {
		if slices.Contains(served, c) && !maps.Equal(got, want[c]) || slices.Contains(alone, c) && !maps.Equal(got, before[c]) {
			t.Errorf("%s: %v stored; before it was %v, with the configuration %v", c, got, before[c], want[c])
		}
	}

	// Without one.
	for _, c := range alone {
		again(c, "2000-01-01T00:00:00Z", flags...)
	}
	for c, got := range stored() {
		if !maps.Equal(got, want[c]) {
			t.Errorf("%s: %v stored, want %v as evaluate has it", c, got, want[c])
		}
	}
}
