package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/spool"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/runner"
	"github.com/retrial-io/retrial/storage"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

// openSystem opens the data directory, the engines and the clients of both halves. If anything fails, it closes what it has opened.
func openSystem(ctx context.Context, cfg config.Config, log *zap.Logger, reg registry) (_ *system, err error) {
	s, err := openIngest(ctx, cfg, 0, log, reg)
	if err != nil {
		return nil, err
	}
	if err := s.openReplay(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openIngest opens what takes events in: the data directory, the authority, the stream and, if the process receives, the spool before it.
func openIngest(ctx context.Context, cfg config.Config, h Halves, log *zap.Logger, reg registry) (_ *system, err error) {
	s := &system{cfg: cfg, log: log, reg: reg, halves: h, contacts: webhook.NewContacts(nil)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(filepath.Dir(PositionFile(cfg, "")), 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w; choose another with --data-dir", err)
	}
	key, err := redactionKey(cfg, log)
	if err != nil {
		return nil, err
	}
	s.redactor = redact.New(key)
	if s.authority, err = identity.Open(IdentityConfig(cfg), log, reg); err != nil {
		return nil, err
	}
	contacts := s.contacts
	if !h.ingests() {
		contacts = nil // who delivered is known where it was delivered
	}
	if err := reg.Register(newSiteMetrics(cfg.DataDir, s.authority.Registry(), contacts, log)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := s.openStream(ctx); err != nil {
		return nil, err
	}
	if h.ingests() {
		return s, s.openSpool()
	}
	return s, nil
}

// openReplay opens what judges and keeps: the rules, the store and the runner.
func (s *system) openReplay(ctx context.Context) (err error) {
	cfg, log, reg := s.cfg, s.log, s.reg
	if s.rules, err = configuredRules(cfg); err != nil {
		return err
	}
	if s.apiservers, err = openApiservers(cfg.Replay.ApiserverConfig, log, reg); err != nil {
		return err
	}
	if s.store, err = s.openStore(ctx); err != nil {
		return err
	}
	s.asking = api.NewQueryLog(s.store, log)
	s.closers = append(s.closers, s.asking.Close)
	s.detect = (&detections{cfg: cfg, log: log, rules: s.rules, store: s.store, stream: s.stream, owned: s.engine != nil}).open(reg)
	engine := replay.New(replay.Config{Lag: time.Duration(cfg.Replay.Lag), Version: version.Version, Apiserver: s.apiservers.history})
	s.runner, err = runner.New(runner.Config{
		Hold: nonZero(cfg.Replay.Hold), Linger: nonZero(config.Duration(s.linger())), BatchRecords: int(cfg.Replay.BatchRows),
		Lag: max(2*time.Second, time.Duration(cfg.Replay.Lag)), Redact: s.redactor.RedactBytes, Tagger: s.detect.tagger, Log: log,
		Registerer: reg,
	}, runner.Kafka{Client: s.stream}, engine, s.store)
	if err != nil {
		return err
	}
	if s.complete, err = newCompleting(cfg, s.store, s.site, log, reg); err != nil {
		return err
	}
	s.closers = append(s.closers, s.complete.close)
	s.otherwise = newOtherwise(engine, s.store, s.site().DataDir(), log, reg)
	return nil
}

// linger returns how long what was received waits to be stored. Questions end the wait in this process alone: in one that shares the
// store, others are to find it, too.
func (s *system) linger() time.Duration {
	if s.engine == nil {
		return time.Duration(s.cfg.Replay.Linger) / 4
	}
	return time.Duration(s.cfg.Replay.Linger)
}

// nonZero turns a configured 0 into "none": the runner takes 0 for its default.
func nonZero(d config.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}

// system is everything between the listeners and the disk, wired once for serve and for the commands that open the store themselves.
type system struct {
	cfg        config.Config
	log        *zap.Logger
	reg        registry
	authority  *identity.Authority
	redactor   *redact.Redactor
	stream     *stream.Client
	spool      *spool.Spool // nil: switched off, or the process takes nothing in
	store      *storage.Store
	engine     *chdb.Engine // of the embedded store; nil when the store is a server
	otherwise  *otherwise
	runner     *runner.Runner
	rules      *detect.Set
	apiservers *apiservers
	detect     *detections
	complete   *completing
	asking     *api.QueryLog
	contacts   *webhook.Contacts // who reached the webhook's listener
	hook       string            // its address, once it listens
	halves     Halves            // that the process runs; none: it was opened for one command

	topicsLater bool // Kafka could not be reached at the start

	closers
}

// registry is where metrics go and where /metrics reads them.
type registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// closers close what was opened, and stand in the order of that.
type closers []func() error

func (c *closers) close() error {
	var errs []error
	for _, closer := range slices.Backward(*c) {
		errs = append(errs, closer())
	}
	*c = nil
	return errors.Join(errs...)
}

// every calls f now, with 1, and again once a period, or when something can be received from early, until ctx ends.
func every(ctx context.Context, period time.Duration, early <-chan struct{}, f func(n int)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for n := 1; ; n++ {
		f(n)
		select {
		case <-ctx.Done():
			return
		case <-early:
		case <-tick.C:
		}
	}
}
