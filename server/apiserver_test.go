package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
)

// TestApiserverConfigIsReread changes a cluster's folder under a server's eyes.
func TestApiserverConfigIsReread(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kube-apiserver.flags")
	written := time.Now()
	write := func(flags string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("--etcd-servers=https://127.0.0.1:2379\n"+flags+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		written = written.Add(time.Second) // whatever the file system's clock can tell apart
		if err := os.Chtimes(file, written, written); err != nil {
			t.Fatal(err)
		}
	}
	seen, logs := observer.New(zap.InfoLevel)
	reg := prometheus.NewRegistry()
	write("--authorization-mode=RBAC,RBAC")
	a, err := openApiservers([]string{"prod=" + dir}, zap.New(seen), reg)
	if err != nil {
		t.Fatal(err)
	}
	now := func() string {
		t.Helper()
		cfg := a.history("prod", "cp-1").At(time.Now())
		if len(cfg.Unknown) > 0 {
			return "unknown: " + strings.Join(cfg.Unknown, "; ")
		}
		names := make([]string, 0, 2)
		for _, z := range cfg.Authorization.Authorizers {
			names = append(names, z.Name)
		}
		return strings.Join(names, ",")
	}
	metrics := func(taken, refused, missing float64) {
		t.Helper()
		got := [3]float64{testutil.ToFloat64(a.reads.WithLabelValues("taken")), testutil.ToFloat64(a.refused),
			testutil.ToFloat64(a.missing)}
		if want := [3]float64{taken, refused, missing}; got != want {
			t.Errorf("taken, refused now, missing: %v, want %v", got, want)
		}
	}
	told := func(want ...string) {
		t.Helper()
		var got []string
		for _, e := range logs.TakeAll() {
			got = append(got, e.Level.String()+" "+e.Message)
		}
		if text := strings.Join(got, "\n"); len(got) != len(want) {
			t.Errorf("told %q, want %d messages like %q", text, len(want), want)
		} else {
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("told %q, want %q", got[i], want[i])
				}
			}
		}
	}

	// At first there is nothing to fall back to: it is unknown, and serving goes on.
	if got := now(); !strings.Contains(got, "unknown: ") || !strings.Contains(got, "RBAC is named twice") {
		t.Errorf("got %q", got)
	}
	told("error the apiserver's configuration is refused")
	metrics(0, 1, 0)

	write("--authorization-mode=RBAC")
	a.reread()
	if got := now(); got != "rbac" {
		t.Errorf("got %q", got)
	}
	told("info read the apiserver's configuration")
	metrics(1, 0, 0)

	a.reread() // nothing changed
	told()
	metrics(1, 0, 0)

	// What is wrong later does not take the place of what was right.
	write("--authorization-mode=Node,RBAC,RBAC")
	a.reread()
	a.reread() // told once
	if got := now(); got != "rbac" {
		t.Errorf("got %q", got)
	}
	told("warn the apiserver's changed configuration is refused, the earlier one stays in use")
	metrics(1, 1, 0)

	write("--authorization-mode=Node,RBAC\n--token-auth-file=/etc/tokens.csv")
	a.reread()
	if got := a.history("prod", "").At(time.Now()); len(got.Authorization.Authorizers) != 2 {
		t.Errorf("got %+v", got)
	}
	told("info read the apiserver's configuration", "warn parts of the apiserver's configuration are missing")
	metrics(2, 0, 1)

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	a.reread()
	if got := a.history("prod", "").At(time.Now()); len(got.Authorization.Authorizers) != 2 {
		t.Errorf("a folder that is gone took its configuration along: %+v", got)
	}
	metrics(2, 1, 1)
	if a.history("test", "") != nil || (*apiservers)(nil).history("prod", "") != nil {
		t.Error("something is known of another cluster")
	}
	if _, err := openApiservers([]string{"prod"}, zap.NewNop(), prometheus.NewRegistry()); err == nil {
		t.Error("an entry without a folder was taken")
	}
}

// TestFirstStartWantsApiserverConfig: on a fresh data directory a folder that cannot be read is
// a mistake; where something may be stored, events go first.
func TestFirstStartWantsApiserverConfig(t *testing.T) {
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "file"), filepath.Join(dir, "empty")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ folder, want string }{
		"no such folder":     {filepath.Join(dir, "none"), filepath.Join(dir, "none") + ": no such file or directory"},
		"a file":             {file, file + ": not a directory"},
		"nothing in it":      {empty, "apiserver-config: " + empty + ": "},
		"a terminal's words": {filepath.Join(dir, "\x1b[31m"), `\x1b[31m: no such file`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, runs := range []Halves{Both, Replay} {
				cfg := config.Default()
				cfg.DataDir, cfg.KeyFile, cfg.Replay.ApiserverConfig = filepath.Join(dir, "data"), filepath.Join(dir, "key"),
					[]string{"prod=" + tc.folder}
				if runs == Replay {
					cfg.Kafka.Brokers, cfg.ClickHouse.DSN = []string{"127.0.0.1:1"}, "http://127.0.0.1:1"
				}
				if err := (Server{Config: cfg, Runs: runs}).Check(); err == nil || !strings.Contains(cli.SafeLines(err.Error()), tc.want) {
					t.Errorf("%s: said %v, want %q", runs, err, tc.want)
				}
				if _, err := os.Stat(cfg.DataDir); !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("%s made a data directory: the next start would not be the first", runs)
				}
			}
		})
	}
	cfg := config.Default()
	cfg.DataDir, cfg.Replay.ApiserverConfig = filepath.Join(dir, "old"), []string{"prod=" + empty}
	if err := checkFirstStart(cfg); err == nil {
		t.Error("a first start goes on")
	}
	if err := os.Mkdir(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.KeyIDFile(), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkFirstStart(cfg); err != nil {
		t.Errorf("a later start takes no events: %v", err)
	}
}
