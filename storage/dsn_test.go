package storage_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/test/chserver/chservertest"
)

// TestDSN runs the store against a server over HTTPS: migrations, insert, repeat, recovery,
// reading, and a reader that may not write.
func TestDSN(t *testing.T) {
	ctx := context.Background()
	server := chservertest.Start(t, chservertest.TLS)
	url := server.DSN(chservertest.Owner, chservertest.OwnerPassword)
	s := served(t, server)
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
	r, err := storage.Open(ctx, storage.Config{DSN: url, TLS: server.Roots(), ReadOnly: true})
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
		"no URL":             {storage.Config{DSN: "http://u:se cret@h:8123"}, "invalid DSN: want"},
		"nobody listens":     {storage.Config{DSN: "http://127.0.0.1:1"}, "connect"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := storage.Open(context.Background(), tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.part) || strings.Contains(err.Error(), "cret") {
				t.Fatalf("got %v, want %q and no password", err, tc.part)
			}
		})
	}
}
