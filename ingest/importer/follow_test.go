package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/webhook"
)

// logWriter writes an audit log as an apiserver does, and rotates it in all the ways logs are.
type logWriter struct {
	t       *testing.T
	path    string
	n       int // events begun
	half    string
	written []string
	rotated []string // plain files
	copies  int
	clock   time.Time
}

func newLogWriter(t *testing.T) *logWriter {
	return &logWriter{t: t, path: filepath.Join(t.TempDir(), "audit.log"), clock: time.Now()}
}

func (w *logWriter) append(text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// events writes n whole events, after the rest of one that was begun.
func (w *logWriter) events(n int) {
	w.append(w.half)
	w.half = ""
	for range n {
		id := fmt.Sprint("w", w.n)
		w.n++
		w.written = append(w.written, id)
		w.append(line(id, w.n%7 == 0) + "\n")
	}
}

// begin writes the first half of an event.
func (w *logWriter) begin() {
	w.events(0)
	id := fmt.Sprint("w", w.n)
	w.n++
	w.written = append(w.written, id)
	text := line(id, false) + "\n"
	w.append(text[:60])
	w.half = text[60:]
}

// rename rotates as lumberjack does, between two lines.
func (w *logWriter) rename() {
	w.events(0)
	w.clock = w.clock.Add(time.Second)
	to := strings.TrimSuffix(w.path, ".log") + w.clock.UTC().Format("-2006-01-02T15-04-05.000") + ".log"
	w.must(os.Rename(w.path, to))
	w.must(os.Chtimes(to, w.clock, w.clock))
	w.rotated = append(w.rotated, to)
}

// copyTruncate rotates as logrotate's copytruncate does; half a line goes on in the new file
// and is lost with it, so that none is begun here.
func (w *logWriter) copyTruncate() {
	w.events(0)
	w.clock = w.clock.Add(time.Second)
	w.copies++
	to := fmt.Sprint(w.path, ".", w.copies)
	content, err := os.ReadFile(w.path)
	w.must(err)
	w.must(os.WriteFile(to, content, 0o600))
	w.must(os.Chtimes(to, w.clock, w.clock))
	w.must(os.Truncate(w.path, 0))
	w.rotated = append(w.rotated, to)
}

// compress packs the oldest plain rotated file, and leaves half of the packed one when asked.
func (w *logWriter) compress(half bool) {
	if len(w.rotated) == 0 {
		return
	}
	name := w.rotated[0]
	content, err := os.ReadFile(name)
	w.must(err)
	packed := gz(w.t, string(content))
	if half {
		w.must(os.WriteFile(name+".gz", packed[:len(packed)/2], 0o600))
		return
	}
	w.must(os.WriteFile(name+".gz", packed, 0o600))
	w.must(os.Remove(name))
	w.rotated = w.rotated[1:]
}

func (w *logWriter) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// follow returns a follower of the log whose clock stands at the writer's.
func (w *logWriter) follow(rc *receiver) *follower {
	w.t.Helper()
	f, err := newFollower(FollowConfig{
		Target: Target{Client: rc.client, BaseURL: "http://retrial", Cluster: "prod", BatchEvents: 3,
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
		Path:     w.path,
		Position: filepath.Join(filepath.Dir(w.path), "position", "p.json"),
		Now:      func() time.Time { return w.clock },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// took returns the audit IDs of the events that came, in order.
func (rc *receiver) took() []string {
	var ids []string
	for _, p := range rc.take() {
		if id, ok := strings.CutPrefix(p, "audit.events "); ok {
			ids = append(ids, id)
		} else if !strings.HasPrefix(p, "audit.policy ") {
			ids = append(ids, p)
		}
	}
	return ids
}

func TestFollow(t *testing.T) {
	type step = func(w *logWriter, look func(), restart func())
	for name, steps := range map[string]step{
		"grows": func(w *logWriter, look, _ func()) { w.events(5); look(); w.events(2); look(); look() },
		"half a line": func(w *logWriter, look, _ func()) {
			w.events(1)
			w.begin()
			look()
			look()
			w.events(1)
			look()
		},
		"not there yet": func(w *logWriter, look, _ func()) { look(); w.events(2); look() },
		"first line in halves": func(w *logWriter, look, _ func()) {
			w.begin()
			look()
			w.events(1)
			look()
		},
		"renamed": func(w *logWriter, look, _ func()) {
			w.events(4)
			look()
			w.events(2)
			w.rename()
			look()
			w.events(3)
			look()
		},
		"renamed twice between two looks": func(w *logWriter, look, _ func()) {
			w.events(4)
			look()
			w.events(1)
			w.rename()
			w.events(7)
			w.rename()
			w.events(1)
			look()
		},
		"renamed and removed": func(w *logWriter, look, _ func()) {
			w.events(4)
			look()
			w.events(2)
			w.rename()
			w.must(os.Remove(w.rotated[0]))
			w.events(3)
			look()
		},
		"compressed while nobody follows": func(w *logWriter, look, restart func()) {
			w.events(4)
			look()
			w.events(2)
			w.rename()
			w.compress(false)
			w.events(3)
			restart()
			look()
		},
		"half compressed": func(w *logWriter, look, restart func()) {
			w.events(4)
			look()
			w.rename()
			w.compress(true)
			w.events(3)
			restart()
			look()
			w.compress(false)
			look()
			w.clock = w.clock.Add(time.Minute)
			look()
		},
		"copied and truncated": func(w *logWriter, look, _ func()) {
			w.events(4)
			look()
			w.events(2)
			w.copyTruncate()
			look()
			w.events(3)
			look()
		},
		"truncated and longer than before": func(w *logWriter, look, _ func()) {
			w.events(2)
			look()
			w.events(1)
			w.copyTruncate()
			w.events(8)
			look()
		},
		"truncated while nobody follows": func(w *logWriter, look, restart func()) {
			w.events(5)
			look()
			w.events(5)
			w.copyTruncate()
			w.events(2)
			restart()
			look()
		},
		"rotated files from before": func(w *logWriter, look, _ func()) {
			w.events(4)
			w.rename()
			w.events(4)
			w.rename()
			w.compress(false)
			w.events(2)
			look()
		},
		"restarted": func(w *logWriter, look, restart func()) {
			w.events(10)
			look()
			restart()
			look()
			w.events(1)
			look()
		},
	} {
		t.Run(name, func(t *testing.T) {
			rc := newReceiver(t, webhook.Config{})
			w := newLogWriter(t)
			f := w.follow(rc)
			look := func() {
				t.Helper()
				if err := f.poll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			restart := func() { f.close(); f = w.follow(rc) }
			defer func() { f.close() }()
			steps(w, look, restart)
			equal(t, rc.took(), w.written)
			if f.done.Behind != 0 || f.done.Malformed != 0 {
				t.Errorf("%+v", f.done)
			}
			restart()
			look()
			equal(t, rc.took(), nil)
		})
	}
}

// TestFollowSchedules: whatever the order of writing, rotating, looking and dying, every event
// arrives, and none twice but those whose acknowledgement a crash took back.
func TestFollowSchedules(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newLogWriter(t)
			f := w.follow(rc)
			defer func() { f.close() }()
			position := f.pos.path
			crashed := false
			var got []string
			for range 40 {
				switch k := r.IntN(20); {
				case k < 6:
					w.events(1 + r.IntN(5))
				case k < 8:
					w.begin()
				case k < 9 && w.n > 0 && exists(w.path):
					w.rename()
				case k < 10 && w.n > 0 && exists(w.path) && w.half == "":
					w.copyTruncate()
				case k < 11:
					w.compress(r.IntN(3) == 0)
				case k < 12:
					f.close()
					f = w.follow(rc)
				case k < 13: // kill -9 between the answer and the position
					before, err := os.ReadFile(position)
					if err := f.poll(t.Context()); err != nil {
						t.Fatal(err)
					}
					f.close()
					if err == nil {
						w.must(os.WriteFile(position, before, 0o600))
					} else {
						_ = os.Remove(position)
					}
					f, crashed = w.follow(rc), true
				default:
					if err := f.poll(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.events(1)
			for len(w.rotated) > 0 && r.IntN(2) == 0 {
				w.compress(false)
			}
			w.clock = w.clock.Add(time.Hour)
			for range 3 {
				if err := f.poll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got = rc.took()
			slices.Sort(got)
			if !crashed && len(got) != len(w.written) {
				t.Errorf("%d came of %d, and nothing crashed", len(got), len(w.written))
			}
			got = slices.Compact(got)
			slices.Sort(w.written)
			equal(t, got, w.written)
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestFollowBrokenContent(t *testing.T) {
	secret := "hunter2-swordfish"
	for name, tc := range map[string]struct {
		write func(w *logWriter)
		want  []string
		bad   int64
	}{
		"bad line between": {func(w *logWriter) {
			w.events(1)
			w.append("nonsense " + secret + "\n{\"kind\":\"Event\",\"level\":7}\n\n")
			w.events(1)
		},
			[]string{"w0", "audit.deadletter malformed-item", "audit.deadletter malformed-item", "w1"}, 2},
		"half a line at a rotated file's end": {func(w *logWriter) {
			w.events(1)
			w.append(line("cut", false)[:50])
			w.rename()
			w.events(1)
			w.clock = w.clock.Add(time.Minute)
		}, []string{"w0", "audit.deadletter malformed-item", "w1"}, 1},
		"a packed file that is cut off": {func(w *logWriter) {
			w.events(200)
			w.rename()
			content, err := os.ReadFile(w.rotated[0])
			w.must(err)
			packed := gz(w.t, string(content))
			w.must(os.WriteFile(w.rotated[0]+".gz", packed[:len(packed)-20], 0o600))
			w.must(os.Remove(w.rotated[0]))
			w.events(1)
			w.clock = w.clock.Add(time.Minute)
		}, []string{"w200"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rc := newReceiver(t, webhook.Config{})
			w := newLogWriter(t)
			tc.write(w)
			f := w.follow(rc)
			defer f.close()
			for range 2 {
				if err := f.poll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got := rc.took()
			if strings.HasPrefix(name, "a packed") {
				if len(got) < 100 {
					t.Errorf("%d events before the break", len(got))
				}
				got = got[len(got)-1:]
			}
			equal(t, got, tc.want)
			if f.done.Malformed != tc.bad {
				t.Errorf("%+v", f.done)
			}
			for _, l := range rc.letters {
				if strings.Contains(fmt.Sprint(l), secret) {
					t.Errorf("the dead letter holds the line: %v", l)
				}
			}
		})
	}
}

func TestFollowRefuses(t *testing.T) {
	w := newLogWriter(t)
	w.events(1)
	for name, tc := range map[string]struct {
		cfg  func(c *FollowConfig)
		want string
	}{
		"no position":   {func(c *FollowConfig) { c.Position = "" }, "no position"},
		"a folder":      {func(c *FollowConfig) { c.Path = filepath.Dir(c.Path) }, "not a regular file"},
		"no folder":     {func(c *FollowConfig) { c.Path = "/nowhere/at/all/audit.log" }, "/nowhere/at/all"},
		"no cluster":    {func(c *FollowConfig) { c.Cluster = "" }, "no cluster"},
		"other cluster": {func(c *FollowConfig) { c.Cluster = "other" }, `belongs to cluster "prod"`},
	} {
		t.Run(name, func(t *testing.T) {
			rc := newReceiver(t, webhook.Config{})
			f := w.follow(rc)
			defer f.close()
			if err := f.poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			cfg := f.cfg
			tc.cfg(&cfg)
			if _, err := newFollower(cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	t.Run("no audit log", func(t *testing.T) {
		rc := newReceiver(t, webhook.Config{})
		w := newLogWriter(t)
		w.append(strings.Repeat("2026-01-02T03:04:05Z AUDIT: id=\"x\" stage=\"ResponseComplete\"\n", 200))
		f := w.follow(rc)
		f.post.BatchEvents = 1000
		defer f.close()
		if err := f.poll(t.Context()); !errors.Is(err, ErrFormat) {
			t.Errorf("%v", err)
		}
		equal(t, rc.took(), nil)
	})
}

// TestFollowWaits: a receiver that is away is waited for; what it has not acknowledged is not
// in the position.
func TestFollowWaits(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	w := newLogWriter(t)
	w.events(4)
	ctx, cancel := context.WithCancel(t.Context())
	refusals := 0
	rc.front = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("source") != "log" {
			t.Errorf("posted to %s", r.URL)
		}
		if refusals++; refusals > 400 {
			cancel()
		}
		_, _ = io.Copy(io.Discard, r.Body)
		rw.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	f := w.follow(rc)
	err := f.poll(ctx)
	f.close()
	if !errors.Is(err, context.Canceled) || refusals < 400 {
		t.Fatalf("%v after %d refusals", err, refusals)
	}
	rc.mu.Lock()
	rc.front = nil
	rc.mu.Unlock()
	ctx, cancel = context.WithCancel(t.Context())
	cfg := w.follow(rc).cfg
	cfg.Progress = func(Followed) { cancel() }
	done, err := Follow(ctx, cfg)
	if !errors.Is(err, context.Canceled) || done.Events != 4 || done.Posts != 2 {
		t.Errorf("%+v %v", done, err)
	}
	equal(t, rc.took(), w.written)
}

// TestFollowDelay: a line is posted when it is old enough, at once when its file is rotated, and
// once in any case.
func TestFollowDelay(t *testing.T) {
	rc := newReceiver(t, webhook.Config{})
	w := newLogWriter(t)
	f := w.follow(rc)
	defer f.close()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.cfg.Now, f.cfg.Delay = func() time.Time { return now }, 30*time.Second
	var took []string
	look := func(want int, behind bool) {
		t.Helper()
		f.done.Behind = 0
		if err := f.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		took = append(took, rc.took()...)
		equal(t, took, w.written[:want])
		if (f.done.Behind > 0) != behind {
			t.Errorf("%d bytes behind", f.done.Behind)
		}
	}
	w.events(4)
	look(0, true)
	now = now.Add(20 * time.Second)
	w.events(3)
	look(0, true)
	now = now.Add(15 * time.Second)
	look(4, true)
	now = now.Add(14 * time.Second)
	look(4, true)
	now = now.Add(time.Second)
	look(7, false)
	w.events(2)
	look(7, true)
	w.rename()
	w.events(5)
	look(9, true)
	now = now.Add(29 * time.Second)
	look(9, true)
	now = now.Add(time.Second)
	look(14, false)
}
