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
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/oklog/run"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/heap"
	"github.com/retrial-io/retrial/internal/obs"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query/api"
	apiclient "github.com/retrial-io/retrial/query/client"
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
func newServe(s cli.Streams) *cobra.Command {
	var withSample bool
	c := newServer(s, bothHalves, &withSample, &cobra.Command{
		Use:   "serve",
		Short: "Receive audit events, replay them, store the verdicts and show them",
		Long: `Run everything in one process: the audit webhook's endpoint, the stream, the replay, the
store and the page. By default Kafka and ClickHouse are embedded and everything lives in
./data; --kafka-brokers and --clickhouse-dsn name real ones. With a real Kafka the two halves
may run as processes of their own, as many of each as it takes: retrial ingest, retrial replay.

The state requests are judged against comes from the audit stream, from state files
(import --state), and from clusters that can be watched: --watch-clusters
prod=/path/to/kubeconfig lists and watches roles, bindings, namespaces and service accounts
(never Secrets; deploy/watch-rbac.yaml grants no more). Clusters whose audit policy records
writes without their bodies need one of the latter two.

--apiserver-config prod=/etc/retrial/prod says how the apiservers of a cluster authenticate
and authorize: a folder with their static-pod manifest or flags and the files these name
(docs/apiserver-config.md). It is read again when files change.`,
	})
	c.Flags().BoolVar(&withSample, "sample", false, "take in the bundled recording of a real audit log as cluster \"sample\"")
	return c
}

// newServer completes the command of a process that runs until it is stopped: serve, ingest
// and replay take the same configuration, so that one file does for all of them.
func newServer(s cli.Streams, h halves, withSample *bool, c *cobra.Command) *cobra.Command {
	var profile string
	c.Args = cli.NoArgs
	flags := config.Bind(c.Flags())
	c.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile of the run, from the last SIGUSR1 on, to this file")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := flags.Load()
		if err == nil {
			err = h.check(cfg)
		}
		if err == nil {
			err = cfg.CheckFiles()
		}
		if err == nil && h.replays() {
			err = checkFirstStart(cfg)
		}
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		stop, err := profileTo(profile)
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		defer stop()
		log, err := obs.Logger(s.Err, cfg.Log.Level, cfg.Log.Format)
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		return serve(c.Context(), cfg, log, serveOptions{halves: h, sample: *withSample, out: s.Out})
	}
	return c
}

// profileTo starts a CPU profile unless the file's name is empty; stop ends it. SIGUSR1 begins it
// anew, which leaves out what came before.
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
	anew, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(anew, syscall.SIGUSR1)
	go func() {
		defer close(done)
		for range anew {
			pprof.StopCPUProfile()
			if err := f.Truncate(0); err != nil {
				return // the profile stays what it was
			}
			_, _ = f.Seek(0, io.SeekStart)
			_ = pprof.StartCPUProfile(f) // nobody else has started one
		}
	}()
	return func() {
		signal.Stop(anew)
		close(anew)
		<-done
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

type serveOptions struct {
	halves halves
	sample bool
	out    io.Writer // what a person at the terminal should read
	// started, when set, is told the addresses once all listeners are open.
	started func(addresses)
}

// addresses are where a running server can be reached; those it does not listen on are empty.
type addresses struct{ webhook, ui, socket, sql string }

// serve runs until ctx ends, which is a clean stop, or something fails.
func serve(ctx context.Context, cfg config.Config, log *zap.Logger, o serveOptions) (err error) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	sys, err := openIngest(ctx, cfg, o.halves, log, reg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.close()) }()
	var group run.Group
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	add := func(f func(context.Context) error) {
		group.Add(func() error { return f(stopped) }, func(error) { stop() })
	}
	add(func(ctx context.Context) error { <-ctx.Done(); return nil })
	if sys.spool != nil {
		add(sys.runSpool)
	}
	if o.halves.replays() {
		if err := sys.openReplay(ctx); err != nil {
			return err
		}
		if err := addReplay(stopped, sys, &group, add); err != nil {
			return err
		}
	}
	addr, err := listeners(sys, o.halves, &group)
	if err != nil {
		return err
	}
	if o.halves.replays() {
		if addr.sql, err = listenSQL(stopped, sys, &group); err != nil {
			return err
		}
	}
	clusters, err := sys.authority.Registry().List()
	if err != nil {
		return err
	}
	log.Info("serving", zap.String("version", version), zap.String("runs", o.halves.String()), zap.String("webhook", addr.webhook), zap.String("page", addr.ui), zap.String("sql", addr.sql),
		zap.String("data", config.Absolute(cfg.DataDir)), zap.Int("registered_clusters", len(clusters)), zap.Int("watched_clusters", len(cfg.Watch.Clusters)))
	if addr.sql != "" {
		fmt.Fprintf(o.out, "\n  SQL, read-only: %s\n", addr.sql)
	}
	fmt.Fprintf(o.out, "\n  %s\n\n", o.halves.greeting(addr))
	if o.sample {
		add(func(ctx context.Context) error {
			if err := importSample(ctx, sys, addr, o.out); err != nil && ctx.Err() == nil {
				return fmt.Errorf("take in the sample: %w", err)
			}
			<-ctx.Done()
			return nil
		})
	}
	if o.started != nil {
		o.started(addr)
	}
	err = group.Run()
	log.Info("stopping")
	return err
}

// heapHeadroom is how much a heap that judges may grow before it is collected: see package
// heap. Blocks of events stream through it; that it is collected once for many of them, not
// once for each, is worth a tenth of all processor time.
const heapHeadroom = 512 << 20

// addReplay adds what judges and keeps, and what looks after it.
func addReplay(ctx context.Context, sys *system, group *run.Group, add func(func(context.Context) error)) error {
	add(sys.runner.Run)
	add(func(ctx context.Context) error { heap.Pace(ctx, heapHeadroom); <-ctx.Done(); return nil })
	if err := addWatchers(ctx, sys, group); err != nil {
		return err
	}
	add(func(ctx context.Context) error { sys.retain(ctx); return nil })
	add(sys.detect.run)
	add(func(ctx context.Context) error { sys.complete.run(ctx); return nil })
	add(func(ctx context.Context) error { sys.asking.Run(ctx); return nil })
	add(func(ctx context.Context) error { sys.apiservers.run(ctx); return nil })
	add(func(ctx context.Context) error { sys.otherwise.run(ctx, sys.apiservers.changed); return nil })
	return nil
}

// listeners opens the listeners of the halves and adds their servers to the group.
func listeners(sys *system, h halves, group *run.Group) (addr addresses, err error) {
	if h.ingests() {
		if addr.webhook, err = listenWebhook(sys, group); err != nil {
			return addr, err
		}
	}
	var questions http.Handler = elsewhere{}
	if h.replays() {
		questions = newAPI(sys)
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
