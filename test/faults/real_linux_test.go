package faults

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// How the lives of a real process end.
const (
	lifeKilled  = "killed at a sync"        // at the n-th, before it is done
	lifePower   = "power failure at a sync" // the same, and what was not synced is gone
	lifeAnyTime = "killed at some time"
	lifeStopped = "stopped for a while, then killed"
	lifeTerm    = "asked to end"
	lifeFull    = "disk full for a while"
)

// patience bounds every wait for a real process on a busy machine.
const patience = 10 * time.Minute

// realRun is an installation of the product's executable with what was sent to it.
type realRun struct {
	t      *testing.T
	dir    string
	binary string
	w      *world // what was sent and acknowledged
	rng    *rand.Rand
	said   bytes.Buffer
	peak   int // KiB
}

// TestReal plays schedules on the executable: each has lives that end badly while events are
// posted, and a last one in which everything is looked at.
func TestReal(t *testing.T) {
	if os.Getenv("RETRIAL_FAULTS_REAL") == "" {
		t.Skip("the long set: make faults")
	}
	storagetest.Need(t)
	binary := os.Getenv("RETRIAL_FAULTS_BIN")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "retrial")
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/retrial")
		cmd.Dir = moduleRoot(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	first, n := envInt(t, "RETRIAL_FAULTS_REAL_SEED", 1), envInt(t, "RETRIAL_FAULTS_REAL_N", 24)
	played := 0
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
			playReal(t, binary, seed)
			played++
		})
	}
	t.Logf("%d schedules with real processes", played)
}

func playReal(t *testing.T, binary string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x4ea1))
	kinds := []string{lifeKilled, lifePower, lifePower, lifeAnyTime, lifePower, lifeKilled, lifeStopped, lifePower, lifeTerm, lifePower,
		lifeKilled, lifeFull}
	plan := []string{kinds[seed%uint64(len(kinds))], pick(rng, lifePower, lifeKilled, lifeAnyTime)}
	dir, err := os.MkdirTemp(scratch(), "retrial-faults-real-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r := &realRun{t: t, dir: dir, binary: binary, rng: rng, w: &world{began: time.Now(), db: "retrial", judge: replay.New(replay.Config{}),
		sent: map[identity]bool{}, acked: map[identity]time.Time{}, policy: map[identity]bool{}, letters: map[string]bool{},
		fired: map[string]int{}}}
	if plan[0] == lifeFull {
		if err := os.MkdirAll(r.data(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", r.data(), "tmpfs", 0, "size=48m,mode=0700"); err != nil {
			t.Skipf("NOT RUN: a small file system cannot be mounted: %v; run as root: make faults", err)
		}
		defer func() { _ = syscall.Unmount(r.data(), syscall.MNT_DETACH) }()
	}
	for i, how := range plan {
		r.life(i, how)
	}
	r.last()
	if len(r.w.wrong) > 0 {
		t.Errorf("real schedule of seed %d (%s) fails:\n  %s\nrepeat: RETRIAL_FAULTS_REAL=1 RETRIAL_FAULTS_REAL_SEED=%d "+
			"RETRIAL_FAULTS_REAL_N=1 go test ./test/faults -run TestReal\nthe process's last words:\n%s",
			seed, strings.Join(plan, "; "), strings.Join(r.w.wrong, "\n  "), seed, tailOf(r.said.String()))
		return
	}
	t.Logf("%s: %d events acknowledged, peak %d MiB", strings.Join(plan, "; "), len(r.w.acked), r.peak>>10)
}

