package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"time"

	"github.com/oklog/run"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// listeners opens the listeners of the halves and adds their servers to the group.
func listeners(sys *system, h Halves, group *run.Group) (addr addresses, err error) {
	if h.ingests() {
		if addr.webhook, err = listenWebhook(sys, group); err != nil {
			return addr, err
		}
	}
	var questions http.Handler = elsewhere{}
	if h.replays() {
		var service *query.Service
		questions, service = newAPI(sys)
		ctx, cancel := context.WithCancel(context.Background())
		group.Add(func() error { renew(ctx, service, sys.log); return nil }, func(error) { cancel() })
	}
	if addr.socket, err = listenLocally(sys, questions, group); err != nil {
		return addr, err
	}
	addr.ui, err = listenPage(sys, questions, group)
	return addr, err
}

// listenWebhook opens the listener apiservers post to and returns its URL.
func listenWebhook(sys *system, group *run.Group) (string, error) {
	receiver, err := sys.receiver(false)
	if err != nil {
		return "", err
	}
	limits := webhook.ServerConfig{ReadTimeout: time.Duration(sys.cfg.Webhook.ReadTimeout), Contacts: sys.contacts}
	l, err := net.Listen("tcp", sys.cfg.Webhook.Listen)
	if err != nil {
		return "", fmt.Errorf("webhook-listen: %w; choose another address with --webhook-listen", err)
	}
	sys.hook = l.Addr().String()
	server, err := webhook.NewServer(limits, sys.authority.ServerTLS(), receiver, sys.log, sys.reg)
	if err != nil {
		return "", err
	}
	addServer(group, server, func() error { return server.ServeTLS(l, "", "") })
	return "https://" + sys.hook, nil
}

// listenPage opens the listener of the page, the API and the metrics and returns its URL.
func listenPage(sys *system, questions http.Handler, group *run.Group) (string, error) {
	c := sys.cfg.UI
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return "", fmt.Errorf("ui-listen: %w; choose another address with --ui-listen", err)
	}
	page, err := newPage(sys, questions, l.Addr())
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	if c.TLSCert == "" {
		addServer(group, server, func() error { return server.Serve(l) })
		return "http://" + l.Addr().String() + "/", nil
	}
	if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
		return "", fmt.Errorf("ui-tls-cert, ui-tls-key: %w", err)
	}
	addServer(group, server, func() error { return server.ServeTLS(l, c.TLSCert, c.TLSKey) })
	return "https://" + l.Addr().String() + "/", nil
}

// listenLocally serves the trusted receiver and the API on the socket in the data directory.
func listenLocally(sys *system, questions http.Handler, group *run.Group) (string, error) {
	receiver, err := sys.receiver(true)
	if err != nil {
		return "", err
	}
	path := filepath.Join(sys.cfg.DataDir, apiclient.SocketName)
	socket, err := listenUnix(path)
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", questions)
	mux.Handle("/", receiver)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ConnContext: api.ConnContext}
	addServer(group, server, func() error { return server.Serve(socket) })
	return path, nil
}

// addServer runs a server in the group; stopping lets requests under way finish.
func addServer(group *run.Group, server *http.Server, serve func() error) {
	group.Add(func() error {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, func(error) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
}

// listenUnix opens the local socket. A socket that does not answer is left over from a crash; one that answers belongs to another server on
// the same directory, which no lock keeps out if the engines are real.
func listenUnix(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("local socket: another server answers at %s: stop it, or choose another --data-dir", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("local socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("local socket: %w (its path may have about 100 characters; choose a shorter --data-dir)", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("local socket: %w", err), l.Close())
	}
	return l, nil
}

// listenDebug opens the listener of Go's profiles, when one is configured. It is on loopback, and guarded against other sites like the
// page's. A profile being taken ends with ctx and is complete.
func listenDebug(ctx context.Context, sys *system, group *run.Group) error {
	if sys.cfg.Debug.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", sys.cfg.Debug.Listen)
	if err != nil {
		return fmt.Errorf("debug-listen: %w; choose another address with --debug-listen", err)
	}
	server := &http.Server{Handler: guard{addr: l.Addr().String(), next: profiles()}, ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute}
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	addServer(group, server, func() error { return server.Serve(l) })
	sys.log.Info("profiles are served", zap.String("url", "http://"+l.Addr().String()+"/debug/pprof/"))
	return nil
}

// profiles returns a handler of Go's profiles; the default mux, on which net/http/pprof registers itself, is served nowhere.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
