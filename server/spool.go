package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/spool"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/sleep"
)

// producer returns the spool in front of Kafka, or Kafka alone.
func (s *system) producer() stream.Appender {
	if s.spool != nil {
		return s.spool
	}
	return s.stream.Producer()
}

// How long Kafka may take before its records are spooled. The embedded broker is in this process, and mostly on the same disk: the spool
// helps if it can store nothing more, not if the disk is slow.
const (
	directReal     = 2 * time.Second
	directEmbedded = 10 * time.Second
)

// openSpool puts the spool in front of Kafka. If the spool is switched off, it warns of records left in it.
func (s *system) openSpool() error {
	c, path := s.cfg.Spool, s.cfg.SpoolDir()
	if !c.On {
		if left, _ := filepath.Glob(filepath.Join(path, "*.seg")); len(left) > 0 { // the pattern is sound
			s.log.Warn("the spool is switched off, and records are in it that were acknowledged: start once with --spool on",
				zap.String("folder", config.Absolute(path)), zap.Int("segments", len(left)))
		}
		return nil
	}
	dir, err := spool.OpenDir(path)
	if err != nil {
		return fmt.Errorf("%w; choose another folder with --spool-dir, or do without: --spool off", err)
	}
	s.closers = append(s.closers, dir.Close)
	cfg := spool.Config{
		FS: dir, MaxBytes: int64(c.MaxBytes), MinFree: int64(c.MinFreeBytes), Direct: directReal,
		MaxRecordBytes: int(s.cfg.Webhook.MaxEventBytes) + recordOverhead, Log: s.log, Registerer: s.reg,
	}
	if c.MinFreeBytes == 0 {
		cfg.MinFree = -1
	}
	if len(s.cfg.Kafka.Brokers) == 0 {
		cfg.Direct = directEmbedded
	}
	if s.spool, err = spool.Open(cfg, s.stream.Producer()); err != nil {
		return fmt.Errorf("%w (--spool-dir %s)", err, path)
	}
	s.closers = append(s.closers, s.spool.Close)
	return nil
}

// topicsEvery is the pause between attempts to make the topics.
const topicsEvery = 5 * time.Second

// runSpool sends what is spooled, and makes the topics if that could not be done at the start.
func (s *system) runSpool(ctx context.Context) error {
	said := ""
	for s.topicsLater { // set before anything runs
		err := s.stream.EnsureTopics(ctx)
		if err == nil {
			s.log.Info("kafka is reachable")
			break
		}
		if text := err.Error(); text != said && !errors.Is(err, stream.ErrTransient) && ctx.Err() == nil {
			said = text // it may need somebody
			s.log.Error("kafka is reachable, but its topics cannot be made; records are spooled", zap.Error(err))
		}
		if sleep.For(ctx, topicsEvery) != nil {
			return nil
		}
	}
	return s.spool.Run(ctx)
}

// pingWithin is how long Kafka may take to answer a readiness probe, which waits a few seconds at most; a silent broker never answers.
const pingWithin = 2 * time.Second

// reachable returns nil if posts can be acknowledged: by Kafka, or by a spool with room.
func (s *system) reachable(ctx context.Context) error {
	if s.spool == nil {
		return s.stream.Ping(ctx)
	}
	st := s.spool.Status()
	room := st.Refusing == nil && float64(st.Bytes) < doctor.NearFull*float64(st.MaxBytes)
	if st.Spooling && room {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	if err := s.stream.Ping(ctx); err != nil && !room {
		return fmt.Errorf("%w; and the spool holds %d of %d bytes", err, st.Bytes, st.MaxBytes)
	}
	return nil
}
