package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/runner"
)

// openSystem opens the data directory, the engines and the clients of both halves. What was
// opened is closed again when anything fails.
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

// openIngest opens what takes events in: the data directory, the authority, the stream and, in
// a process that receives, the spool before it.
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
		Hold: nonZero(cfg.Replay.Hold), Linger: nonZero(cfg.Replay.Linger), BatchRecords: int(cfg.Replay.BatchRows),
		Lag: max(2*time.Second, time.Duration(cfg.Replay.Lag)), Redact: s.redactor.RedactBytes, Tagger: s.detect.tagger, Log: log, Registerer: reg,
	}, runner.Kafka{Client: s.stream}, engine, s.store)
	if err != nil {
		return err
	}
	if s.complete, err = newCompleting(cfg, s.store, s.site, log, reg); err != nil {
		return err
	}
	s.closers = append(s.closers, s.complete.close)
	s.otherwise, err = newOtherwise(engine, s.store, s.site().DataDir(), log, reg)
	return err
}

// nonZero turns a configured 0 into "none": the runner takes 0 for its default.
func nonZero(d config.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}
