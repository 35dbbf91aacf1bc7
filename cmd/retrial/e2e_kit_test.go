package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
	apiclient "github.com/retrial-io/retrial/query/client"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

// patience bounds every wait for a process of the product: long enough for a machine that
// is busy with everything else, and no assertion about how fast the product is.
const patience = 5 * time.Minute

// long says whether the longer set was asked for.
func long() bool { return os.Getenv("RETRIAL_LONG") != "" }

// needWhole leaves a test out of short runs, which the race detector runs: it asks one process after
// another, each of which does one thing after another; servers do the same beside more in other tests.
func needWhole(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("asks one thing after another; runs without -short")
	}
}

// needStore ends a test that cannot run without the embedded store.
func needStore(t *testing.T) {
	t.Helper()
	err := chdb.Suitable()
	if err == nil {
		_, err = chdb.Locate("")
	}
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("CI runs need the embedded store: %v", err)
	default:
		t.Skipf("NOT RUN: %v", err)
	}
}

// output collects what a process prints; it may be read while the process runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// install is one installation of the product: a data directory and the key beside it.
type install struct {
	dir string // holds data/ and hmac.key
}

func newInstall(t *testing.T) install {
	t.Helper()
	needStore(t)
	return install{t.TempDir()}
}

func (in install) data() string { return filepath.Join(in.dir, "data") }

func (in install) flags() []string {
	return []string{"--data-dir", in.data(), "--key-file", filepath.Join(in.dir, "hmac.key")}
}

// key is the installation's redaction key.
func (in install) key(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(in.dir, "hmac.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// retrial prepares a process of the product. Wherever its user's folders would be, the
// test's are.
func (in install) retrial(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "retrial", args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+in.dir, "TMPDIR="+in.dir)
	cmd.Dir = in.dir
	return cmd
}

// run runs a command on the installation to its end.
func (in install) run(t *testing.T, args ...string) result {
	t.Helper()
	return in.runWith(t, nil, args...)
}

func (in install) runWith(t *testing.T, stdin io.Reader, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := in.retrial(ctx, append(args, in.flags()...)...)
	cmd.Stdin = stdin
	return finish(t, cmd)
}

// result is what a process left.
type result struct {
	code     int
	out, err string
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs output
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// ok fails the test unless the process ended well.
func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.out, r.err)
	}
	return r
}

// refused fails the test unless the process ended with the code and said all of the words.
func (r result) refused(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s\n%s", r.code, code, r.out, r.err)
	}
	says(t, r.err, words...)
}

// says fails the test unless text holds every one of the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in the message:\n%s", w, text)
		}
	}
}

// running is a running `retrial serve`.
type running struct {
	install
	cmd         *exec.Cmd
	out, log    *output
	webhook, ui string
	local       *http.Client // on the socket
	exited      chan struct{}
}

var (
	upLine       = regexp.MustCompile(`Retrial is up\.\s+Page: (\S+)\s+Webhook: (\S+)`)
	receivesLine = regexp.MustCompile(`Retrial receives\.\s+Webhook: (\S+)\s+Metrics: (\S+)metrics`)
	replaysLine  = regexp.MustCompile(`Retrial replays\.\s+Page: (\S+)`)
)

// serve starts the server and returns when it has said that it is up.
func (in install) serve(t *testing.T, args ...string) *running {
	t.Helper()
	s, err := in.start(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts the server; when it ends before it is up, that is the error.
func (in install) start(t *testing.T, args ...string) (*running, error) {
	t.Helper()
	all := append([]string{"serve", "--webhook-listen", "127.0.0.1:0", "--ui-listen", "127.0.0.1:0", "--log-format", "json"}, in.flags()...)
	return in.launch(t, in.retrial(context.Background(), append(all, args...)...))
}

func (in install) launch(t *testing.T, cmd *exec.Cmd) (*running, error) {
	t.Helper()
	s := &running{install: in, cmd: cmd, out: &output{}, log: &output{}, exited: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = s.log
	tie(cmd)
	up, started := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // see tie
		defer close(s.exited)
		err := cmd.Start()
		if started <- err; err != nil {
			return
		}
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			fmt.Fprintln(s.out, lines.Text())
			if m := upLine.FindStringSubmatch(lines.Text()); m != nil {
				s.ui, s.webhook = m[1], m[2]
				close(up)
			}
			if m := receivesLine.FindStringSubmatch(lines.Text()); m != nil {
				s.webhook, s.ui = m[1], m[2]
				close(up)
			}
			if m := replaysLine.FindStringSubmatch(lines.Text()); m != nil {
				s.ui = m[1]
				close(up)
			}
		}
		_ = cmd.Wait()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the server's warnings and its last words:\n%s", complaints(s.log.String()))
		}
	})
	socket := filepath.Join(in.data(), apiclient.SocketName)
	s.local = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(s.local.CloseIdleConnections)
	select {
	case <-up:
		return s, nil
	case <-s.exited:
		return s, fmt.Errorf("serve ended with code %d before it was up: %s", cmd.ProcessState.ExitCode(), s.log)
	case <-time.After(patience):
		return s, fmt.Errorf("serve is not up: %s", s.log)
	}
}

