package product

import (
	"bytes"
	"context"
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
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// Install is one installation of the product: a data directory and the key beside it.
type Install struct {
	Dir    string
	binary string
	local  *http.Client // on the socket of whichever server runs
}

// New makes an empty installation.
func New(t testing.TB) *Install {
	t.Helper()
	in := &Install{Dir: t.TempDir(), binary: controlplane.Binary(t, "retrial")}
	socket := filepath.Join(in.data(), "retrial.sock")
	in.local = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(in.local.CloseIdleConnections)
	return in
}

func (in *Install) data() string { return filepath.Join(in.Dir, "data") }

// flags name the installation; a command that does not open it is given none of them.
func (in *Install) flags() []string {
	return []string{"--data-dir", in.data(), "--key-file", filepath.Join(in.Dir, "hmac.key")}
}

// environment keeps the product out of its user's folders; libchdb.so is still found in the
// user's cache.
func (in *Install) environment() []string {
	return []string{"XDG_CONFIG_HOME=" + in.Dir, "TMPDIR=" + in.Dir}
}

// Result is what a command left.
type Result struct {
	Code     int
	Out, Err string
}

// Try runs a command to its end, whatever that is.
func (in *Install) Try(t testing.TB, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), controlplane.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, in.binary, args...)
	cmd.Dir, cmd.Env = in.Dir, append(os.Environ(), in.environment()...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return Result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// Offline runs a command that reads files alone, and wants it to end well.
func (in *Install) Offline(t testing.TB, args ...string) Result {
	t.Helper()
	r := in.Try(t, args...)
	if r.Code != 0 {
		t.Fatalf("retrial %v: exit code %d\n%s\n%s", args, r.Code, r.Out, r.Err)
	}
	return r
}

// Do runs a command on the installation and wants it to end well.
func (in *Install) Do(t testing.TB, args ...string) Result {
	t.Helper()
	return in.Offline(t, append(args, in.flags()...)...)
}

// Server is a running `retrial serve`.
type Server struct {
	*controlplane.Process
	Page, Webhook string // URLs
}

var up = regexp.MustCompile(`Retrial is up\.\s+Page: (\S+)\s+Webhook: (\S+)`)

// Serve starts the server and returns when it has said that it is up. Without an address of
// its own among the arguments, the webhook listens on any port.
func (in *Install) Serve(t testing.TB, webhook string, args ...string) *Server {
	t.Helper()
	all := append([]string{"serve", "--webhook-listen", webhook, "--ui-listen", "127.0.0.1:0", "--log-format", "json"}, in.flags()...)
	s := &Server{Process: controlplane.Run(t, in.Dir, in.environment(), in.binary, append(all, args...)...)}
	controlplane.Poll(t, "retrial serve to be up", func(context.Context) (bool, string) {
		if s.Ended() {
			t.Fatalf("retrial serve ended before it was up:\n%s", s.Output())
		}
		m := up.FindStringSubmatch(s.Output())
		if m == nil {
			return false, ""
		}
		s.Page, s.Webhook = m[1], m[2]
		return true, ""
	})
	return s
}

// Cluster is what Connect calls the cluster in the product.
const Cluster = "recorded"

// Connect returns the flags that make an apiserver post to a server, as `retrial connect`
// wrote them, and write no log; args are further ones of that command.
func (in *Install) Connect(t testing.TB, s *Server, args ...string) []string {
	t.Helper()
	receiver, err := url.Parse(s.Webhook)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(in.Dir, "connect-")
	if err != nil {
		t.Fatal(err)
	}
	in.Do(t, append([]string{"connect", Cluster, "--no-wait", "--no-audit-log", "--no-metrics", "--advertise-address", receiver.Host,
		"--output", folder}, args...)...)
	text, err := os.ReadFile(filepath.Join(folder, "flags"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Beside starts a command on the installation that runs until the test ends, or by itself.
func (in *Install) Beside(t testing.TB, args ...string) *controlplane.Process {
	t.Helper()
	return controlplane.Run(t, in.Dir, in.environment(), in.binary, append(args, in.flags()...)...)
}

// Ask asks the running server's API and decodes the answer.
func (in *Install) Ask(t testing.TB, path string, query url.Values, answer any) {
	t.Helper()
	if err := in.ask(t.Context(), path, query, answer); err != nil {
		t.Fatal(err)
	}
}

func (in *Install) ask(ctx context.Context, path string, query url.Values, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := in.local.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", req.URL, res.Status, body)
	}
	return json.Unmarshal(body, answer)
}

// Drained returns when everything the server has accepted is stored and judged for good.
func (in *Install) Drained(t testing.TB) {
	t.Helper()
	in.Ask(t, "drained", nil, &struct{}{})
}

// Metric sums the series of one of the server's metrics.
func (s *Server) Metric(t testing.TB, name string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Page+"metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return controlplane.Metric(string(text), name)
}
