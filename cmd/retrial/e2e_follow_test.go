package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// TestFollowClosesTheGap cuts the webhook in the middle of a recorded log, while a follower
// tails the log file of the same events through two rotations, is killed, and comes back
// another way. What is stored is exactly the log: every key once, with the file's content;
// what came both ways was counted as a duplicate and is not to be seen.
func TestFollowClosesTheGap(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	log := recorded(t)[:6000]
	third := len(log) / 3
	path := filepath.Join(in.dir, "audit.log")
	state := writeState(t, in.dir)

	s := in.serve(t, "--replay-hold", "0s")
	to := s.addCluster(t, "live", "--apiserver", "api-1")
	in.run(t, "import", "--cluster", "live", "--state", state).ok(t)

	// The webhook lives for the first and the last third; the log is written all the time.
	follower := in.lasting(t, "import", "--follow", "--webhook-config", filepath.Join(in.dir, "live.kubeconfig"), "--delay", "0s", path)
	postAll(t, to, batches(log[:third], 1))
	appendLog(t, path, log[:third+100])
	s.stored(t, "live", int64(third+50))
	follower.end(t, syscall.SIGKILL)

	// Nobody follows while the log is rotated, packed, and rotated again.
	first := filepath.Join(in.dir, "audit-2026-11-20T11-40-00.000.log")
	rename(t, path, first)
	pack(t, first)
	appendLog(t, path, log[third+100:2*third])
	rename(t, path, filepath.Join(in.dir, "audit-2026-11-20T11-41-00.000.log"))
	appendLog(t, path, log[2*third:])
	postAll(t, to, batches(log[2*third:], 2))

	again := in.lasting(t, "import", "--follow", "--cluster", "live", "--apiserver", "api-1", "-o", "json", path)
	s.stored(t, "live", int64(len(log)))
	// It has acknowledged all when its position says so; only then does it end.
	acknowledged(t, in, int64(len(bytes.Join(log[2*third:], []byte("\n")))+1))
	r := again.end(t, syscall.SIGTERM).ok(t)
	if done := itemsOf[importer.Followed](t, r.out); len(done) != 1 || done[0].Behind != 0 || done[0].Malformed != 0 ||
		done[0].Events < int64(2*third-100) {
		t.Errorf("%s", r.out)
	}
	s.drained(t)
	came, _ := s.metric(t.Context(), "retrial_runner_in_total")
	twice, _ := s.metric(t.Context(), "retrial_runner_duplicates_total")
	s.stop(t)

	at := filepath.Join(in.dir, "live.list")
	totals := inspect(t, inspection{Data: in.data(), Events: map[string]string{at: "live"}})
	sameEvents(t, in, "live", log, lines(t, at))
	want := int64(len(fingerprints(t, in, "live", log)))
	if totals.Events != want || totals.Volume != want || totals.DeadLetters != 0 {
		t.Errorf("%d keys in the log; stored %+v", want, totals)
	}
	if int64(came-twice) != want || int64(twice) < int64(third)*2-100 {
		t.Errorf("%v records came, %v of them duplicates, want %d rows and the two thirds that came both ways as duplicates", came, twice,
			want)
	}
}

// lasting is a running process.
type lasting struct {
	*exec.Cmd
	out, errs output
}

// lasting starts a command that runs until it is told to end.
func (in install) lasting(t *testing.T, args ...string) *lasting {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c := &lasting{Cmd: in.retrial(ctx, append(args, in.flags()...)...)}
	c.Stdout, c.Stderr = &c.out, &c.errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// end sends a signal and waits for what is left.
func (c *lasting) end(t *testing.T, s os.Signal) result {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the exit code says it
	return result{c.ProcessState.ExitCode(), c.out.String(), c.errs.String()}
}

// stored waits until a cluster has n events.
func (s *running) stored(t *testing.T, cluster string, n int64) {
	t.Helper()
	waitFor(t, func() bool {
		s.drained(t)
		var known query.ClustersAnswer
		s.get(t, "clusters", &known)
		for _, c := range known.Clusters {
			if c.Name == cluster {
				return c.Events >= n
			}
		}
		return false
	})
}

// acknowledged waits until a follower's position is behind so many bytes of some file.
func acknowledged(t *testing.T, in install, bytes int64) {
	t.Helper()
	waitFor(t, func() bool {
		files, err := filepath.Glob(filepath.Join(in.data(), "imports", "*-follow-*.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v %v", files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Files []struct{ Offset int64 } }
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Files {
			if f.Offset == bytes {
				return true
			}
		}
		return false
	})
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("it did not come to that in time")
		case <-tick.C:
		}
	}
}

func appendLog(t *testing.T, path string, log [][]byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, line := range log {
		// Now and then a line is seen before it is whole.
		if cut := len(line) / 2; i%500 == 499 {
			if _, err := f.Write(line[:cut]); err != nil {
				t.Fatal(err)
			}
			line = line[cut:]
		}
		if _, err := f.Write(append(bytes.Clone(line), '\n')); err != nil {
			t.Fatal(err)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// pack compresses a file as lumberjack does.
func pack(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".gz", b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestFollowIsRefused: what cannot be followed is told before anything waits.
func TestFollowIsRefused(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	log := writeLog(t, filepath.Join(in.dir, "audit.log"), nil)
	other := filepath.Join(in.dir, "other.kubeconfig")
	if err := os.WriteFile(other, []byte(strings.ReplaceAll(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://example.com/webhook"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, "\t", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"no server":          {[]string{"--cluster", "a", log}, cli.ExitError, []string{"no server is running", "--webhook-config"}},
		"no file":            {[]string{"--cluster", "a"}, cli.ExitUsage, []string{"--audit-log-path"}},
		"no cluster":         {[]string{log}, cli.ExitUsage, []string{"--cluster is missing"}},
		"with a state":       {[]string{"--cluster", "a", "--state", log, log}, cli.ExitUsage, []string{"--state"}},
		"foreign kubeconfig": {[]string{"--webhook-config", other, log}, cli.ExitUsage, []string{"/v1/clusters/NAME/audit"}},
		"both ways": {[]string{"--cluster", "a", "--webhook-config", other, "--server", "https://x", log}, cli.ExitUsage,
			[]string{"leave --server out"}},
		"no such certificate": {[]string{"--cluster", "a", "--server", "https://127.0.0.1:1", "--client-certificate", "/none",
			"--client-key", "/none", log},
			cli.ExitUsage, []string{"/none"}},
		"two, one position": {[]string{"--cluster", "a", "--position", "p", log, log}, cli.ExitUsage, []string{"--position"}},
	} {
		t.Run(name, func(t *testing.T) {
			in.run(t, append([]string{"import", "--follow"}, tc.args...)...).refused(t, tc.code, tc.want...)
		})
	}
	in.run(t, "import", "--cluster", "a", "--webhook-config", other, log).refused(t, cli.ExitUsage, "--follow")
}
