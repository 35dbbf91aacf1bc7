package embedded_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/retrial-io/retrial/storage/embedded"
)

// need ends the test when libchdb is not here: a skip for a developer, a failure in CI.
func need(t *testing.T) {
	t.Helper()
	if err := embedded.Suitable(); err != nil {
		lacking(t, err)
	}
	if _, err := embedded.Locate(""); err != nil {
		lacking(t, err)
	}
}

func lacking(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI runs need the embedded store: %v", err)
	}
	t.Skipf("NOT RUN: %v", err)
}

func open(t *testing.T, dir string) *embedded.Engine {
	t.Helper()
	need(t)
	e, err := embedded.Open(embedded.Config{Path: dir, MaxThreads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func connect(t *testing.T, rt http.RoundTripper) driver.Conn {
	t.Helper()
	c, err := clickhouse.Open(&clickhouse.Options{
		Protocol:      clickhouse.HTTP,
		Addr:          []string{"embedded:8123"},
		TransportFunc: func(*http.Transport) (http.RoundTripper, error) { return rt, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestDriver runs what the store does with the driver over the in-process transport; the
// hello answered by the transport is proven by every query after it decoding.
func TestDriver(t *testing.T) {
	ctx := context.Background()
	c := connect(t, open(t, t.TempDir()))

	if err := c.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	v, err := c.ServerVersion()
	if err != nil || v.Revision != 0 {
		t.Fatalf("server version %v, %v: want revision 0, that of the engine's Native output", v, err)
	}
	for _, sql := range []string{
		"CREATE DATABASE d",
		"CREATE TABLE d.t (id UInt64, s LowCardinality(String), a Array(LowCardinality(String)), m Map(LowCardinality(String), " +
			"Array(String)), at DateTime64(6, 'UTC')) ENGINE = MergeTree ORDER BY id",
	} {
		if err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := c.PrepareBatch(ctx, "INSERT INTO d.t")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	const rows = 30000 // more than one chunk of insertChunk bytes
	for i := range rows {
		pad := strings.Repeat("x", i%97) + "\x00\n"
		if err := batch.Append(uint64(i), pad, []string{"a", pad}, map[string][]string{"k": {pad, "v"}}, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	t.Run("select streams every row", func(t *testing.T) {
		r, err := c.Query(ctx, "SELECT id, s, a, m, at FROM d.t ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n := 0
		for ; r.Next(); n++ {
			var id uint64
			var s string
			var a []string
			var m map[string][]string
			var got time.Time
			if err := r.Scan(&id, &s, &a, &m, &got); err != nil {
				t.Fatal(err)
			}
			want := strings.Repeat("x", n%97) + "\x00\n"
			if id != uint64(n) || s != want || len(a) != 2 || a[1] != want || m["k"][0] != want || !got.Equal(at) {
				t.Fatalf("row %d: %d %q %q %q %v", n, id, s, a, m, got)
			}
		}
		if err := r.Err(); err != nil || n != rows {
			t.Fatalf("read %d rows, %v; want %d", n, err, rows)
		}
	})
	t.Run("parameters and settings", func(t *testing.T) {
		sctx := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}),
			clickhouse.WithParameters(clickhouse.Parameters{"ids": "[1,2,3]", "s": "o'clock\\\\x"}))
		var n uint64
		var threads uint8
		var s string
		if err := c.QueryRow(sctx, "SELECT count(), {s:String}, toUInt8(getSetting('max_threads')) FROM d.t WHERE id IN "+
			"{ids:Array(UInt64)}").Scan(&n, &s, &threads); err != nil {
			t.Fatal(err)
		}
		if n != 3 || s != `o'clock\x` || threads != 1 {
			t.Fatalf("got %d %q %d", n, s, threads)
		}
		if err := c.QueryRow(ctx, "SELECT toUInt8(getSetting('max_threads'))").Scan(&threads); err != nil || threads != 2 {
			t.Fatalf("a setting leaked into the next statement: max_threads %d, %v", threads, err)
		}
	})
	t.Run("no rows", func(t *testing.T) {
		r, err := c.Query(ctx, "SELECT id FROM d.t WHERE id = 1000000")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Next() || r.Err() != nil {
			t.Fatal("rows where none are", r.Err())
		}
	})
	t.Run("describe cannot be streamed", func(t *testing.T) {
		r, err := c.Query(ctx, "DESCRIBE TABLE d.t")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if !r.Next() {
			t.Fatal("no rows", r.Err())
		}
	})
	t.Run("exception before data", func(t *testing.T) {
		err := c.Exec(ctx, "SELECT * FROM d.missing")
		var x *clickhouse.Exception
		if !errors.As(err, &x) || x.Code != 60 {
			t.Fatalf("got %v, want exception 60", err)
		}
	})
	t.Run("exception in the middle of a stream", func(t *testing.T) {
		r, err := c.Query(ctx, "SELECT throwIf(number = 3000000, 'planted') FROM numbers(5000000) SETTINGS max_block_size = 1000, "+
			"max_threads = 1")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for r.Next() {
		}
		var x *clickhouse.Exception
		if !errors.As(r.Err(), &x) || !strings.Contains(x.Message, "planted") {
			t.Fatalf("got %v, want the planted exception", r.Err())
		}
	})
	t.Run("a refused insert leaves nothing", func(t *testing.T) {
		if err := c.Exec(ctx, "CREATE TABLE d.c (id UInt64, CONSTRAINT small CHECK id < 10) ENGINE = MergeTree ORDER BY id"); err != nil {
			t.Fatal(err)
		}
		b, err := c.PrepareBatch(ctx, "INSERT INTO d.c")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if err := b.Append(uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
		var x *clickhouse.Exception
		if err := b.Send(); !errors.As(err, &x) || x.Code != 469 {
			t.Fatalf("got %v, want exception 469", err)
		}
		var n uint64
		if err := c.QueryRow(ctx, "SELECT count() FROM d.c").Scan(&n); err != nil || n != 0 {
			t.Fatalf("%d rows left, %v", n, err)
		}
	})
	t.Run("cancel kills the statement", func(t *testing.T) {
		cctx, cancel := context.WithCancel(ctx)
		go cancel()
		var n uint64
		err := c.QueryRow(cctx, "SELECT count() FROM system.numbers").Scan(&n)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
	})
	t.Run("rows closed early free the connection", func(t *testing.T) {
		for range 20 {
			r, err := c.Query(ctx, "SELECT number FROM system.numbers LIMIT 10000000")
			if err != nil {
				t.Fatal(err)
			}
			r.Next()
			cctx, cancel := context.WithCancel(ctx)
			cancel()
			_ = cctx
			r.Close()
		}
	})
}

// TestRecoverNil shows that a nil dereference stays a Go panic with the engine loaded.
func TestRecoverNil(t *testing.T) {
	open(t, t.TempDir())
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	var p *struct{ x int }
	_ = p.x
}

func TestOpenErrors(t *testing.T) {
	need(t)
	t.Run("missing library", func(t *testing.T) {
		_, err := embedded.Open(embedded.Config{Path: t.TempDir(), Library: filepath.Join(t.TempDir(), "no.so")})
		wantError(t, err, embedded.ErrNoLibrary, "fetch-libchdb.sh")
	})
	t.Run("library named by the environment", func(t *testing.T) {
		t.Setenv(embedded.EnvLibrary, "/nowhere/libchdb.so")
		_, err := embedded.Open(embedded.Config{Path: t.TempDir()})
		wantError(t, err, embedded.ErrNoLibrary, embedded.EnvLibrary)
	})
	t.Run("not a library", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "libchdb.so")
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := embedded.Open(embedded.Config{Path: t.TempDir(), Library: path})
		wantError(t, err, embedded.ErrUnsuitable, path)
	})
	t.Run("locked directory", func(t *testing.T) {
		dir := t.TempDir()
		open(t, dir)
		_, err := embedded.Open(embedded.Config{Path: dir})
		wantError(t, err, embedded.ErrLocked, dir)
	})
	t.Run("path below a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := embedded.Open(embedded.Config{Path: filepath.Join(file, "data")})
		wantError(t, err, embedded.ErrUnwritable, file)
	})
}

// TestReopen opens the same directory twice in a row: Close must have freed it.
func TestReopen(t *testing.T) {
	need(t)
	dir := t.TempDir()
	for i := range 2 {
		e, err := embedded.Open(embedded.Config{Path: dir})
		if err != nil {
			t.Fatal(i, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(i, err)
		}
	}
}

func wantError(t *testing.T, err, kind error, part string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), part) {
		t.Fatalf("got %v; want %v mentioning %q", err, kind, part)
	}
}

// TestSlim takes the program's unused pages out of the process, and expects the engine to go on.
func TestSlim(t *testing.T) {
	e := open(t, t.TempDir())
	c := connect(t, e)
	before := mapped(t)
	if err := e.Slim(); err != nil {
		t.Fatal(err)
	}
	if after := mapped(t); after > before-(16<<20) {
		t.Errorf("%d MB of files are mapped, before %d", after>>20, before>>20)
	}
	var sum uint64
	if err := c.QueryRow(context.Background(), "SELECT sum(number) FROM numbers(1000)").Scan(&sum); err != nil || sum != 499500 {
		t.Errorf("got %d, %v", sum, err)
	}
}

// mapped returns how many bytes of files are mapped into this process.
func mapped(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("NOT RUN: the system does not tell what is mapped")
	}
	_, rest, _ := strings.Cut(string(text), "RssFile:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
