package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/retrial-io/retrial/replay/evaluate"
)

// TestKillDuringImport kills the server again and again while a log is imported, at points
// that a seed chooses: while events are accepted, while they are stored, while verdicts are
// corrected. In the end the events are the file's, each once, the rollups are their sums,
// and the verdicts are those of an offline evaluation.
func TestKillDuringImport(t *testing.T) {
	t.Parallel()
	kills, seed := 3, uint64(1)
	if long() {
		kills = 10
	}
	in := newInstall(t)
	log := portion(t)
	at := func(name string) string { return filepath.Join(in.dir, name) }
	state := writeState(t, in.dir)
	rnd := rand.New(rand.NewPCG(seed, 2))

	// Small blocks and no hold: accepting, storing and correcting overlap.
	serve := func() *running { return in.serve(t, "--replay-batch-rows", "400", "--replay-hold", "0s") }
	s := serve()
	in.run(t, "import", "--cluster", "prod", "--state", state).ok(t)
	for kill := range kills {
		part := log[kill*len(log)/kills : (kill+1)*len(log)/kills]
		file := writeLog(t, at(fmt.Sprintf("audit-%d.jsonl", kill)), part)
		under := in.importInBackground(t, file)
		// The counters start at 0 with each process.
		metric := []string{"retrial_webhook_events_acknowledged_total", "retrial_runner_in_total", "retrial_runner_out_total"}[rnd.IntN(3)]
		value := float64(1 + rnd.IntN(len(part)-1))
		if !s.reach(t.Context(), metric, value) {
			t.Fatalf("the server is gone before it was killed:\n%s", s.log)
		}
		s.kill()
		resume := rnd.IntN(2) == 0
		if resume {
			_ = under.cmd.Process.Kill() // it may have ended
			<-under.done.Done()
		}
		t.Logf("kill %d: %s >= %.0f; import killed as well: %t", kill, metric, value, resume)
		s = serve()
		if resume {
			under = in.importInBackground(t, file)
		}
		<-under.done.Done()
		under.result.ok(t)
	}
	whole := writeLog(t, at("audit.jsonl"), log)
	in.run(t, "import", "--cluster", "prod", whole).ok(t)
	s.drained(t)
	s.stop(t)
	checkImported(t, in, "prod", state, whole, log)
}

// background is a process that runs beside the test.
type background struct {
	cmd    *exec.Cmd
	done   context.Context // ends when the process has
	result result
}

// importInBackground runs `retrial import`, which goes on trying while the server is away.
func (in install) importInBackground(t *testing.T, file string) *background {
	t.Helper()
	done, end := context.WithCancel(context.Background())
	cmd := in.retrial(t.Context(), append([]string{"import", "--cluster", "prod", "--wait=false", file}, in.flags()...)...)
	b := &background{cmd: cmd, done: done}
	var out, errs output
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer end()
		_ = cmd.Wait() // the exit code tells
		b.result = result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}()
	return b
}

// checkImported compares everything stored with the file and with its evaluation.
func checkImported(t *testing.T, in install, cluster, state, file string, log [][]byte) {
	t.Helper()
	at := func(name string) string { return filepath.Join(in.dir, name) }
	totals := inspect(t, inspection{Data: in.data(),
		Queries: map[string]string{at("outcomes"): "SELECT outcome, class, sum(sign) AS n FROM retrial.events WHERE outcome != '' " +
			"AND cluster = '" + cluster + "' GROUP BY outcome, class HAVING n != 0 FORMAT JSONEachRow"},
		Events: map[string]string{at("list"): cluster},
	})
	sameEvents(t, in, cluster, log, lines(t, at("list")))
	if totals.Rows != totals.Events || totals.Volume != totals.Events || totals.Usage != totals.Judged ||
		totals.Grants != totals.GrantRows {
		t.Errorf("totals do not add up: %+v", totals)
	}
	if totals.DeadLetters != 0 {
		t.Errorf("%d dead letters", totals.DeadLetters)
	}

	want := evaluated(t, in, state, file)
	verdicts, classes := map[string]int64{}, map[string]int64{}
	for _, line := range lines(t, at("outcomes")) {
		var o struct {
			Outcome, Class string
			N              json.Number
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		n, err := o.N.Int64()
		if err != nil {
			t.Fatal(err)
		}
		verdicts[o.Outcome] += n
		if o.Class != "" {
			classes[o.Class] += n
		}
	}
	v := want.Verdicts
	offline := map[string]int64{"match": v.Match, "drift": v.Drift, "ambiguous": v.Ambiguous, "indeterminate": v.Indeterminate,
		"not_judged": v.NotJudged}
	maps.DeleteFunc(offline, func(_ string, n int64) bool { return n == 0 })
	if !maps.Equal(verdicts, offline) {
		t.Errorf("verdicts %v, offline %v", verdicts, offline)
	}
	if !maps.Equal(classes, want.Classes) {
		t.Errorf("classes %v, offline %v", classes, want.Classes)
	}
}

// evaluated runs `retrial evaluate` and returns its summary.
func evaluated(t *testing.T, in install, state string, files ...string) evaluate.Summary {
	t.Helper()
	args := []string{"evaluate", "-o", "json", "--state", state}
	for _, f := range files {
		args = append(args, "--events", f)
	}
	r := finish(t, in.retrial(t.Context(), args...)).ok(t)
	var sum evaluate.Summary
	if err := json.Unmarshal([]byte(r.out), &sum); err != nil {
		t.Fatal(err)
	}
	return sum
}
