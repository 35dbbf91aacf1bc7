package server

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/replay/state/forget"
	"github.com/retrial-io/retrial/storage"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

func (s *system) openStore(ctx context.Context) (*storage.Store, error) {
	c := s.cfg.ClickHouse
	cfg := storage.Config{Database: c.Database, ClusterName: c.Cluster, Log: s.log, Registerer: s.reg}
	if c.DSN == "" {
		engine, err := chdb.Open(chdb.Config{
			Path: storeDir(s.cfg), Library: c.Library, MaxMemory: int64(c.EmbeddedMaxMemory),
			MaxThreads: int(c.EmbeddedThreads), Log: s.log,
		})
		if err != nil {
			return nil, fmt.Errorf("embedded clickhouse: %w", err)
		}
		s.closers = append(s.closers, engine.Close)
		s.engine, cfg.Transport = engine, engine
	} else {
		dsn, err := dsnOf(c)
		if err != nil {
			return nil, err
		}
		cfg.DSN = dsn
		if c.CAFile != "" {
			if cfg.TLS, err = tlsOf("clickhouse-ca-file", c.CAFile); err != nil {
				return nil, err
			}
		}
	}
	store, err := storage.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, store.Close)
	if s.engine != nil {
		if err := s.engine.Slim(); err != nil {
			s.log.Warn("the embedded engine takes more memory than it needs", zap.Error(err))
		}
	}
	return store, nil
}

func storeDir(cfg config.Config) string { return filepath.Join(cfg.DataDir, "clickhouse") }

func dsnOf(c config.ClickHouse) (string, error) {
	if c.PasswordFile == "" {
		return c.DSN, nil
	}
	u, err := url.Parse(c.DSN)
	if err != nil {
		return "", fmt.Errorf("clickhouse-dsn: invalid URL: want http://user@host:8123/database")
	}
	password, err := readSecret("clickhouse-password-file", c.PasswordFile)
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

const retainEvery = 15 * time.Minute

// retain drops what is past its retention until ctx ends. Failures are logged and retried: meanwhile more disk is used.
func (s *system) retain(ctx context.Context) {
	r := s.cfg.Retention
	days := func(d config.Duration) int { return int(time.Duration(d) / (24 * time.Hour)) }
	policy := storage.Retention{EventDays: days(r.Events), RollupDays: days(r.Rollups), KeepImports: r.KeepImports, Forget: forget.Content}
	every(ctx, retainEvery, nil, func(n int) {
		if n > 1 && n%forgetTicks == 1 {
			s.runner.ForgetPolicy(keptPolicy(r))
		}
		policy.DiskCap = doctor.DiskCap(ctx, s.cfg, s.store)
		if err := s.store.Retain(ctx, policy); err != nil && ctx.Err() == nil {
			s.log.Warn("retention not applied", zap.Error(err))
		}
	})
}

// forgetTicks is how many of those ticks pass between two searches for policy to forget.
const forgetTicks = 4

// keptPolicy returns how long the policy is kept in memory: while anything rests on it, with rollups dropped by whole months; 0: forever.
func keptPolicy(r config.Retention) time.Duration {
	if r.Events == 0 || r.Rollups == 0 {
		return 0
	}
	return time.Duration(max(r.Events, r.Rollups)) + 31*24*time.Hour
}
