package main

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retrial-io/retrial/doctor"
)

// share is what a starved process has of a core: 5 %.
const (
	sharePeriod = 100 * time.Millisecond
	shareOf     = 5 * time.Millisecond
)

// signal sends the server a signal.
func (s *running) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// starve lets the server, which is stopped, have a share of a core until ctx ends; then it goes
// on as before.
func (s *running) starve(ctx context.Context) {
	for runs := false; ; runs = !runs {
		sig, d := syscall.SIGCONT, shareOf
		if runs {
			sig, d = syscall.SIGSTOP, sharePeriod-shareOf
		}
		_ = s.cmd.Process.Signal(sig) // a process that ended is told of elsewhere
		if sleepFor(ctx, d) != nil {
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
			return
		}
	}
}

// TestStarvedProcess stops a server that has findings to work out, then gives it a twentieth of
// a core, then all it wants: the groups of its broker have outlived it, it has said that
// findings were late, and they are those of the log. With RETRIAL_LONG it is a minute of each,
// and findings have to be up to date within two minutes (make test-starved).
func TestStarvedProcess(t *testing.T) {
	t.Parallel()
	stopped, starved := 12*time.Second, 3*time.Second
	if long() {
		stopped, starved = time.Minute, time.Minute
	}
	in := newInstall(t)
	log := unborn(portion(t))
	half := len(log) / 2
	state := writeState(t, in.dir)
	first, second := writeLog(t, filepath.Join(in.dir, "first.jsonl"), log[:half]),
		writeLog(t, filepath.Join(in.dir, "second.jsonl"), log[half:])
	offline := func(logs ...string) string {
		args := []string{"findings", "--cluster", "prod", "--state", state, "-o", "json"}
		for _, l := range logs {
			args = append(args, "--events", l)
		}
		return in.runAlone(t, args...).ok(t).out
	}
	s := in.serve(t, "--detect-lateness", "0s")
	in.run(t, "import", "--cluster", "prod", "--state", state, first).ok(t)
	s.drained(t)
	s.settled(t, "prod", findingsByID(t, offline(first)))

	in.run(t, "import", "--cluster", "prod", second).ok(t)
	s.drained(t)
	s.signal(t, syscall.SIGSTOP)
	if err := sleepFor(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), starved)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.starve(ctx)
	}()
	told := 0.0
	for ctx.Err() == nil {
		if lag, ok := s.metric(ctx, doctor.MetricDetectLag); ok {
			told = max(told, lag)
		}
	}
	<-done
	began := time.Now()
	s.settled(t, "prod", findingsByID(t, offline(first, second)))
	late := time.Since(began)
	t.Logf("stopped for %s and starved for %s: %.0f s late were told meanwhile, up to date %s later", stopped, starved, told,
		late.Round(time.Second))
	if long() && (late > 2*time.Minute || told < stopped.Seconds()) {
		t.Errorf("up to date after %s, want 2m0s; %.0f s were told, want %.0f", late, told, stopped.Seconds())
	}
	if text := s.log.String(); strings.Contains(text, "lease released") || strings.Count(text, "lease taken") != 1 ||
		strings.Contains(text, `"generation":2`) {
		t.Errorf("groups did not outlive it:\n%s", text)
	}
	s.stop(t)
}