func tailOf(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

func (r *realRun) data() string { return filepath.Join(r.dir, "data") }

// running is the executable while it runs.
type running struct {
	cmd    *exec.Cmd
	ui     string
	exited chan struct{}
	watch  *watcher
}

var upLine = regexp.MustCompile(`Retrial is up\.\s+Page: (\S+)`) //nolint:gochecknoglobals // compiled constant

// start starts the executable and waits until it is up or gone.
func (r *realRun) start(endAt int) (*running, bool) {
	r.t.Helper()
	cmd := exec.Command(r.binary, "serve", "--data-dir", r.data(), "--key-file", filepath.Join(r.dir, "key"), "--webhook-listen",
		"127.0.0.1:0",
		"--ui-listen", "127.0.0.1:0", "--log-format", "json", "--replay-hold", "0s", "--replay-batch-rows", "300")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+r.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	x := &running{cmd: cmd, exited: make(chan struct{})}
	w, attach, err := watch(cmd, r.data(), endAt, func() { _ = cmd.Process.Kill() })
	if err != nil {
		r.t.Fatal(err)
	}
	x.watch = w
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stderr = &r.said
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = cmd.Process.Kill(); <-x.exited })
	up := make(chan struct{})
	go func() {
		defer close(x.exited)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if m := upLine.FindStringSubmatch(lines.Text()); m != nil {
				x.ui = m[1]
				close(up)
			}
		}
		_ = cmd.Wait()
	}()
	if err := attach(); err != nil {
		_ = cmd.Process.Kill()
		<-x.exited
		r.t.Skipf("NOT RUN: system calls cannot be watched: %v %s; run on Linux 5.5 or later without a filter that forbids it: make faults",
			err, r.said.String())
	}
	select {
	case <-up:
		return x, true
	case <-x.exited:
		return x, false
	case <-time.After(patience):
		r.t.Fatalf("the process is not up: %s", tailOf(r.said.String()))
	}
	return x, false
}

// life runs the executable until it ends as it should, with posts going on.
func (r *realRun) life(i int, how string) {
	r.t.Helper()
	endAt := 0
	if how == lifeKilled || how == lifePower {
		endAt = 1 + r.rng.IntN(700)
		if i == 0 && r.rng.IntN(4) > 0 {
			endAt += 150 // past the first start, which syncs the schema
		}
	}
	x, up := r.start(endAt)
	if up {
		stop, posting := make(chan struct{}), sync.WaitGroup{}
		for k := range 2 {
			posting.Go(func() { r.posts(x, fmt.Sprintf("life%d-%d", i, k), stop) })
		}
		pause := time.Duration(500+r.rng.IntN(3000)) * time.Millisecond
		switch how {
		case lifeKilled, lifePower:
			select {
			case <-x.exited:
			case <-time.After(15 * time.Second): // it syncs less than that
				_ = x.cmd.Process.Kill()
			}
		case lifeAnyTime:
			time.Sleep(pause)
			_ = x.cmd.Process.Kill()
		case lifeStopped:
			time.Sleep(pause)
			_ = x.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(2 * time.Second)
			_ = x.cmd.Process.Signal(syscall.SIGCONT)
			time.Sleep(pause)
			_ = x.cmd.Process.Kill()
		case lifeTerm:
			time.Sleep(pause)
			_ = x.cmd.Process.Signal(syscall.SIGTERM)
		case lifeFull:
			time.Sleep(pause)
			r.fill(pause)
			_ = x.cmd.Process.Kill()
		}
		<-x.exited
		close(stop)
		posting.Wait()
	}
	<-x.exited
	if how == lifePower {
		cut, err := x.watch.power(r.data(), r.rng)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Logf("power failure at sync %d: %d files lost something", x.watch.count(), cut)
	}
}

// fill takes the disk's room for a while.
func (r *realRun) fill(wait time.Duration) {
	name := filepath.Join(r.data(), "ballast")
	f, err := os.Create(name)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = io.Copy(f, io.LimitReader(zeros{}, 1<<30))
	f.Close()
	if err == nil {
		r.t.Fatal("the disk did not get full")
	}
	time.Sleep(wait)
	if err := os.Remove(name); err != nil {
		r.t.Fatal(err)
	}
	time.Sleep(wait)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (r *realRun) client() *http.Client {
	return &http.Client{Timeout: time.Minute,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(r.data(), "retrial.sock"))
		}}}
}

