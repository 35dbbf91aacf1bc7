package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/oklog/run"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/obs"
	"github.com/retrial-io/retrial/internal/sample"
)

// What serve wires (system.go opens all but the listeners):
//
//	kube-apiserver ──mTLS──▶ :9443 webhook ─┐
//	live clusters ◀─list, watch─ watch.go ──┤
//	retrial import ─▶ data/retrial.sock ────┤ redact            ┌────────── runner ──────────┐
//	                   (trusted)            └─▶ stream.Producer ─▶ Kafka ─▶ policy ─▶ states │
//	                                             (embedded or real)   └─▶ events ─▶ engine ──┼─▶ storage
//	browser ─▶ :8080 page, api/v1, metrics ◀───────────────────────────────────────────────┘   (embedded
//	retrial why ─▶ data/retrial.sock (the same api) ◀──────────────────────────────────────     or real)
func newServe(s streams) *cobra.Command {
	var withSample bool
	var profile string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Receive audit events, replay them, store the verdicts and show them",
		Long: `Run everything in one process: the audit webhook's endpoint, the stream, the replay, the
store and the page. By default Kafka and ClickHouse are embedded and everything lives in
./data; --kafka-brokers and --clickhouse-dsn name real ones.

The state requests are judged against comes from the audit stream, from state files
(import --state), and from clusters that can be watched: --watch-clusters
prod=/path/to/kubeconfig lists and watches roles, bindings, namespaces and service accounts
(never Secrets; deploy/watch-rbac.yaml grants no more). Clusters whose audit policy records
writes without their bodies need one of the latter two.

--apiserver-config prod=/etc/retrial/prod says how the apiservers of a cluster authenticate
and authorize: a folder with their static-pod manifest or flags and the files these name
(docs/apiserver-config.md). It is read again when files change.`,
		Args: noArgs,
	}
	flags := config.Bind(c.Flags())
	c.Flags().BoolVar(&withSample, "sample", false, "take in the bundled recording of a real audit log as cluster \"sample\"")
	c.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile of the whole run to this file")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := flags.Load()
		if err != nil {
			return exitCode{exitUsage, err}
		}
		if err := cfg.CheckFiles(); err != nil {
			return exitCode{exitUsage, err}
		}
		stop, err := profileTo(profile)
		if err != nil {
			return exitCode{exitUsage, err}
		}
		defer stop()
		log, err := obs.Logger(s.err, cfg.Log.Level, cfg.Log.Format)
		if err != nil {
			return exitCode{exitUsage, err}
		}
		return serve(c.Context(), cfg, log, serveOptions{sample: withSample, out: s.out})
	}
	return c
}

// profileTo starts a CPU profile unless the file's name is empty; stop ends it.
func profileTo(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("--cpu-profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("--cpu-profile: %w", err), f.Close())
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

type serveOptions struct {
	sample bool
	out    io.Writer // what a person at the terminal should read
	// started, when set, is told the addresses once all listeners are open.
	started func(addresses)
}

// addresses are where a running serve can be reached.
type addresses struct{ webhook, ui, socket, sql string }

// serve runs until ctx ends, which is a clean stop, or something fails.
func serve(ctx context.Context, cfg config.Config, log *zap.Logger, o serveOptions) (err error) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	sys, err := openSystem(ctx, cfg, log, reg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.close()) }()

	var group run.Group
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	group.Add(func() error { <-stopped.Done(); return nil }, func(error) { stop() })
	group.Add(func() error { return sys.runner.Run(stopped) }, func(error) { stop() })

	if err := addWatchers(stopped, sys, &group); err != nil {
		return err
	}
	group.Add(func() error { sys.retain(stopped); return nil }, func(error) { stop() })
	group.Add(func() error { return sys.detect.run(stopped) }, func(error) { stop() })
	group.Add(func() error { sys.asking.run(stopped); return nil }, func(error) { stop() })
	group.Add(func() error { sys.apiservers.run(stopped); return nil }, func(error) { stop() })
	group.Add(func() error { sys.otherwise.run(stopped, sys.apiservers.changed); return nil }, func(error) { stop() })

	addr, err := listeners(sys, &group)
	if err != nil {
		return err
	}
	if addr.sql, err = listenSQL(stopped, sys, &group); err != nil {
		return err
	}
	clusters, err := sys.authority.Registry().List()
	if err != nil {
		return err
	}
	log.Info("serving", zap.String("version", version), zap.String("webhook", addr.webhook), zap.String("page", addr.ui), zap.String("sql", addr.sql),
		zap.String("data", absolute(cfg.DataDir)), zap.Int("registered_clusters", len(clusters)), zap.Int("watched_clusters", len(cfg.Watch.Clusters)))
	if addr.sql != "" {
		fmt.Fprintf(o.out, "\n  SQL, read-only: %s\n", addr.sql)
	}
	fmt.Fprintf(o.out, "\n  Retrial is up.  Page: %s   Webhook: %s\n\n", addr.ui, addr.webhook)
	if o.sample {
		group.Add(func() error {
			if err := importSample(stopped, sys, addr, o.out); err != nil && stopped.Err() == nil {
				return fmt.Errorf("take in the sample: %w", err)
			}
			<-stopped.Done()
			return nil
		}, func(error) { stop() })
	}
	if o.started != nil {
		o.started(addr)
	}
	err = group.Run()
	log.Info("stopping")
	return err
}

