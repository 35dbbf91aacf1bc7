package chserver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/retrial-io/retrial/test/chserver/chservertest"
)

// TestMain fails the run when a goroutine outlives its test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask posts a statement as curl would and returns the status and the answer.
func ask(t *testing.T, method, address, sql string, head http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range head {
		req.Header[k] = v
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

// TestLogin tries every way a client can say who it is.
func TestLogin(t *testing.T) {
	s := chservertest.Start(t)
	base := "http://" + s.Addr() + "/"
	basic := func(user, password string) string {
		u := url.URL{Scheme: "http", Host: s.Addr(), Path: "/", User: url.UserPassword(user, password)}
		return u.String()
	}
	keys := func(user, password string) http.Header {
		return http.Header{"X-Clickhouse-User": {user}, "X-Clickhouse-Key": {password}}
	}
	failed := "Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)"
	for name, tc := range map[string]struct {
		address string
		head    http.Header
		status  int
		says    string
	}{
		"basic":   {basic(chservertest.Owner, chservertest.OwnerPassword), nil, 200, "1"},
		"headers": {base, keys(chservertest.Owner, chservertest.OwnerPassword), 200, "1"},
		"address": {base + "?" + url.Values{"user": {chservertest.Owner}, "password": {chservertest.OwnerPassword}}.Encode(),
			nil, 200, "1"},
		"wrong password": {basic(chservertest.Owner, "x"), nil, 403, "Code: 516. DB::Exception: retrial: " + failed},
		"another's password": {base, keys(chservertest.Reader, chservertest.OwnerPassword), 403, "Code: 516. DB::Exception: reader: " +
			failed},
		"unknown user": {base, keys("nobody", ""), 403, "Code: 516. DB::Exception: nobody: " + failed},
		"nobody":       {base, nil, 403, "Code: 516. DB::Exception: default: " + failed},
		"two ways": {basic(chservertest.Owner, chservertest.OwnerPassword), keys(chservertest.Owner, chservertest.OwnerPassword),
			403, "Code: 516."},
		"ping needs no user": {base + "ping", nil, 200, "Ok."},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := ask(t, http.MethodPost, tc.address, "SELECT 1", tc.head)
			if status != tc.status || !strings.HasPrefix(text, tc.says) {
				t.Fatalf("got %d %s; want %d %s", status, text, tc.status, tc.says)
			}
		})
	}
}

// TestRights shows the engine's own refusals for those who may not write.
func TestRights(t *testing.T) {
	s := chservertest.Start(t)
	as := func(user, password string, more ...string) string {
		args := url.Values{"user": {user}, "password": {password}}
		for i := 0; i < len(more); i += 2 {
			args.Set(more[i], more[i+1])
		}
		return "http://" + s.Addr() + "/?" + args.Encode()
	}
	owner := as(chservertest.Owner, chservertest.OwnerPassword)
	if status, text := ask(t, http.MethodPost, owner, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a", nil); status != 200 {
		t.Fatal(status, text)
	}
	reader := func(more ...string) string {
		return as(chservertest.Reader, chservertest.ReaderPassword, more...)
	}
	strict := func(more ...string) string {
		return as(chservertest.Strict, chservertest.StrictPassword, more...)
	}
	for name, tc := range map[string]struct {
		method, address, sql string
		status               int
		says                 string
	}{
		"owner inserts": {"POST", as(chservertest.Owner, chservertest.OwnerPassword, "query", "INSERT INTO t FORMAT CSV"),
			"7", 200, ""},
		"owner by GET": {"GET", as(chservertest.Owner, chservertest.OwnerPassword, "query", "DROP TABLE t"), "", 403,
			"Code: 164. "},
		"reader reads":                 {"POST", reader(), "SELECT count() < 2 FROM t", 200, "1"},
		"reader sets":                  {"POST", reader("max_threads", "1"), "SELECT getSetting('max_threads')", 200, "1"},
		"reader inserts data":          {"POST", reader("query", "INSERT INTO t FORMAT CSV"), "7", 403, "Code: 164. "},
		"reader inserts values":        {"POST", reader(), "INSERT INTO t VALUES (7)", 403, "Code: 164. "},
		"reader creates":               {"POST", reader(), "CREATE DATABASE d", 403, "Code: 164. "},
		"reader raises himself":        {"POST", reader("readonly", "0"), "DROP TABLE t", 403, "Code: 164. "},
		"reader raises himself in SQL": {"POST", reader(), "SET readonly = 0", 403, "Code: 164. "},
		"reader kills":                 {"POST", reader(), "SELECT 1 SETTINGS readonly = 0", 403, "Code: 164. "},
		"strict reads":                 {"POST", strict(), "SELECT count() < 2 FROM t", 200, "1"},
		"strict sets": {"POST", strict("max_threads", "1"), "SELECT 1", 403,
			"Code: 164. DB::Exception: Cannot modify 'max_threads' setting in readonly mode. (READONLY)"},
		"strict inserts":               {"POST", strict("query", "INSERT INTO t FORMAT CSV"), "7", 403, "Code: 164. "},
		"a format of his own":          {"POST", reader("default_format", "JSONCompactEachRow"), "SELECT 1, 'a'", 200, `[1, "a"]`},
		"a format in the statement":    {"POST", owner, "SELECT 1 AS n FORMAT JSONEachRow", 200, `{"n":1}`},
		"a parameter":                  {"POST", reader("param_a", "x'y"), "SELECT {a:String}", 200, `x\'y`},
		"no statement":                 {"POST", owner, "", 200, "Ok."},
		"a statement in two":           {"POST", as(chservertest.Owner, chservertest.OwnerPassword, "query", "SELECT"), "2", 200, "2"},
		"a statement that is none":     {"POST", owner, "SELEC 1", 400, "Code: 62. "},
		"a table that is not there":    {"POST", reader(), "SELECT * FROM gone", 404, "Code: 60. "},
		"a database that is not there": {"POST", reader("database", "gone"), "SELECT 1", 404, "Code: 81. "},
		"a setting that is not there":  {"POST", reader("gone", "1"), "SELECT 1", 404, "Code: 115. "},
		"an error in the middle of data": {"POST", owner, "SELECT throwIf(number = 3000000, 'planted') FROM numbers(5000000) SETTINGS " +
			"max_block_size = 1000, max_threads = 1 FORMAT Native", 500, "Code: 395"},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := ask(t, tc.method, tc.address, tc.sql, nil)
			if status != tc.status || !strings.HasPrefix(text, tc.says) {
				t.Fatalf("got %d %s; want %d %s", status, text, tc.status, tc.says)
			}
		})
	}
}

