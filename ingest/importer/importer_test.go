package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a real handler on a Unix socket, in front of a producer that keeps what it
// gets.
type receiver struct {
	socket string
	client *http.Client
	// front, when set, may answer in place of the handler.
	front func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	produced []string // "topic auditID" or "audit.deadletter reason", in order
	letters  []event.DeadLetter
	states   []string
	since    time.Time // of the last state
	posts    int
}

func (rc *receiver) Produce(_ context.Context, recs ...stream.Record) error {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for _, r := range recs {
		if r.Topic == stream.TopicDeadLetter {
			d, err := stream.DecodeDeadLetter(&r)
			if err != nil {
				return err
			}
			rc.letters = append(rc.letters, d)
			rc.produced = append(rc.produced, r.Topic+" "+d.Reason)
			continue
		}
		e, err := event.Decode(bytes.Clone(r.Value))
		if err != nil {
			return err
		}
		rc.produced = append(rc.produced, r.Topic+" "+e.AuditID)
	}
	return nil
}

func (rc *receiver) take() []string {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	got := rc.produced
	rc.produced = nil
	return got
}

func newReceiver(t *testing.T, cfg webhook.Config) *receiver {
	t.Helper()
	rc := &receiver{socket: filepath.Join(t.TempDir(), "s")}
	cfg.Trusted = true
	cfg.State = func(_ context.Context, cluster string, since time.Time, r io.Reader) (any, error) {
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		rc.mu.Lock()
		defer rc.mu.Unlock()
		rc.states, rc.since = append(rc.states, cluster+" "+string(body)), since
		rc.produced = append(rc.produced, "state")
		return map[string]int{"objects": len(body)}, nil
	}
	h, err := webhook.New(cfg, rc, redact.New([]byte("0123456789abcdef")), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("unix", rc.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := webhook.NewServer(webhook.ServerConfig{}, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc.mu.Lock()
		rc.posts++
		front := rc.front
		rc.mu.Unlock()
		if front == nil || !front(w, r) {
			h.ServeHTTP(w, r)
		}
	}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	rc.client = SocketClient(rc.socket)
	t.Cleanup(func() {
		rc.client.CloseIdleConnections()
		_ = srv.Close()
		<-served
	})
	return rc
}

// config returns an import of files into rc that never really waits.
func (rc *receiver) config(t *testing.T, files ...File) Config {
	t.Helper()
	return Config{
		Target: Target{Client: rc.client, BaseURL: "http://retrial", Cluster: "prod",
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
		Files: files, InFlight: 1,
	}
}

func memory(name string, content []byte) File {
	return File{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

func line(id string, policy bool) string {
	uri, verb := "/api/v1/pods", "list"
	if policy {
		uri, verb = "/apis/rbac.authorization.k8s.io/v1/clusterroles/x", "update"
	}
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"` + id +
		`","stage":"ResponseComplete","requestURI":"` + uri + `","verb":"` + verb +
		`","user":{"username":"jane"},"responseStatus":{"metadata":{},"code":200},` +
		`"requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z","stageTimestamp":"2026-01-02T03:04:05.000002Z"}`
}

// log returns n events, every tenth a policy write, as lines, and what they produce.
func log(n int) (text string, produced []string) {
	var b strings.Builder
	var events []string
	for i := range n {
		id := fmt.Sprint("e", i)
		b.WriteString(line(id, i%10 == 5) + "\n")
		if i%10 == 5 {
			produced = append(produced, "audit.policy "+id)
		}
		events = append(events, "audit.events "+id)
	}
	return b.String(), append(produced, events...)
}

func gz(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zst(t *testing.T, s string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll([]byte(s), nil)
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("produced %d: %.300q\nwant %d: %.300q", len(got), got, len(want), want)
	}
}

func TestFormats(t *testing.T) {
	text, want := log(25)
	items := strings.Join(strings.Split(strings.TrimSpace(text), "\n"), ",")
	list := `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[` + items + `]}`
	half := strings.Split(strings.TrimSpace(text), "\n")
	lists := `{"kind":"EventList","items":[` + strings.Join(
		half[:12],
		",",
	) + "]}\n" + `{"kind":"EventList","items":null}` + "\n" + `{"items":[` + strings.Join(
		half[12:],
		",",
	) + `],"kind":"EventList","x":[1]}`
	for name, content := range map[string][]byte{
		"lines":                  []byte(text),
		"lines without the last": []byte(strings.TrimSpace(text)),
		"windows lines":          []byte("\xef\xbb\xbf" + strings.ReplaceAll(text, "\n", "\r\n\r\n")),
		"gzip":                   gz(t, text),
		"gzip of two members":    append(gz(t, text[:3000]), gz(t, text[3000:])...),
		"zstd":                   zst(t, text),
		"list":                   []byte(list),
		"pretty list": []byte(strings.NewReplacer(`{"kind":"EventList",`, "{\n  \"kind\": \"EventList\",\n  ", `},{"kind"`,
			"},\n  {\"kind\"").Replace(list)),
		"list in gzip":  gz(t, list),
		"several lists": []byte(lists),
	} {
		t.Run(name, func(t *testing.T) {
			rc := newReceiver(t, webhook.Config{})
			cfg := rc.config(t, memory(name, content))
			cfg.BatchEvents = 7
			sum, err := Import(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, rc.take(), want)
			if sum.Events != 25 || sum.Policy != 2 || sum.Malformed != 0 || sum.DeadLetters != 0 || sum.Files[0].Lines != 25 {
				t.Errorf("summary %+v", sum)
			}
		})
	}
}

func TestEmptyFile(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	sum, err := Import(t.Context(), rc.config(t, memory("empty", nil), memory("blank", []byte("\n \n"))))
	if err != nil || sum.Events != 0 || rc.posts != 0 {
		t.Errorf("%+v %v, %d posts", sum, err, rc.posts)
	}
}

func TestPolicyOfEveryFileGoesFirst(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	cfg := rc.config(t, memory("a", []byte(line("a1", false)+"\n"+line("a2", true)+"\n")), memory("b", []byte(line("b1", true)+"\n")))
	state := memory("state", zst(t, "objects"))
	cfg.State = &state
	sum, err := Import(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := rc.take()
	if want := time.Date(2026, 1, 2, 3, 4, 5, 1000, time.UTC); !rc.since.Equal(want) {
		t.Errorf("the state came with since %s, want the log's first request %s", rc.since, want)
	}
	if len(rc.states) != 1 || rc.states[0] != "prod objects" || string(sum.State) != "{\"objects\":7}\n" {
		t.Errorf("state %q %q", rc.states, sum.State)
	}
	equal(t, got, []string{"audit.policy a2", "audit.policy b1", "state", "audit.events a1", "audit.events a2", "audit.events b1"})
}

func TestBadLines(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	secret := "hunter2-swordfish-value"
	text := strings.Join([]string{
		line("a", false),
		`{"kind":"Event","level":7}`,
		``,
		`not json at all`,
		`{"kind":"Event","requestObject":{"kind":"Secret","stringData":{"p":"` + secret + `"}},"lev`,
		strings.Repeat("x", 3000),
		`17`,
		`{"auditID":"c8e355d8","code":200,"method":"GET"}`,
		line("b", false),
		line("c", false)[:100],
	}, "\n")
	cfg := rc.config(t, memory("log", []byte(text)))
	cfg.MaxLine = 2000
	cfg.Position = filepath.Join(t.TempDir(), "pos")
	sum, err := Import(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := sum.Files[0]
	if sum.Events != 2 || sum.Malformed != 7 || sum.DeadLetters != 7 || f.Lines != 9 || !f.Truncated {
		t.Errorf("summary %+v", sum)
	}
	var lines []int64
	for _, b := range f.BadLines {
		lines = append(lines, b.Line)
		if b.Reason == "" || strings.Contains(b.Reason, secret) {
			t.Errorf("line %d: %q", b.Line, b.Reason)
		}
	}
	if fmt.Sprint(lines) != "[2 4 5 6 7 8 10]" {
		t.Errorf("bad lines %v", lines)
	}
	if len(rc.letters) != 7 {
		t.Fatalf("%d dead letters", len(rc.letters))
	}
	for _, d := range rc.letters {
		if d.Cluster != "prod" || d.Source != "import" || d.Reason != "malformed-item" || bytes.Contains(d.Prefix, []byte(secret)) {
			t.Errorf("dead letter %+v %s", d, d.Prefix)
		}
	}

	// The cut line is read again once its writer has finished it; the others are not.
	rc.take()
	cfg.Files = []File{memory("renamed", []byte(text+line("c", false)[100:]+"\n"+line("d", false)+"\n"))}
	sum, err = Import(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, rc.take(), []string{"audit.events c", "audit.events d"})
	if f := sum.Files[0]; f.Resumed != 9 || f.Lines != 2 || f.Truncated {
		t.Errorf("summary %+v", f)
	}
}

func TestInflateLimits(t *testing.T) {
	zeros := func(n int64) []byte {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeroReader{}, n); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	text, _ := log(2000)
	var window bytes.Buffer
	wide, err := zstd.NewWriter(&window, zstd.WithWindowSize(256<<20), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(wide, text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(wide.Flush(), wide.Close()); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		content []byte
		max     int64
		is      error
		text    string
	}{
		{"ratio", zeros(100 << 20), 0, ErrInflated, "no audit log compresses like that"},
		{"absolute", gz(t, text), 100_000, ErrInflated, "more than 100000 bytes"},
		{"absolute, zstd", zst(t, text), 100_000, nil, ""},
		{"zstd window", window.Bytes(), 0, nil, "window"},
		{"cut gzip", gz(t, text)[:3000], 0, io.ErrUnexpectedEOF, "read gzip"},
		{"cut zstd", zst(t, text)[:2000], 0, io.ErrUnexpectedEOF, "read zstd"},
		{"gzip by its first bytes only", []byte("\x1f\x8b nothing"), 0, nil, "gzip"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rc := newReceiver(t, webhook.Config{})
			cfg := rc.config(t, memory("file", tc.content))
			cfg.MaxInflated = tc.max
			_, err := Import(t.Context(), cfg)
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) ||
				!strings.HasPrefix(err.Error(), "import file: ") {
				t.Errorf("error %v, want %v with %q", err, tc.is, tc.text)
			}
		})
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNotALog(t *testing.T) {
	for _, tc := range []struct{ name, content, text string }{
		{"a state file", `{"apiVersion":"v1","kind":"List","items":[]}`, "--state"},
		{"a state file, items first",
			`{"apiVersion":"v1","items":[{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1"}],"kind":"List"}`, "first item"},
		{"items no array", `{"kind":"EventList","items":{}}`, "items is not an array"},
		{"a list cut off", `{"kind":"EventList","items":[` + line("a", false) + `,{"kin`, "cut off after item 1"},
		{"a list broken", `{"kind":"EventList","items":[` + line("a", false) + `}`, "malformed after item 1"},
		{"a list and then", `{"kind":"EventList","items":[` + line("a", false) + `]} 17`, "followed by something other than a list"},
		{"lines of something else", strings.Repeat(`{"auditID":"c8e355d8","code":200,"method":"GET","path":"/apis"}`+"\n", 100),
			"line 1: not an audit event: it has no stage (want " +
				"a JSON object of kind Event, apiVersion audit.k8s.io/v1, with auditID and stage)"},
		{"a list of something else", `{"kind":"EventList","items":[{"auditID":"c8e355d8","code":200}]}`, "it has no stage"},
		{"an item too long", `{"kind":"EventList","items":["` + strings.Repeat("x", 200_000) + `"]}`, "more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rc := newReceiver(t, webhook.Config{})
			cfg := rc.config(t, memory("file", []byte(tc.content)))
			cfg.MaxLine = 100_000
			if _, err := Import(t.Context(), cfg); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want one with %q", err, tc.text)
			}
		})
	}
}

func TestInterruptedImportContinues(t *testing.T) {
	text, want := log(100)
	rc := newReceiver(t, webhook.Config{})
	pos := filepath.Join(t.TempDir(), "pos")
	cfg := rc.config(t, memory("log", gz(t, text)))
	cfg.Position, cfg.BatchEvents, cfg.Attempts = pos, 5, 2
	var got []string
	finished := false
	// The receiver goes away after ever more posts; the import makes a little way each time.
	for run := range 100 {
		left := 1 + run%3
		rc.mu.Lock()
		rc.front = func(w http.ResponseWriter, _ *http.Request) bool {
			rc.mu.Lock()
			defer rc.mu.Unlock()
			if left--; left >= 0 {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		rc.mu.Unlock()
		sum, err := Import(t.Context(), cfg)
		got = append(got, rc.take()...)
		if err == nil {
			finished = true
			if f := sum.Files[0]; f.Resumed == 0 {
				t.Errorf("the last run does not say it continued: %+v", f)
			}
			break
		}
		if !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if !finished {
		t.Fatal("never finished")
	}
	// Nothing missing, nothing twice: every post was either refused or acknowledged.
	var onlyEvents, wantEvents []string
	for _, s := range got {
		if strings.HasPrefix(s, "audit.events") {
			onlyEvents = append(onlyEvents, s)
		}
	}
	for _, s := range want {
		if strings.HasPrefix(s, "audit.events") {
			wantEvents = append(wantEvents, s)
		}
	}
	equal(t, onlyEvents, wantEvents)

	rc.front, rc.posts = nil, 0
	sum, err := Import(t.Context(), cfg)
	if err != nil || rc.posts != 0 || !sum.Files[0].Complete || sum.Events != 0 {
		t.Errorf("once more: %+v %v, %d posts", sum, err, rc.posts)
	}
	// Another cluster has had nothing yet.
	cfg.Cluster = "test"
	if sum, err := Import(t.Context(), cfg); err != nil || sum.Events != 100 {
		t.Errorf("another cluster: %+v %v", sum, err)
	}
	// A position file that a crash left half written costs time, not data.
	if err := os.WriteFile(pos, []byte(`{"version":1,"fi`), 0o600); err != nil {
		t.Fatal(err)
	}
	if sum, err := Import(t.Context(), cfg); err != nil || sum.Events != 100 {
		t.Errorf("broken position: %+v %v", sum, err)
	}
}

func TestPositionWaitsForTheFirst(t *testing.T) {
	tr := &ackTracker{waiting: map[int64]*post{}}
	for i, step := range []struct {
		seq, last int64
		want      int64
		moved     bool
	}{{2, 30, 0, false}, {1, 20, 0, false}, {0, 10, 30, true}, {4, 50, 0, false}, {3, 0, 50, true}} {
		if last, moved := tr.acknowledge(&post{seq: step.seq, last: step.last}); last != step.want || moved != step.moved {
			t.Errorf("step %d: line %d, moved %v", i, last, moved)
		}
	}
}

func TestManyInFlight(t *testing.T) {
	text, want := log(500)
	rc := newReceiver(t, webhook.Config{})
	cfg := rc.config(t, memory("log", []byte(text)))
	cfg.InFlight, cfg.BatchEvents = 8, 3
	// Every third post is pushed back once.
	n := 0
	rc.front = func(w http.ResponseWriter, _ *http.Request) bool {
		rc.mu.Lock()
		defer rc.mu.Unlock()
		if n++; n%3 != 0 {
			return false
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	cfg.Position = filepath.Join(t.TempDir(), "pos")
	sum, err := Import(t.Context(), cfg)
	if err != nil || sum.Events != 500 || sum.Retries == 0 {
		t.Fatalf("%+v %v", sum, err)
	}
	seen := map[string]int{}
	for _, s := range rc.take() {
		seen[s]++
	}
	for _, s := range want {
		if seen[s] == 0 || strings.HasPrefix(s, "audit.events") && seen[s] != 1 {
			t.Errorf("%s produced %d times", s, seen[s])
		}
	}
	if sum, err := Import(t.Context(), cfg); err != nil || !sum.Files[0].Complete {
		t.Errorf("position: %+v %v", sum, err)
	}
}

func TestRetries(t *testing.T) {
	answers := func(w http.ResponseWriter, r *http.Request, code int, after string) {
		_, _ = io.Copy(io.Discard, r.Body)
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		http.Error(w, "why it was", code)
	}
	for _, tc := range []struct {
		name  string
		front func(w http.ResponseWriter, r *http.Request, n int) bool
		waits []time.Duration // nil entries are jittered
		is    error
	}{
		{"push-back", func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n == 3 {
				return false
			}
			answers(w, r, 429, []string{"7", "x", "9999"}[n])
			return true
		}, []time.Duration{7 * time.Second, time.Second, 30 * time.Second}, nil},
		{"unavailable without a word", func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n == 1 {
				return false
			}
			answers(w, r, 503, "")
			return true
		}, []time.Duration{time.Second}, nil},
		{"connections that break", func(_ http.ResponseWriter, _ *http.Request, n int) bool {
			if n < 3 {
				panic(http.ErrAbortHandler)
			}
			return false
		}, []time.Duration{0, 0, 0}, nil},
		{"no end of it", func(w http.ResponseWriter, r *http.Request, _ int) bool {
			answers(w, r, 500, "")
			return true
		}, []time.Duration{0, 0, 0, 0}, ErrUnavailable},
		{"refused", func(w http.ResponseWriter, r *http.Request, _ int) bool {
			answers(w, r, 403, "")
			return true
		}, nil, ErrRefused},
		{"malformed, which cannot be", func(w http.ResponseWriter, r *http.Request, _ int) bool {
			answers(w, r, 400, "")
			return true
		}, nil, ErrRefused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rc := newReceiver(t, webhook.Config{})
			n := 0
			rc.front = func(w http.ResponseWriter, r *http.Request) bool {
				rc.mu.Lock()
				at := n
				n++
				rc.mu.Unlock()
				return tc.front(w, r, at)
			}
			var waits []time.Duration
			cfg := rc.config(t, memory("log", []byte(line("a", false))))
			cfg.Attempts = 5
			cfg.Sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			_, err := Import(t.Context(), cfg)
			if !errors.Is(err, tc.is) || tc.is != nil && !strings.Contains(err.Error(), "why it was") {
				t.Errorf("error %v, want %v", err, tc.is)
			}
			if len(waits) != len(tc.waits) {
				t.Fatalf("waits %v, want %v", waits, tc.waits)
			}
			for i, want := range tc.waits {
				if want != 0 && waits[i] != want || waits[i] <= 0 || i > 0 && want == 0 && waits[i] < waits[i-1] {
					t.Errorf("waits %v, want %v", waits, tc.waits)
				}
			}
			if tc.is == nil {
				equal(t, rc.take(), []string{"audit.events a"})
			}
		})
	}
}

func TestPostsTooLargeAreSplit(t *testing.T) {
	text, want := log(64)
	long := strings.Replace(line("long", false), "jane", strings.Repeat("x", 5000), 1) + "\n"
	rc := newReceiver(t, webhook.Config{MaxBody: 3000})
	sum, err := Import(t.Context(), rc.config(t, memory("log", []byte(long+text))))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	large := 0
	for _, s := range rc.take() {
		if s == "audit.deadletter too-large" {
			large++
		} else if strings.HasPrefix(s, "audit.events") {
			got = append(got, s)
		}
	}
	equal(t, got, want[len(want)-64:])
	if sum.Events != 64 || sum.DeadLetters != 1 || large == 0 {
		t.Errorf("summary %+v", sum)
	}
}

func TestStream(t *testing.T) {
	text, want := log(25)
	dir := t.TempDir()
	rc := newReceiver(t, webhook.Config{})
	opened := 0
	stdin := func() File {
		return File{Name: "standard input", Stream: true, Open: func() (io.ReadCloser, error) {
			opened++
			return io.NopCloser(bytes.NewReader(gz(t, text))), nil
		}}
	}
	cfg := rc.config(t, stdin())
	cfg.SpoolDir, cfg.Position = dir, filepath.Join(t.TempDir(), "pos")
	passes := map[Pass]bool{}
	cfg.Progress = func(p Progress) {
		passes[p.Pass] = true
		if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
			t.Errorf("the spool has a name: %v %v", files, err)
		}
	}
	if _, err := Import(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	equal(t, rc.take(), want)
	if opened != 1 || !passes[PassSpool] || !passes[PassPolicy] || !passes[PassEvents] {
		t.Errorf("opened %d times, passes %v", opened, passes)
	}
	cfg.Files = []File{stdin()}
	if sum, err := Import(t.Context(), cfg); err != nil || !sum.Files[0].Complete {
		t.Errorf("the same input again: %+v %v", sum, err)
	}
	cfg.SpoolDir = filepath.Join(dir, "missing")
	if _, err := Import(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "spool") {
		t.Errorf("no room to spool: %v", err)
	}
}

func TestSpoolIsUnreadable(t *testing.T) {
	text, _ := log(25)
	im := &run{cfg: Config{SpoolDir: t.TempDir(), Progress: func(Progress) {}}}
	s, err := im.spool(t.Context(), memory("stdin", []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	raw := make([]byte, s.size)
	if _, err := s.f.ReadAt(raw, 0); err != nil {
		t.Fatal(err)
	}
	if s.size != int64(len(text)) || bytes.Contains(raw, []byte("jane")) || bytes.Contains(raw, []byte("kind")) {
		t.Error("the spool's bytes are those of the input")
	}
	r, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := io.ReadAll(r); err != nil || string(back) != text {
		t.Errorf("read back %d bytes, %v", len(back), err)
	}
}

func TestStateIsPostedOnce(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	state := memory("state", []byte("objects"))
	cfg := rc.config(t)
	cfg.State, cfg.Position = &state, filepath.Join(t.TempDir(), "pos")
	for i := range 2 {
		sum, err := Import(t.Context(), cfg)
		if err != nil || sum.StateKnown != (i == 1) {
			t.Errorf("run %d: %+v %v", i, sum, err)
		}
	}
	if len(rc.states) != 1 {
		t.Errorf("posted %q", rc.states)
	}
	rc.front = func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "state of cluster prod: object 3", http.StatusBadRequest)
		return true
	}
	other := memory("other", []byte("others"))
	cfg.State = &other
	if _, err := Import(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "object 3") {
		t.Errorf("a state that is refused: %v", err)
	}
}

// TestStateAndLogAreTwoMatters names one file as a log by mistake and then as a state.
func TestStateAndLogAreTwoMatters(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	file := memory("file", []byte("neither\n"))
	cfg := rc.config(t, file)
	cfg.Position = filepath.Join(t.TempDir(), "pos")
	if sum, err := Import(t.Context(), cfg); err != nil || sum.Malformed != 1 {
		t.Fatalf("as a log: %+v %v", sum, err)
	}
	cfg.Files, cfg.State = nil, &file
	if sum, err := Import(t.Context(), cfg); err != nil || sum.StateKnown || len(rc.states) != 1 {
		t.Errorf("as a state: %+v %v, posted %q", sum, err, rc.states)
	}
}

func TestCancel(t *testing.T) {
	text, _ := log(100)
	rc := newReceiver(t, webhook.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cfg := rc.config(t, memory("log", []byte(text)))
	cfg.BatchEvents = 1
	cfg.Position = filepath.Join(t.TempDir(), "pos")
	cfg.Progress = func(p Progress) {
		if p.Pass == PassEvents && p.Events >= 20 {
			cancel()
		}
	}
	if _, err := Import(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	cfg.Progress = nil
	sum, err := Import(t.Context(), cfg)
	if err != nil || sum.Files[0].Resumed < 20 || sum.Files[0].Resumed+sum.Events != 100 {
		t.Errorf("continued: %+v %v", sum, err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := OpenFile(dir); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v", err)
	}
	if f, err := OpenFile("-"); err != nil || !f.Stream {
		t.Errorf("standard input: %+v %v", f, err)
	}
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte(line("a", false)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil || f.Stream || f.Size == 0 {
		t.Fatalf("%+v %v", f, err)
	}
	rc := newReceiver(t, webhook.Config{})
	if sum, err := Import(t.Context(), rc.config(t, f)); err != nil || sum.Events != 1 {
		t.Errorf("%+v %v", sum, err)
	}
	for _, cfg := range []Config{{}, {Target: Target{Client: rc.client}}} {
		if _, err := Import(t.Context(), cfg); err == nil {
			t.Errorf("took %+v", cfg)
		}
	}
}