// listeners opens the three listeners and adds their servers to the group.
func listeners(sys *system, group *run.Group) (addresses, error) {
	var addr addresses
	cfg := sys.cfg
	receiver, err := sys.receiver(false)
	if err != nil {
		return addr, err
	}
	limits := webhook.ServerConfig{ReadTimeout: time.Duration(cfg.Webhook.ReadTimeout), Contacts: sys.contacts}

	hook, err := net.Listen("tcp", cfg.Webhook.Listen)
	if err != nil {
		return addr, fmt.Errorf("webhook-listen: %w; choose another address with --webhook-listen", err)
	}
	sys.hook = hook.Addr().String()
	addr.webhook = "https://" + sys.hook
	server, err := webhook.NewServer(limits, sys.authority.ServerTLS(), receiver, sys.log, sys.reg)
	if err != nil {
		return addr, err
	}
	addServer(group, server, func() error { return server.ServeTLS(hook, "", "") })

	api := newAPI(sys)
	if addr.socket, err = listenLocally(sys, api, group); err != nil {
		return addr, err
	}

	ui, err := net.Listen("tcp", cfg.UI.Listen)
	if err != nil {
		return addr, fmt.Errorf("ui-listen: %w; choose another address with --ui-listen", err)
	}
	page, err := newPage(sys, api, ui.Addr())
	if err != nil {
		return addr, err
	}
	pageServer := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	if cfg.UI.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(cfg.UI.TLSCert, cfg.UI.TLSKey); err != nil {
			return addr, fmt.Errorf("ui-tls-cert, ui-tls-key: %w", err)
		}
		addr.ui = "https://" + ui.Addr().String() + "/"
		addServer(group, pageServer, func() error { return pageServer.ServeTLS(ui, cfg.UI.TLSCert, cfg.UI.TLSKey) })
	} else {
		addr.ui = "http://" + ui.Addr().String() + "/"
		addServer(group, pageServer, func() error { return pageServer.Serve(ui) })
	}
	return addr, nil
}

// listenLocally serves the trusted receiver and the API on the socket in the data directory.
func listenLocally(sys *system, api http.Handler, group *run.Group) (string, error) {
	receiver, err := sys.receiver(true)
	if err != nil {
		return "", err
	}
	path := filepath.Join(sys.cfg.DataDir, socketName)
	socket, err := listenUnix(path)
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", api)
	mux.Handle("/", receiver)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ConnContext: withCaller}
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

// listenUnix opens the local socket. One that nobody answers at is left over from a crash;
// one that somebody does belongs to another server on the same directory, which with real
// engines no lock has kept out.
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

// importSample posts the bundled recording through the local socket, as an import would. A
// later start finds it done.
func importSample(ctx context.Context, sys *system, addr addresses, out io.Writer) error {
	file := func(name string, content []byte) importer.File {
		return importer.File{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}}
	}
	st := file(sample.StateName, sample.StateZstd())
	sum, err := importer.Import(ctx, importer.Config{
		Client: importer.SocketClient(addr.socket), BaseURL: "http://retrial", Cluster: "sample",
		Files: []importer.File{file(sample.AuditLogName, sample.AuditLogZstd())}, State: &st,
		Position: positionFile(sys.cfg, "sample"), SpoolDir: sys.cfg.DataDir, Log: sys.log,
	})
	if err != nil {
		return err
	}
	if err := sys.runner.WaitDrained(ctx); err != nil {
		return err
	}
	what := "from an earlier start"
	if sum.Events > 0 {
		what = fmt.Sprintf("%d events of a real audit log, replayed", sum.Events)
	}
	fmt.Fprintf(out, "  The sample is in: %s. Open %s#/?cluster=sample\n\n", what, addr.ui)
	return nil
}

// positionFile is where an import notes what was acknowledged.
func positionFile(cfg config.Config, cluster string) string {
	return filepath.Join(cfg.DataDir, "imports", cluster+".json")
}