// connect opens the driver's pool.
func connect(t *testing.T, s *chservertest.Server, change func(*clickhouse.Options)) driver.Conn {
	t.Helper()
	opt := &clickhouse.Options{
		Protocol: clickhouse.HTTP, Addr: []string{s.Addr()},
		Auth: clickhouse.Auth{Username: chservertest.Owner, Password: chservertest.OwnerPassword},
	}
	if s.CAFile != "" {
		opt.TLS = s.Roots()
	}
	if change != nil {
		change(opt)
	}
	c, err := clickhouse.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestDriver runs the driver against the server in every way it can be set: plain, under
// TLS, with packed blocks, as a user who may only read.
func TestDriver(t *testing.T) {
	for name, tc := range map[string]struct {
		tls    bool
		change func(*clickhouse.Options)
		reads  bool // may only read
	}{
		"plain":          {},
		"TLS":            {tls: true},
		"LZ4":            {change: pack(clickhouse.CompressionLZ4)},
		"ZSTD under TLS": {tls: true, change: pack(clickhouse.CompressionZSTD)},
		"reader":         {change: as(chservertest.Reader, chservertest.ReaderPassword), reads: true},
		"reader, packed": {change: both(as(chservertest.Reader, chservertest.ReaderPassword), pack(clickhouse.CompressionLZ4)),
			reads: true},
		"reader over TLS": {tls: true, change: as(chservertest.Reader, chservertest.ReaderPassword), reads: true},
	} {
		t.Run(name, func(t *testing.T) {
			var options []chservertest.Option
			if tc.tls {
				options = append(options, chservertest.TLS)
			}
			s := chservertest.Start(t, options...)
			fill(t, connect(t, s, nil))
			c := connect(t, s, tc.change)
			if tc.reads {
				err := c.Exec(t.Context(), "INSERT INTO t SELECT 1, 'x'")
				var x *clickhouse.Exception
				if !errors.As(err, &x) || x.Code != 164 {
					t.Fatalf("an insert of one who may only read: %v", err)
				}
				_, err = c.PrepareBatch(t.Context(), "INSERT INTO t")
				if err != nil {
					t.Fatal(err) // it asks for the columns only
				}
			} else {
				fill(t, c)
			}
			read(t, c)
		})
	}
}

func pack(method clickhouse.CompressionMethod) func(*clickhouse.Options) {
	return func(o *clickhouse.Options) { o.Compression = &clickhouse.Compression{Method: method} }
}

func as(user, password string) func(*clickhouse.Options) {
	return func(o *clickhouse.Options) { o.Auth.Username, o.Auth.Password = user, password }
}

func both(a, b func(*clickhouse.Options)) func(*clickhouse.Options) {
	return func(o *clickhouse.Options) { a(o); b(o) }
}

// filled is how many rows fill leaves in the table: more than a chunk of an insert.
const filled = 100_000

// fill makes the table anew with the driver's batches.
func fill(t *testing.T, c driver.Conn) {
	t.Helper()
	ctx := t.Context()
	for _, sql := range []string{"DROP TABLE IF EXISTS t", "CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a"} {
		if err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	b, err := c.PrepareBatch(ctx, "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	for i := range filled {
		if err := b.Append(uint64(i), fmt.Sprint("row ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Send(); err != nil {
		t.Fatal(err)
	}
}

// read reads what fill left, the driver's parameters, an error before and one amid the data.
func read(t *testing.T, c driver.Conn) {
	t.Helper()
	rows, err := c.Query(t.Context(), "SELECT a, s FROM t ORDER BY a")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var a uint64
		var s string
		if err := rows.Scan(&a, &s); err != nil || a != uint64(n) || s != fmt.Sprint("row ", n) {
			t.Fatalf("row %d: %d %q, %v", n, a, s, err)
		}
	}
	if rows.Err() != nil || n != filled {
		t.Fatalf("read %d rows of %d: %v", n, filled, rows.Err())
	}
	var text string
	ctx := clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{"v": "o'clock"}))
	if err := c.QueryRow(ctx, "SELECT {v:String}").Scan(&text); err != nil || text != "o'clock" {
		t.Fatalf("got %q, %v", text, err)
	}
	var x *clickhouse.Exception
	if err := c.Exec(t.Context(), "SELECT * FROM gone"); !errors.As(err, &x) || x.Code != 60 {
		t.Fatalf("got %v, want exception 60", err)
	}
	// The threshold lies past what is sent at once, so the status has gone out as 200.
	late, err := c.Query(t.Context(), "SELECT number, throwIf(number = 900000, 'planted') FROM numbers(1000000)")
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	for late.Next() {
	}
	if !errors.As(late.Err(), &x) || !strings.Contains(x.Message, "planted") {
		t.Fatalf("got %v, want the planted exception", late.Err())
	}
}

// TestRestart breaks a server between and amid queries: what was acknowledged is there again,
// on the same address, and the driver's pool finds it.
func TestRestart(t *testing.T) {
	s := chservertest.Start(t, chservertest.TLS)
	c := connect(t, s, nil)
	fill(t, c)
	s.Stop()
	if err := c.Ping(t.Context()); err == nil {
		t.Fatal("a stopped server answers")
	}
	s.Resume()
	read(t, c)
}

// TestAtOnce has many clients of two users read and write at the same time.
func TestAtOnce(t *testing.T) {
	s := chservertest.Start(t)
	owner := connect(t, s, nil)
	reader := connect(t, s, as(chservertest.Reader, chservertest.ReaderPassword))
	if err := owner.Exec(t.Context(), "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a"); err != nil {
		t.Fatal(err)
	}
	const writers, batches, rows = 4, 5, 1000
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for range batches {
				b, err := owner.PrepareBatch(t.Context(), "INSERT INTO t")
				if err == nil {
					for i := range rows {
						err = errors.Join(err, b.Append(uint64(w*rows+i)))
					}
					err = errors.Join(err, b.Send())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		wait.Go(func() {
			for range batches {
				var n uint64
				if err := reader.QueryRow(t.Context(), "SELECT count() FROM t").Scan(&n); err != nil || n%rows != 0 {
					t.Errorf("read %d rows, %v: inserts are seen whole or not at all", n, err)
				}
			}
		})
	}
	wait.Wait()
	var n uint64
	if err := reader.QueryRow(t.Context(), "SELECT count() FROM t").Scan(&n); err != nil || n != writers*batches*rows {
		t.Fatalf("%d rows, %v", n, err)
	}
}

// TestCancel ends a query whose client has gone: the server runs it no more.
func TestCancel(t *testing.T) {
	s := chservertest.Start(t)
	for name, change := range map[string]func(*clickhouse.Options){"pooled": nil, "session": as(chservertest.Reader,
		chservertest.ReaderPassword)} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, s, change)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				var n uint64
				ended <- c.QueryRow(ctx, "SELECT count() FROM system.numbers").Scan(&n)
			}()
			watch := connect(t, s, nil)
			running := func() (n uint64) {
				if err := watch.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '%FROM system.numbers%' AND "+
					"query NOT LIKE '%processes%'").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			for running() == 0 {
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			for running() != 0 {
			}
		})
	}
}

// TestUntrusted shows what a client is told that does not trust the server's authority.
func TestUntrusted(t *testing.T) {
	s := chservertest.Start(t, chservertest.TLS)
	c := connect(t, s, func(o *clickhouse.Options) { o.TLS = &tls.Config{MinVersion: tls.VersionTLS12} })
	var unknown *tls.CertificateVerificationError
	if err := c.Ping(t.Context()); !errors.As(err, &unknown) {
		t.Fatalf("got %v, want an error of the certificate", err)
	}
}
