package storage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// serve puts the embedded engine behind a real HTTP listener, as a server by DSN is.
func serve(t *testing.T, engine *embedded.Engine) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := engine.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		for k, v := range res.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body) // a client that went away is its own business
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestDSN runs the store against a server over HTTP: migrations, insert, repeat, recovery,
// reading, and a reader that may not write.
func TestDSN(t *testing.T) {
	storagetest.Need(t)
	ctx := context.Background()
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	url := serve(t, engine)
	s, err := storage.Open(ctx, storage.Config{DSN: url})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in := rows(t, "c", 0)
	for range 2 {
		insert(t, s, "a", in)
		if err := s.Recover(ctx, 0, 1, days(in)); err != nil {
			t.Fatal(err)
		}
		if v := consistent(t, s); v.Events != int64(len(in)) {
			t.Fatalf("%+v", v)
		}
	}
	if got := everything(t, s, in); len(got) != len(in) {
		t.Fatalf("%d of %d rows", len(got), len(in))
	}
	r, err := storage.Open(ctx, storage.Config{DSN: url, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if list, err := r.Clusters(ctx); err != nil || len(list) != 1 {
		t.Fatalf("a reader sees %d clusters, %v", len(list), err)
	}
	var x *clickhouse.Exception
	if err := r.Insert(ctx, "b", in); !errors.As(err, &x) || x.Code != 164 {
		t.Fatalf("a reader's insert: %v, want exception 164 (readonly)", err)
	}
}

func TestOpenErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  storage.Config
		part string
	}{
		"nothing given":      {storage.Config{}, "neither"},
		"both given":         {storage.Config{DSN: "http://h", Transport: http.DefaultTransport}, "both"},
		"native protocol":    {storage.Config{DSN: "clickhouse://h:9000"}, "http://"},
		"a hostile database": {storage.Config{DSN: "http://h", Database: "a`; DROP"}, "letters"},
		"nobody listens":     {storage.Config{DSN: "http://127.0.0.1:1"}, "connect"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := storage.Open(context.Background(), tc.cfg); err == nil || !strings.Contains(err.Error(), tc.part) {
				t.Fatalf("got %v, want %q", err, tc.part)
			}
		})
	}
}
