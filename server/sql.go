package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/oklog/run"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/sqlgate"
)

// leastPassword is how many characters the SQL listener's password must have, as guesses are not limited.
const leastPassword = 16

// listenSQL opens the SQL listener, when one is configured, and adds its server to the group:
//
//	Grafana ─HTTP, password─▶ sqlgate ─checked SQL, read-only session─▶ embedded store
//	                             └─ who asked what ─▶ query log
//
// It returns the listener's URL, empty if there is none.
func listenSQL(ctx context.Context, sys *system, group *run.Group) (string, error) {
	c := sys.cfg.ClickHouse
	if c.Listen == "" {
		return "", nil
	}
	if sys.engine == nil {
		return "", errors.New("clickhouse-listen: the store is a server of its own; ask that one")
	}
	password, err := readSecret("clickhouse-listen-password-file", c.ListenPasswordFile)
	if err != nil {
		return "", err
	}
	if len(password) < leastPassword {
		return "", fmt.Errorf("clickhouse-listen-password-file: the password has %d characters; use at least %d", len(password),
			leastPassword)
	}
	gate, err := sqlgate.New(ctx, sqlgate.Config{
		Open: sessionsOf(sys), Hello: sys.engine.Hello, Database: c.Database, User: c.ListenUser, Password: password,
		Memory: max(sys.engine.MaxMemory()/8, 64<<20), Record: sys.noteSQL, Log: sys.log, Registerer: sys.reg,
	})
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return "", fmt.Errorf("clickhouse-listen: %w; choose another address with --clickhouse-listen", err)
	}
	// ReadTimeout exceeds any query: it is read while the query runs, to notice that the caller leaves; a timeout would look the same.
	server := &http.Server{Handler: gate, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 512 << 10}
	server.BaseContext = func(net.Listener) context.Context { return ctx } // a stop ends queries
	if c.ListenTLSCert == "" {
		addServer(group, server, func() error { return server.Serve(l) })
		return "http://" + l.Addr().String(), nil
	}
	if _, err := tls.LoadX509KeyPair(c.ListenTLSCert, c.ListenTLSKey); err != nil {
		return "", errors.Join(fmt.Errorf("clickhouse-listen-tls-cert, clickhouse-listen-tls-key: %w", err), l.Close())
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	addServer(group, server, func() error { return server.ServeTLS(l, c.ListenTLSCert, c.ListenTLSKey) })
	return "https://" + l.Addr().String(), nil
}

// sessionsOf opens sessions of the engine for the gate. Before a statement, what was received is stored, and counted in the rollups.
func sessionsOf(sys *system) func(string, [][2]string) (sqlgate.Session, error) {
	return func(database string, settings [][2]string) (sqlgate.Session, error) {
		s, err := sys.engine.Session(database, settings)
		if err != nil {
			return nil, err
		}
		return session{s, sys}, nil
	}
}

type session struct {
	sqlgate.Session
	sys *system
}

// Query implements sqlgate.Session.
func (s session) Query(ctx context.Context, sql string, params [][2]string, format string) (io.ReadCloser, error) {
	s.sys.runner.CatchUp(ctx)
	if err := s.sys.store.RollUp(ctx); err != nil {
		return nil, err
	}
	return s.Session.Query(ctx, sql, params, format)
}

func (s *system) noteSQL(r sqlgate.AccessRecord) {
	if s.asking == nil {
		return
	}
	status := "ok"
	switch {
	case r.Code != 0 && r.Refused:
		status = "refused"
	case r.Code != 0:
		status = "failed"
	}
	address, _, err := net.SplitHostPort(r.Remote)
	if err != nil {
		address = r.Remote
	}
	s.asking.Note(queries.Asked{
		Time: r.At, Door: "sql", Caller: r.User, Address: address, Question: "sql", Detail: r.Query, Status: status, Bytes: r.Bytes,
		Took: r.Took,
	})
}
