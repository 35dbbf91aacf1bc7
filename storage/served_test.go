package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/test/chserver/chservertest"
)

// served opens the store of a server's owner, closed when the test ends.
func served(t *testing.T, server *chservertest.Server) *storage.Store {
	t.Helper()
	cfg := storage.Config{DSN: server.DSN(chservertest.Owner, chservertest.OwnerPassword)}
	if server.CAFile != "" {
		cfg.TLS = server.Roots()
	}
	s, err := storage.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestServerRefuses shows what is said when a server cannot be used: whose fault it is and
// what to do, and never the password.
func TestServerRefuses(t *testing.T) {
	server := chservertest.Start(t, chservertest.TLS)
	full := server.DSN(chservertest.Owner, chservertest.OwnerPassword)
	for name, tc := range map[string]struct {
		cfg  storage.Config
		says []string
	}{
		"wrong password": {storage.Config{DSN: server.DSN(chservertest.Owner, "wr0ng"), TLS: server.Roots()},
			[]string{`refuses user "retrial"`, "--clickhouse-password-file", "516"}},
		"no password": {storage.Config{DSN: server.DSN(chservertest.Owner, ""), TLS: server.Roots()},
			[]string{`refuses user "retrial"`, "--clickhouse-password-file"}},
		"unknown user": {storage.Config{DSN: server.DSN("nobody", "wr0ng"), TLS: server.Roots()},
			[]string{`refuses user "nobody"`}},
		"no user": {storage.Config{DSN: strings.Replace(full, full[len("https://"):strings.Index(full, "@")+1], "", 1),
			TLS: server.Roots()},
			[]string{`refuses user "default"`}},
		"authority not trusted": {storage.Config{DSN: full}, []string{"not trusted", "--clickhouse-ca-file"}},
		"another name": {storage.Config{DSN: strings.Replace(full, "127.0.0.1", "localhost", 1), TLS: server.Roots()},
			[]string{"for another name", "--clickhouse-dsn"}},
		"plain HTTP to TLS": {storage.Config{DSN: strings.Replace(full, "https", "http", 1)}, []string{"write https://"}},
		"may only read": {storage.Config{DSN: server.DSN(chservertest.Reader, chservertest.ReaderPassword), TLS: server.Roots()},
			[]string{`user "reader"`, "lacks INSERT, ALTER, CREATE DATABASE", "readonly = 2", "GRANT SELECT, INSERT", "KILL QUERY ON *.*"}},
		"may not set": {storage.Config{DSN: server.DSN(chservertest.Strict, chservertest.StrictPassword), TLS: server.Roots()},
			[]string{`user "strict"`, "readonly = 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := storage.Open(t.Context(), tc.cfg)
			if err == nil {
				t.Fatal("opened")
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			for _, secret := range []string{chservertest.OwnerPassword, chservertest.ReaderPassword, "wr0ng"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("a password is in: %v", err)
				}
			}
		})
	}
	t.Run("TLS to plain HTTP", func(t *testing.T) {
		server.Stop()
		plain := chservertest.Start(t)
		_, err := storage.Open(t.Context(), storage.Config{DSN: strings.Replace(plain.DSN("u", ""), "http", "https", 1)})
		if err == nil || !strings.Contains(err.Error(), "write http://") {
			t.Fatal(err)
		}
	})
}

// TestReader opens a store as one who may only read, for what reads alone.
func TestReader(t *testing.T) {
	server := chservertest.Start(t, chservertest.TLS)
	in := rows(t, "c", 0)
	insert(t, served(t, server), "a", in)
	r, err := storage.Open(t.Context(),
		storage.Config{DSN: server.DSN(chservertest.Reader, chservertest.ReaderPassword), TLS: server.Roots(), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := everything(t, r, in); len(got) != len(in) {
		t.Fatalf("%d of %d rows", len(got), len(in))
	}
	if err := r.Insert(t.Context(), "b", in); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Fatalf("a reader's insert: %v", err)
	}
}

// TestServerRestarts stops a server between and amid inserts, at moments spread over an
// insert's time. Recovered and sent again, the store holds every block once.
func TestServerRestarts(t *testing.T) {
	server := chservertest.Start(t, chservertest.TLS)
	s := served(t, server)
	in := rows(t, "c", 0)
	began := time.Now()
	number(in, 0)
	insert(t, s, "block-0", in)
	took := time.Since(began)
	const blocks = 5
	for i := 1; i < blocks; i++ {
		number(in, i)
		ended := make(chan error, 1)
		go func() { ended <- s.Insert(t.Context(), fmt.Sprint("block-", i), in) }()
		<-time.After(took * time.Duration(i) / blocks)
		server.Stop()
		err := <-ended
		if e := s.Insert(t.Context(), "lost", in); e == nil {
			t.Fatal("an insert into a server that is not there")
		}
		server.Resume()
		again(t, s, fmt.Sprint("block-", i), err == nil, func() error { return s.Recover(t.Context(), 0, 1, days(in)) }, i)
	}
	if v := consistent(t, s); v.Events != int64(blocks*len(in)) {
		t.Fatalf("%d events, want %d blocks of %d", v.Events, blocks, len(in))
	}
}

// TestInsertGoesOn gives inserts up while the server still runs them. Recovery ends those, and
// the block sent again is there once.
func TestInsertGoesOn(t *testing.T) {
	server := chservertest.Start(t)
	s := served(t, server)
	in := rows(t, "c", 0)
	began := time.Now()
	number(in, 0)
	insert(t, s, "block-0", in)
	took := time.Since(began)
	const blocks = 6
	broken := 0
	for i := 1; i < blocks; i++ {
		number(in, i)
		ctx, cancel := context.WithTimeout(t.Context(), took*time.Duration(i)/blocks)
		err := s.Insert(ctx, fmt.Sprint("block-", i), in)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			broken++
		}
		again(t, s, fmt.Sprint("block-", i), err == nil, func() error { return s.Recover(t.Context(), 0, 1, days(in)) }, i)
	}
	if broken == 0 {
		t.Fatal("no insert was given up: nothing was shown")
	}
	if v := consistent(t, s); v.Events != int64(blocks*len(in)) {
		t.Fatalf("%d events, want %d blocks of %d", v.Events, blocks, len(in))
	}
}

// again does what the runner does after an insert whose outcome is not known: recovers, asks
// what is there, and sends the block when it is not. An acknowledged block must be there.
func again(t *testing.T, s *storage.Store, token string, acknowledged bool, recoverAll func() error, i int) {
	t.Helper()
	if err := recoverAll(); err != nil {
		t.Fatal(err)
	}
	in := rows(t, "c", 0)
	number(in, i)
	known, err := s.Known(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(known) == 0 && acknowledged:
		t.Fatalf("block %d was acknowledged and is gone", i)
	case len(known) == 0:
		insert(t, s, token, in)
	case len(known) != len(in):
		t.Fatalf("%d of the %d rows of block %d are there: a block is whole or not at all", len(known), len(in), i)
	}
}
