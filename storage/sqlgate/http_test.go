package sqlgate_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/sqlgate"
)

// listen serves on loopback until the test ends and returns host and port.
func listen(t *testing.T, s *http.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return l.Addr().String()
}

// request makes a request with the password.
func (k *kit) request(t *testing.T, method, target string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, k.url+target, body)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	return req
}

// testArguments: the other ways of asking.
func testArguments(t *testing.T, k *kit) {
	t.Run("get", func(t *testing.T) {
		a := k.do(t, k.request(t, http.MethodGet, "/?query=SELECT+1&query_id=q-7", nil))
		if a.text != "1\n" || a.header.Get("X-ClickHouse-Query-Id") != "q-7" || a.header.Get("X-ClickHouse-Format") != "TabSeparated" {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("nothing asked", func(t *testing.T) {
		if a := k.do(t, k.request(t, http.MethodGet, "/", nil)); a.text != "Ok.\n" {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("headers", func(t *testing.T) {
		req := k.request(t, http.MethodPost, "/", strings.NewReader("SELECT 1 AS a"))
		req.Header.Set("X-ClickHouse-Format", "JSONEachRow")
		req.Header.Set("X-ClickHouse-Database", "retrial")
		if a := k.do(t, req); a.text != "{\"a\":1}\n" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/x-ndjson") {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("packed body and answer", func(t *testing.T) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte("SELECT 'packed'"))
		z.Close()
		req := k.request(t, http.MethodPost, "/?enable_http_compression=1", &packed)
		req.Header.Set("Content-Encoding", "gzip")
		req.Header.Set("Accept-Encoding", "br, gzip")
		a := k.do(t, req)
		if a.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%+v", a)
		}
		r, err := gzip.NewReader(strings.NewReader(a.text))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != "packed\n" {
			t.Fatalf("%q %v", text, err)
		}
	})
	t.Run("a body that unpacks to too much", func(t *testing.T) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(bytes.Repeat([]byte(" "), 8<<20))
		z.Close()
		req := k.request(t, http.MethodPost, "/", &packed)
		req.Header.Set("Content-Encoding", "gzip")
		if a := k.do(t, req); a.code != "36" {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("external tables", func(t *testing.T) {
		req := k.request(t, http.MethodPost, "/?query=SELECT+1&x_structure=a+UInt8", strings.NewReader("--b\r\n\r\n--b--"))
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		if a := k.do(t, req); a.code != "497" {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("an error of the engine keeps its code", func(t *testing.T) {
		if a := k.ask(t, "SELECT nothere FROM events"); a.code != "47" || a.status != http.StatusBadRequest {
			t.Fatalf("%+v", a)
		}
		if a := k.ask(t, "SELECT FROM WHERE"); a.code != "62" || strings.Contains(a.text, "formatQuery") {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("a parameter that is not given", func(t *testing.T) {
		if a := k.ask(t, "SELECT {x:String}"); a.code != "456" {
			t.Fatalf("%+v", a)
		}
	})
}

// testCallers: nobody is answered without the password, and no page of another site is.
func testCallers(t *testing.T, k *kit) {
	for _, c := range []struct {
		name string
		set  func(*http.Request)
		want string
	}{
		{"none", func(r *http.Request) { r.Header.Del("Authorization") }, "516"},
		{"wrong password", func(r *http.Request) { r.SetBasicAuth(user, "x") }, "516"},
		{"wrong user", func(r *http.Request) { r.SetBasicAuth("default", password) }, "516"},
		{"empty password", func(r *http.Request) { r.SetBasicAuth(user, "") }, "516"},
		{"the two run together", func(r *http.Request) { r.SetBasicAuth(user+"\x00"+password, "") }, "516"},
		{"headers", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("X-ClickHouse-User", user)
			r.Header.Set("X-ClickHouse-Key", password)
		}, ""},
		{"headers with the wrong key", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("X-ClickHouse-User", user)
			r.Header.Set("X-ClickHouse-Key", "x")
		}, "516"},
		{"both ways", func(r *http.Request) { r.Header.Set("X-ClickHouse-User", user) }, "516"},
		{"in the address", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery += "&user=" + user + "&password=" + url.QueryEscape(password)
		}, "516"},
		{"a page of another site", func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example") }, "497"},
		{"an image on another site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, "497"},
		{"another method", func(r *http.Request) { r.Method = http.MethodPut }, "36"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := k.request(t, http.MethodPost, "/?query=SELECT+1", nil)
			c.set(req)
			a := k.do(t, req)
			if a.code != c.want || c.want == "516" && (a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") == "") {
				t.Fatalf("%+v", a)
			}
			if strings.Contains(a.text, password) {
				t.Fatal("the answer shows the password")
			}
		})
	}
	t.Run("ping needs none", func(t *testing.T) {
		req := k.request(t, http.MethodGet, "/ping", nil)
		req.Header.Del("Authorization")
		if a := k.do(t, req); a.status != http.StatusOK || a.text != "Ok.\n" {
			t.Fatalf("%+v", a)
		}
	})
}

// open connects clickhouse-go as Grafana's data source does: database/sql over HTTP.
func (k *kit) open(t *testing.T, method clickhouse.CompressionMethod) *sql.DB {
	t.Helper()
	db := clickhouse.OpenDB(&clickhouse.Options{
		Addr: []string{strings.TrimPrefix(k.url, "http://")}, Protocol: clickhouse.HTTP,
		Auth:        clickhouse.Auth{Database: "retrial", Username: user, Password: password},
		Compression: &clickhouse.Compression{Method: method},
		ReadTimeout: time.Minute,
	})
	t.Cleanup(func() { db.Close() })
	return db
}

// testDriver: the data source's driver works as it is, however it packs.
func testDriver(t *testing.T, k *kit) {
	for _, method := range []clickhouse.CompressionMethod{clickhouse.CompressionGZIP, clickhouse.CompressionLZ4, clickhouse.CompressionZSTD,
		clickhouse.CompressionNone} {
		t.Run(method.String(), func(t *testing.T) {
			db := k.open(t, method)
			if err := db.Ping(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel() // the driver sends the deadline as a setting
			rows, err := db.QueryContext(ctx, "SELECT number, toString(number), [number], now() FROM numbers(100000)")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			n := uint64(0)
			for ; rows.Next(); n++ {
				var a uint64
				var s string
				var list []uint64
				var at time.Time
				if err := rows.Scan(&a, &s, &list, &at); err != nil {
					t.Fatal(err)
				}
				if a != n || len(list) != 1 || list[0] != n || at.IsZero() {
					t.Fatalf("row %d: %d %q %v %v", n, a, s, list, at)
				}
			}
			if err := rows.Err(); err != nil || n != 100000 {
				t.Fatalf("%d rows, %v", n, err)
			}
			t.Run("named parameters", func(t *testing.T) {
				var s string
				hostile := "it's \\ \"x\"\n\t'; DROP TABLE events"
				if err := db.QueryRowContext(ctx, "SELECT {s:String}", clickhouse.Named("s", hostile)).Scan(&s); err != nil {
					t.Fatal(err)
				}
			})
			t.Run("no rows", func(t *testing.T) {
				err := db.QueryRowContext(ctx, "SELECT 1 WHERE 0").Scan(new(uint8))
				if !errors.Is(err, sql.ErrNoRows) {
					t.Fatal(err)
				}
			})
			t.Run("refusal", func(t *testing.T) {
				_, err := db.QueryContext(ctx, "SELECT file('/etc/passwd')")
				var x *clickhouse.Exception
				if !errors.As(err, &x) || x.Code != 497 || !strings.Contains(x.Message, "file") {
					t.Fatalf("got %v, want exception 497", err)
				}
			})
			t.Run("exception in the middle", func(t *testing.T) {
				rows, err := db.QueryContext(ctx, "SELECT throwIf(number = 900000, 'planted'), toString(number) FROM numbers(1000000)")
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				for rows.Next() {
				}
				var x *clickhouse.Exception
				if !errors.As(rows.Err(), &x) || x.Code != 395 {
					t.Fatalf("got %v, want the planted exception", rows.Err())
				}
			})
			if _, err := db.ExecContext(ctx, "INSERT INTO volume (cluster) VALUES ('x')"); err == nil {
				t.Fatal("an insert went through")
			}
		})
	}
}

// testRecords: every query leaves who asked what and what came of it.
func testRecords(t *testing.T, k *kit) {
	for _, c := range []struct {
		name, sql string
		code      int
	}{
		{"answered", "SELECT 12345", 0},
		{"refused", "SELECT file('/etc/passwd')", 497},
		{"failed", "SELECT nothere", 47},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.ask(t, c.sql)
			r := k.last(t)
			if r.Query != c.sql || r.Code != c.code || r.User != user || r.Remote == "" || r.At.IsZero() ||
				(r.Error == "") != (c.code == 0) {
				t.Fatalf("%+v", r)
			}
			if c.code == 0 && r.Bytes != int64(len("12345\n")) {
				t.Fatalf("%d bytes", r.Bytes)
			}
		})
	}
	t.Run("not authenticated", func(t *testing.T) {
		req := k.request(t, http.MethodPost, "/?query=SELECT+1", nil)
		req.SetBasicAuth("mallory", "x")
		k.do(t, req)
		if r := k.last(t); r.Code != 516 || r.User != "" || r.Query != "" {
			t.Fatalf("%+v", r)
		}
	})
}

// TestLimits: queries without end are ended, by time, memory, result or depth, one after the
// other and all at once; the gate answers the next one.
func TestLimits(t *testing.T) {
	k := newKit(t, func(c *sqlgate.Config) {
		c.Time, c.Memory, c.Rows, c.Bytes, c.Concurrent, c.Waiting = 2*time.Second, 64<<20, 200_000, 4<<20, 2, 1
	})
	for _, c := range []struct {
		name, sql string
		args      []string
		codes     string // space separated
	}{
		{name: "numbers", sql: "SELECT count() FROM numbers(1000000000000000000) WHERE NOT ignore(sipHash64(number))", codes: "159"},
		{name: "numbers of the system", sql: "SELECT sum(sipHash64(number)) FROM system.numbers", codes: "159"},
		{name: "cross join", sql: "SELECT sum(a.number * b.number) FROM numbers(100000000) AS a, numbers(100000000) AS b",
			codes: "159 241"},
		{name: "recursion", sql: "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count() FROM r",
			codes: "306 159"},
		{name: "recursion that doubles", sql: "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + arrayJoin([1, 2]) FROM r) SELECT " +
			"count() FROM r", codes: "306 159 241"},
		{name: "memory of a group", sql: "SELECT groupArray(number) FROM numbers(1000000000)", codes: "241"},
		{name: "memory of a text", sql: "SELECT length(repeat('x', 1000000000)) FROM numbers(1000)", codes: "241 131"},
		{name: "memory of a sort", sql: "SELECT toString(number) AS s FROM numbers(1000000000) ORDER BY s LIMIT 1 OFFSET 100000000",
			codes: "241 159"},
		{name: "memory of distinct keys", sql: "SELECT uniqExact(sipHash64(number)) FROM numbers(1000000000)", codes: "241 159"},
		{name: "rows of a result", sql: "SELECT number FROM numbers(1000000000)", codes: "396"},
		{name: "rows of a streamed result", sql: "SELECT number FROM numbers(1000000000)", args: []string{"default_format", "Native"},
			codes: "396"},
		{name: "bytes of a result", sql: "SELECT repeat('x', 1000) FROM numbers(100000)", codes: "396 241"},
		{name: "time that is raised", sql: "SELECT sum(sipHash64(number)) FROM system.numbers", args: []string{"max_execution_time", "600"},
			codes: "159"},
		{name: "time that is taken away", sql: "SELECT sum(sipHash64(number)) FROM system.numbers",
			args: []string{"max_execution_time", "0"}, codes: "159"},
		{name: "memory that is raised", sql: "SELECT groupArray(number) FROM numbers(1000000000)", args: []string{"max_memory_usage", "0"},
			codes: "241"},
		{name: "depth", sql: "SELECT " + strings.Repeat("(SELECT ", 500) + "1" + strings.Repeat(")", 500), codes: "36 62 158 162 167 " +
			"168 306 497"},
		{name: "brackets", sql: "SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), codes: "36 62 167 168 306"},
		{name: "length", sql: "SELECT '" + strings.Repeat("x", 300<<10) + "'", codes: "36"},
		{name: "nodes", sql: "SELECT " + strings.Repeat("1,", 60000) + "1", codes: "497 168 62"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := k.ask(t, c.sql, c.args...)
			code := a.code
			if i := strings.Index(a.text, "__exception__"); i >= 0 { // after some data
				_, rest, _ := strings.Cut(a.text[i:], "Code: ")
				code, _, _ = strings.Cut(rest, ".")
			}
			if code == "" || !strings.Contains(" "+c.codes+" ", " "+code+" ") {
				t.Fatalf("code %q, want one of %s: %d %.300s", code, c.codes, a.status, a.text)
			}
			if a := k.ask(t, "SELECT 1"); a.text != "1\n" {
				t.Fatalf("afterwards: %+v", a)
			}
		})
	}
	t.Run("as many as may run and wait", func(t *testing.T) {
		hold := make(chan struct{})
		k.onQuery(func(sql string) {
			if sql == endless {
				<-hold
			}
		})
		defer k.onQuery(nil)
		answers := make(chan answer)
		for range 8 {
			go func() { answers <- k.ask(t, endless) }()
		}
		for range 5 { // 2 run, 1 waits
			if a := <-answers; a.code != "202" {
				t.Errorf("%+v", a)
			}
		}
		close(hold)
		for range 3 {
			if a := <-answers; a.code != "159" {
				t.Errorf("%+v", a)
			}
		}
	})
}

// endless reads for as long as it may.
const endless = "SELECT sum(sipHash64(number)) FROM system.numbers"

// TestCallerGoesAway: the query of a caller who goes away ends, long before its time is up.
func TestCallerGoesAway(t *testing.T) {
	k := newKit(t, func(c *sqlgate.Config) { c.Time = 10 * time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k.onQuery(func(sql string) {
		if sql == endless {
			cancel()
		}
	})
	n := k.recorded()
	req := k.request(t, http.MethodPost, "/", strings.NewReader(endless)).WithContext(ctx)
	res, err := k.client.Do(req)
	if err == nil {
		res.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if r := k.record(n); r.Code != 394 {
		t.Fatalf("%+v", r)
	}
	k.onQuery(nil)
	if a := k.ask(t, "SELECT 1"); a.text != "1\n" {
		t.Fatalf("afterwards: %+v", a)
	}
}
