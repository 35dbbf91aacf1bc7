package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/oklog/run"
	"go.uber.org/zap"
)

// listenDebug opens the listener of Go's profiles, when one is configured. It is loopback, and
// guarded against other sites like the page's. A profile that is being taken ends with ctx and
// is whole then.
func listenDebug(ctx context.Context, sys *system, group *run.Group) error {
	if sys.cfg.Debug.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", sys.cfg.Debug.Listen)
	if err != nil {
		return fmt.Errorf("debug-listen: %w; choose another address with --debug-listen", err)
	}
	server := &http.Server{Handler: guard{addr: l.Addr().String(), next: profiles()}, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	addServer(group, server, func() error { return server.Serve(l) })
	sys.log.Info("profiles are served", zap.String("url", "http://"+l.Addr().String()+"/debug/pprof/"))
	return nil
}

// profiles serves Go's profiles; the default mux, on which net/http/pprof registers itself, is
// served nowhere.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