// complaints returns the lines of a log that are not about the ordinary course of things,
// and the last few of any kind.
func complaints(log string) string {
	all := strings.SplitAfter(log, "\n")
	var out strings.Builder
	for i, line := range all {
		if i >= len(all)-5 || !strings.HasPrefix(line, `{"level":"info"`) {
			out.WriteString(line)
		}
	}
	return fmt.Sprintf("%.20000s", out.String())
}

// kill ends the process at once and waits for its end.
func (s *running) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// stop asks the process to end and wants it to end well.
func (s *running) stop(t *testing.T) {
	t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Fatalf("serve does not stop:\n%s", s.log)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != cli.ExitOK {
		t.Fatalf("serve ended with code %d:\n%s", code, s.log)
	}
}

// get asks the local API.
func (s *running) get(t *testing.T, path string, to any) {
	t.Helper()
	code, body := s.ask(t, http.MethodGet, "/api/v1/"+path)
	if code != http.StatusOK {
		t.Fatalf("GET %s: %d: %s", path, code, body)
	}
	if err := json.Unmarshal(body, to); err != nil {
		t.Fatalf("GET %s: %v: %s", path, err, body)
	}
}

// ask asks and returns whatever the answer is.
func (s *running) ask(t *testing.T, method, path string) (code int, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://retrial"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.local.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// drained returns when everything the server has accepted is stored and judged for good.
func (s *running) drained(t *testing.T) { t.Helper(); s.get(t, "drained", &struct{}{}) }

// detected waits until findings take into account what is stored.
func (s *running) detected(t *testing.T) {
	t.Helper()
	stored := time.Now()
	for now := stored; now.Before(stored.Add(patience)); now = time.Now() {
		lag, ok := s.metric(t.Context(), doctor.MetricDetectLag)
		if !ok {
			break
		}
		if lag > 0 && lag < now.Sub(stored).Seconds() { // 0: nobody has looked yet
			return
		}
	}
	t.Fatal("the detections have not looked at what is stored")
}

// metric sums the series of a metric; ok is false when the server does not answer (any more).
func (s *running) metric(ctx context.Context, name string) (sum float64, ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.ui+"metrics", nil)
	if err != nil {
		return 0, false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		rest, found := strings.CutPrefix(lines.Text(), name)
		if !found || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64); err == nil {
			sum += v
		}
	}
	return sum, true
}

// reach returns when the metric has reached a value, or false when ctx ended or the server
// did first.
func (s *running) reach(ctx context.Context, name string, value float64) bool {
	for {
		got, ok := s.metric(ctx, name)
		if !ok {
			return false
		}
		if got >= value {
			return true
		}
	}
}

// sender is an apiserver's webhook backend: it reads the kubeconfig that `cluster add`
// wrote with the apiserver's own library.
type sender struct {
	url    *url.URL
	client *http.Client
}

// addCluster registers a cluster on the installation and returns its sender.
func (s *running) addCluster(t *testing.T, name string, args ...string) sender {
	t.Helper()
	file := filepath.Join(s.dir, name+".kubeconfig")
	s.run(t, append([]string{"cluster", "add", name, "--server", s.webhook, "--output", file}, args...)...).ok(t)
	return s.sender(t, file)
}

// sender reads a webhook kubeconfig; the server it names is replaced by the running one's
// address, which changes with each start in these tests.
func (s *running) sender(t *testing.T, file string) sender {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	u, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	now, err := url.Parse(s.webhook)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = now.Host
	u.RawQuery = "timeout=30s"
	return sender{u, client}
}

// answer is what a post was answered with.
type posted struct {
	code   int
	text   string
	header http.Header
}

// post sends a body and returns the answer.
func (p sender) post(ctx context.Context, body io.Reader, header ...string) (posted, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), body)
	if err != nil {
		return posted{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		return posted{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return posted{res.StatusCode, string(text), res.Header}, err
}

// deliver posts a body as an apiserver does: again when it is asked to come back.
func (p sender) deliver(t *testing.T, body []byte) posted {
	t.Helper()
	for {
		a, err := p.post(t.Context(), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		switch a.code {
		case http.StatusOK:
			return a
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			if a.header.Get("Retry-After") == "" {
				t.Fatalf("%d without Retry-After: %s", a.code, a.text)
			}
		default:
			t.Fatalf("%d: %s", a.code, a.text)
		}
	}
}

// sleepFor waits, or returns the context's error.
func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
