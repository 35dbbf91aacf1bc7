// Package server wires the rooms to what commands run: a process that receives events and judges them (Server), a client of a running
// server or of the store (Connect), an import, a log that is replayed in place (Log). One file a service; server.go has the drawing.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/oklog/run"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/heap"
	"github.com/retrial-io/retrial/internal/version"
)

// What serve wires (assemble.go opens all but the listeners):
//
//	kube-apiserver ──mTLS──▶ :9443 webhook ─┐
//	live clusters ◀─list, watch─ watch.go ──┤
//	retrial import ─▶ data/retrial.sock ────┤ redact            ┌────────── runner ──────────┐
//	                   (trusted)            └─▶ stream.Producer ─▶ Kafka ─▶ policy ─▶ states │
//	                                             (embedded or real)   └─▶ events ─▶ engine ──┼─▶ storage
//	browser ─▶ :8080 page, api/v1, metrics ◀───────────────────────────────────────────────┘   (embedded
//	retrial why ─▶ data/retrial.sock (the same api) ◀──────────────────────────────────────     or real)

// Server is a process that runs until it is stopped: serve, or one of its halves.
type Server struct {
	Config config.Config
	Runs   Halves
	Log    *zap.Logger
	Out    io.Writer // what a person at the terminal should read
	Sample bool      // take in the bundled recording
}

// Check returns an error for a configuration that does not fit what the process runs.
func (sv Server) Check() error {
	if err := sv.Runs.check(sv.Config); err != nil {
		return err
	}
	if err := sv.Config.CheckFiles(); err != nil {
		return err
	}
	if sv.Runs.replays() {
		return checkFirstStart(sv.Config)
	}
	return nil
}

// Run serves until ctx ends, which is a clean stop, or something fails.
func (sv Server) Run(ctx context.Context) (err error) {
	cfg, log := sv.Config, sv.Log
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	sys, err := openIngest(ctx, cfg, sv.Runs, log, reg)
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
	if sv.Runs.replays() {
		if err := sys.openReplay(ctx); err != nil {
			return err
		}
		if err := addReplay(stopped, sys, &group, add); err != nil {
			return err
		}
	}
	addr, err := listeners(sys, sv.Runs, &group)
	if err != nil {
		return err
	}
	if sv.Runs.replays() {
		if addr.sql, err = listenSQL(stopped, sys, &group); err != nil {
			return err
		}
	}
	if err := listenDebug(stopped, sys, &group); err != nil {
		return err
	}
	clusters, err := sys.authority.Registry().List()
	if err != nil {
		return err
	}
	log.Info("serving", zap.String("version", version.Version), zap.String("runs", sv.Runs.String()), zap.String("webhook", addr.webhook),
		zap.String("page", addr.ui), zap.String("sql", addr.sql),
		zap.String("data", config.Absolute(cfg.DataDir)), zap.Int("registered_clusters", len(clusters)),
		zap.Int("watched_clusters", len(cfg.Watch.Clusters)))
	if addr.sql != "" {
		fmt.Fprintf(sv.Out, "\n  SQL, read-only: %s\n", addr.sql)
	}
	fmt.Fprintf(sv.Out, "\n  %s\n\n", sv.Runs.greeting(addr))
	if sv.Sample {
		add(func(ctx context.Context) error {
			if err := importSample(ctx, sys, addr, sv.Out); err != nil && ctx.Err() == nil {
				return fmt.Errorf("take in the sample: %w", err)
			}
			<-ctx.Done()
			return nil
		})
	}
	err = group.Run()
	log.Info("stopping")
	return err
}

// heapHeadroom is how much the heap may grow before it is collected: see package heap. Blocks of events stream through it; collecting once
// for many of them, not once for each, saves a tenth of all processor time.
const heapHeadroom = 512 << 20

func addReplay(ctx context.Context, sys *system, group *run.Group, add func(func(context.Context) error)) error {
	add(sys.runner.Run)
	add(func(ctx context.Context) error { heap.Pace(ctx, heapHeadroom); <-ctx.Done(); return nil })
	if err := addWatchers(ctx, sys, group); err != nil {
		return err
	}
	add(func(ctx context.Context) error { sys.store.RollUpEvery(ctx); return nil })
	add(func(ctx context.Context) error { sys.retain(ctx); return nil })
	add(sys.detect.run)
	add(func(ctx context.Context) error { sys.complete.run(ctx); return nil })
	add(func(ctx context.Context) error { sys.asking.Run(ctx); return nil })
	add(func(ctx context.Context) error { sys.apiservers.run(ctx); return nil })
	add(func(ctx context.Context) error { sys.otherwise.run(ctx, sys.apiservers.changed); return nil })
	return nil
}