// posts sends batches, among them some of what was sent before, until told to stop.
func (r *realRun) posts(x *running, name string, stop <-chan struct{}) {
	client := r.client()
	defer client.CloseIdleConnections()
	r.w.mu.Lock()
	rng := rand.New(rand.NewPCG(r.rng.Uint64(), 5))
	r.w.mu.Unlock()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-x.exited:
			return
		default:
		}
		cluster := clusters[rng.IntN(2)]
		items := requests(rng, cluster, fmt.Sprintf("%s-%d", name, n), 1+rng.IntN(25), 0)
		switch rng.IntN(6) {
		case 0:
			items = append(items, binding(rng, cluster, fmt.Sprintf("%s-%d", name, n), 2000+rng.IntN(100_000), false))
		case 1:
			if c, again := r.w.earlier(rng, 2); len(again) > 0 {
				cluster, items = c, again
			}
		}
		r.send(client, cluster, items)
		time.Sleep(time.Duration(10+rng.IntN(30)) * time.Millisecond) // the engine has more to do than we
	}
}

// send posts a batch once and notes what became of it.
func (r *realRun) send(client *http.Client, cluster string, items []item) bool {
	r.w.mu.Lock()
	r.w.batches, r.w.owner = append(r.w.batches, items), append(r.w.owner, cluster)
	for _, it := range items {
		r.w.sent[it.id] = true
	}
	r.w.mu.Unlock()
	res, err := client.Post("http://retrial/v1/clusters/"+cluster+"/audit", "application/json", bytes.NewReader(list(items)))
	if err != nil {
		time.Sleep(20 * time.Millisecond)
		return false
	}
	text, err := io.ReadAll(res.Body)
	res.Body.Close()
	switch {
	case err != nil:
	case res.StatusCode == http.StatusOK:
		r.w.acknowledge(items)
		return true
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		time.Sleep(50 * time.Millisecond)
	default:
		r.w.report("answer %d: %s", res.StatusCode, text)
	}
	return false
}

// last is the life in which nothing fails: everything settles, and is then looked at.
func (r *realRun) last() {
	r.t.Helper()
	x, up := r.start(0)
	if !up {
		r.w.report("the process does not come up any more")
		return
	}
	client := r.client()
	defer client.CloseIdleConnections()
	ok := false
	for range 200 {
		if ok = r.send(client, "east", requests(r.rng, "east", "last", 5, 0)); ok {
			break
		}
	}
	if !ok {
		r.w.report("a post is not acknowledged although nothing fails any more")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://retrial/api/v1/drained", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	client.Timeout = patience
	res, err := client.Do(req)
	if err != nil {
		r.w.report("not drained: %v", err)
	} else {
		if res.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(res.Body)
			r.w.report("not drained: %s %s", res.Status, text)
		}
		res.Body.Close()
	}
	r.books(x)
	r.peak = max(r.peak, peakOf(x.cmd.Process.Pid))
	if r.peak>>10 > 2048 {
		r.w.report("the process needed %d MiB", r.peak>>10)
	}
	_ = x.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-x.exited:
	case <-time.After(patience):
		r.w.report("the process does not end")
		_ = x.cmd.Process.Kill()
		<-x.exited
	}
	e, err := embedded.Open(embedded.Config{Path: filepath.Join(r.data(), "clickhouse")})
	if err != nil {
		r.w.report("open the store: %v", err)
		return
	}
	defer e.Close()
	r.w.host = newHost(e)
	defer close(r.w.host.jobs)
	s, err := storage.Open(context.Background(), storage.Config{Transport: r.w.host, Database: scratchy, Shared: true})
	if err != nil {
		r.w.report("make a database: %v", err)
		return
	}
	_ = s.Close()
	r.w.check()
}

// books reads what the process counted.
func (r *realRun) books(x *running) {
	res, err := http.Get(x.ui + "metrics")
	if err != nil {
		r.w.report("metrics: %v", err)
		return
	}
	defer res.Body.Close()
	sum := map[string]float64{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if i := strings.IndexByte(lines.Text(), '{'); i > 0 && i < len(name) {
			name = lines.Text()[:i]
			value = lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:]
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum[name] += v
		}
	}
	if in, out := sum["retrial_runner_in_total"], sum["retrial_runner_out_total"]+sum["retrial_runner_deadletters_total"]+
		sum["retrial_runner_duplicates_total"]; in != out || in == 0 {
		r.w.report("runner: in %v, out + dead-lettered + duplicates %v", in, out)
	}
}

// peakOf returns the largest resident set of a process, in KiB.
func peakOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}
