package chserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/retrial-io/retrial/storage/embedded"
)

// Config says what to serve and to whom.
type Config struct {
	// Engine configures the embedded engine; its Path is required.
	Engine embedded.Config
	// Listen is the address; ":0" picks a port.
	Listen string
	// TLS makes it an HTTPS server; nil: HTTP.
	TLS *tls.Config
	// Users that may log in.
	Users []User
}

// Running is a server with its engine and its listener.
type Running struct {
	engine *embedded.Engine
	server *http.Server
	addr   net.Addr
	ended  chan error
}

// Listen opens the engine and serves it until Close.
func Listen(cfg Config) (*Running, error) {
	engine, err := embedded.Open(cfg.Engine)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), engine.Close())
	}
	r := &Running{engine: engine, addr: l.Addr(), ended: make(chan error, 1)}
	if cfg.TLS != nil {
		l = tls.NewListener(l, cfg.TLS)
	}
	r.server = &http.Server{Handler: New(engine, cfg.Users...), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 20}
	go func() { r.ended <- r.server.Serve(l) }()
	return r, nil
}

// Addr returns the address it listens on, host:port.
func (r *Running) Addr() string { return r.addr.String() }

// Close breaks the connections, as a server that is stopped does, waits until what runs in
// the engine has ended, and closes it.
func (r *Running) Close() error {
	err := r.server.Close()
	if served := <-r.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, r.engine.Close())
}

// Shutdown lets running requests end until ctx does, then closes.
func (r *Running) Shutdown(ctx context.Context) error {
	err := r.server.Shutdown(ctx)
	return errors.Join(err, r.Close())
}
