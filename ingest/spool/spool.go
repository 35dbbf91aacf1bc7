// Package spool keeps records on disk while Kafka does not accept them.
//
//	webhook ─▶ Spool.Produce ─▶ Kafka accepts it: stream.Producer, nothing else is touched
//	                 │ it does not within a short bound, or something is spooled already
//	                 ▼
//	           frame (records, zstd, checksums) ─▶ segment ─▶ fsync, shared ─▶ acknowledged
//	                                                  │
//	                              drainer, in order ──┴─▶ stream.Producer; position; segment deleted
//
// # Promises
//
// Produce returns nil once every record is in Kafka or durable in the spool. Records of
// successive calls keep their order by key, whichever path each took: while anything is
// spooled, everything queues behind it. A copy of a policy write reaches Kafka before its
// event. Topic, key, value, kind, cluster, source, apiserver, time of receipt and content hash
// are preserved.
//
// After a crash the drainer starts at the last position it wrote: what it had sent since is
// sent again, and recognised downstream by the event's key. What was not acknowledged may or
// may not be there.
//
// # Bounds
//
// The spool holds at most [Config.MaxBytes] and leaves [Config.MinFree] of the file system
// free. One cluster uses at most three times the room that it leaves free, so that a flood of
// one leaves a quarter to the others. What finds no room is refused with an error that matches
// stream.ErrFull; nothing that was acknowledged is ever dropped to make room.
package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/retrial-io/retrial/ingest/stream"
)

// Config is what Open needs. FS is required; zero values select the defaults stated.
type Config struct {
	// FS is the folder, which belongs to this spool alone; see OpenDir.
	FS FS
	// MaxBytes bounds the segments on disk, in bytes; DefaultMaxBytes.
	MaxBytes int64
	// MinFree is the free space on the file system that is left alone, in bytes; DefaultMinFree.
	// Negative: none.
	MinFree int64
	// SegmentBytes is the size at which a new file is started; 32 MiB.
	SegmentBytes int64
	// Direct is how long Kafka may take for a call's records before they are spooled; 2 s. Large calls get a second more for every 16 MiB.
	Direct time.Duration
	// MaxRecordBytes is the largest record accepted (see stream.RecordSize);
	// stream.DefaultMaxRecordBytes.
	MaxRecordBytes int

	Log        *zap.Logger           // nil: silent
	Registerer prometheus.Registerer // nil: metrics are kept but not exposed
}

const (
	// DefaultMaxBytes holds a quarter of an hour of 4,000 events/s of 2 KB, compressed to half, of a cluster (at most three quarters of
	// it).
	DefaultMaxBytes = 5 << 30
	// DefaultMinFree is left for whatever else is on the file system.
	DefaultMinFree = 1 << 30
	// MinMaxBytes is the smallest bound that makes sense.
	MinMaxBytes = 1 << 20

	defaultSegmentBytes = 32 << 20
	defaultDirect       = 2 * time.Second
)

func (c *Config) setDefaults() error {
	if c.FS == nil {
		return errors.New("open spool: no folder configured")
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	if c.MaxBytes < MinMaxBytes {
		return fmt.Errorf("open spool: the bound of %d bytes is too small: want at least %d", c.MaxBytes, MinMaxBytes)
	}
	c.MinFree = cmp.Or(c.MinFree, DefaultMinFree)
	c.SegmentBytes = cmp.Or(c.SegmentBytes, min(defaultSegmentBytes, c.MaxBytes/8))
	c.Direct = cmp.Or(c.Direct, defaultDirect)
	if c.MaxRecordBytes <= 0 {
		c.MaxRecordBytes = stream.DefaultMaxRecordBytes
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return nil
}

// Spool writes records to Kafka, by way of the disk while Kafka does not accept them. Its
// methods are safe for concurrent use.
type Spool struct {
	cfg      Config
	log      *zap.Logger
	producer stream.Appender
	codec    *codec
	metrics  *metrics
	wake     chan struct{} // tells the drainer that something was spooled

	spooling atomic.Bool // true while anything is in the spool; set under mu

	mu       sync.Mutex
	closed   bool
	gate     chan struct{} // not nil: calls wait until it is closed, so that the drainer reaches the end
	segments []*segment    // oldest first, all durable; the last may still grow
	pos      position      // what the drainer does next
	used     int64         // bytes of segments
	queued   int64         // bytes to be written
	by       map[string]int64
	records  int64
	since    time.Time     // when spooling began
	empty    chan struct{} // closed when the spool is empty again; nil while it is
	round    *round        // what waits for the next sync; nil if nothing does
	busy     bool          // a sync is under way
	down     error         // why the disk is not tried until retry
	retry    time.Time
	rounds   sync.WaitGroup

	writer writer // of the round under way
}

type segment struct {
	seq     uint64
	size    int64 // durable bytes, whole frames only
	records int64 // not drained
	by      map[string]int64
	keep    bool // something in it could not be sent
}

func (g *segment) name() string { return fmt.Sprintf("%016d.seg", g.seq) }
func (g *segment) kept() string { return fmt.Sprintf("%016d.kept", g.seq) }

// Open reads what an earlier process left and truncates what that had not finished. Nothing is sent before Run. The folder is closed last.
func Open(cfg Config, producer stream.Appender) (*Spool, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	if producer == nil {
		return nil, errors.New("open spool: no producer")
	}
	m := newMetrics(cfg.Registerer)
	c, err := newCodec(runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	// A failing disk fails with every post: the first lines of a minute are enough.
	log := cfg.Log.Named("ingest.spool").WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 20, 0)
	}))
	s := &Spool{cfg: cfg, log: log, producer: producer, codec: c, metrics: m,
		wake: make(chan struct{}, 1), by: map[string]int64{}}
	m.maxBytes.Set(float64(cfg.MaxBytes))
	if err := s.recover(); err != nil {
		c.close()
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return s, nil
}

// Produce returns nil once every record is in Kafka or durable in the spool.
//
// Errors are those of stream.Producer. ErrFull means that the spool has no room, or that the
// cluster has used its share; or it is Kafka's own, after which nothing is spooled: Kafka is
// reachable and asks to wait. ErrTransient means that the disk failed, or ctx ended. After an
// error some records may be stored.
func (s *Spool) Produce(ctx context.Context, recs ...stream.Record) error {
	if len(recs) == 0 {
		return nil
	}
	var cause error // why Kafka was given up
	var frames []frame
	for {
		if !s.spooling.Load() && cause == nil {
			err := s.direct(ctx, recs)
			if err == nil || !spoolable(ctx, err) {
				return err
			}
			cause = err
		}
		if frames == nil {
			if err := s.check(recs); err != nil {
				return err
			}
			frames = s.codec.encode(recs)
		}
		r, wait, err := s.enqueue(frames, len(recs), cause)
		switch {
		case err != nil && cause != nil:
			//nolint:errorlint // the spool's error decides what the caller does
			return fmt.Errorf("spool %d records: %w; they were not sent to Kafka because: %v", len(recs), err, cause)
		case err != nil:
			return fmt.Errorf("spool %d records: %w", len(recs), err)
		case wait == nil && r == nil: // everything has been drained in the meantime
			continue
		case wait == nil:
			wait = r.done
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("spool %d records: %w: %w", len(recs), stream.ErrTransient, ctx.Err())
		}
		if r == nil {
			continue
		}
		if r.err != nil {
			s.refuse(refusedDisk, len(recs))
			return fmt.Errorf("spool %d records: %w", len(recs), r.err)
		}
		s.metrics.spooled.Add(float64(len(recs)))
		return nil
	}
}

// direct sends the records to Kafka with a short deadline.
func (s *Spool) direct(ctx context.Context, recs []stream.Record) error {
	size := 0
	for i := range recs {
		size += len(recs[i].Value)
	}
	within := s.cfg.Direct + time.Duration(size)*time.Second/slowKafka
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.producer.Produce(ctx, recs...)
}

// slowKafka is the slowest rate, in bytes a second, that Kafka is given time for: a large state
// may take longer than a post.
const slowKafka = 16 << 20

// spoolable reports whether an error means that Kafka is unavailable. ErrFull does not: the log
// is reachable, and its consumers are behind.
func spoolable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (errors.Is(err, stream.ErrTransient) || errors.Is(err, stream.ErrAuth))
}

// check refuses what Kafka would refuse later.
func (s *Spool) check(recs []stream.Record) error {
	for i := range recs {
		if n := stream.RecordSize(&recs[i]); n > s.cfg.MaxRecordBytes {
			return &stream.TooLargeError{Index: i, Topic: recs[i].Topic, Size: n, Limit: s.cfg.MaxRecordBytes}
		}
	}
	return nil
}

// enqueue appends frames of n records to what is spooled. It returns the round that makes them
// durable; or a channel to wait on before another attempt; or neither, if nothing is spooled any
// more and Kafka was not tried yet.
func (s *Spool) enqueue(frames []frame, n int, cause error) (*round, <-chan struct{}, error) {
	var size int64
	for i := range frames {
		size += int64(len(frames[i].bytes))
	}
	free, freeErr := s.cfg.FS.Free()

	s.mu.Lock()
	defer s.mu.Unlock()
	cluster := frames[0].cluster
	switch {
	case s.closed:
		return nil, nil, stream.ErrClosed
	case s.gate != nil:
		return nil, s.gate, nil
	case !s.spooling.Load() && cause == nil:
		return nil, nil, nil
	case time.Now().Before(s.retry):
		s.refuse(refusedDisk, n)
		return nil, nil, s.down
	case freeErr != nil:
		s.refuse(refusedDisk, n)
		return nil, nil, fmt.Errorf("%w: %w", stream.ErrTransient, freeErr)
	case free-s.queued-size < s.cfg.MinFree:
		s.refuse(refusedRoom, n)
		return nil, nil, fullError(
			fmt.Sprintf("its file system has %d bytes free, of which %d must stay free", free, max(0, s.cfg.MinFree)),
		)
	}
	switch left := s.cfg.MaxBytes - s.used - s.queued - size; {
	case left < 0:
		s.refuse(refusedFull, n)
		return nil, nil, fullError(fmt.Sprintf("it holds %d of %d bytes", s.used+s.queued, s.cfg.MaxBytes))
	case s.by[cluster]+size > clusterShare*left:
		s.refuse(refusedShare, n)
		return nil, nil, fullError(
			fmt.Sprintf("cluster %s has used its share of it, %d bytes; %d are left to others", cluster, s.by[cluster], left),
		)
	}
	s.queued += size
	s.by[cluster] += size
	if !s.spooling.Load() {
		s.begin(cause)
	}
	return s.join(frames, n), nil, nil
}

// fullError is why there is no room. It matches stream.ErrFull.
type fullError string

func (e fullError) Error() string { return "the spool is full: " + string(e) }

// Is makes errors.Is(err, stream.ErrFull) true.
func (e fullError) Is(target error) bool { return target == stream.ErrFull }

// clusterShare bounds what one cluster may use: this many times the room it leaves free.
const clusterShare = 3

// begin records that Kafka is unavailable. s.mu is held.
func (s *Spool) begin(cause error) {
	s.mark()
	s.log.Warn("kafka does not accept records, spooling them", zap.Error(cause))
}

// mark records that there is something in the spool. s.mu is held.
func (s *Spool) mark() {
	s.spooling.Store(true)
	s.empty = make(chan struct{})
	s.since = time.Now()
	s.metrics.active.Set(1)
	s.metrics.oldest.Set(float64(s.since.Unix()))
}

// Wait returns nil once everything that was acknowledged is in Kafka, or ctx's error.
func (s *Spool) Wait(ctx context.Context) error {
	s.mu.Lock()
	empty := s.empty
	s.mu.Unlock()
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the spool to be drained: %w", ctx.Err())
	}
}

func (s *Spool) refuse(reason string, n int) {
	s.metrics.refused.WithLabelValues(reason).Add(float64(n))
}

// Status is what the spool holds.
type Status struct {
	Spooling bool  // records go to disk
	Bytes    int64 // on disk
	MaxBytes int64
	Records  int64
	Refusing error // why the disk does not accept records at present
}

// Status returns what the spool holds.
func (s *Spool) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Spooling: s.spooling.Load(), Bytes: s.used, MaxBytes: s.cfg.MaxBytes, Records: s.records,
	}
	if time.Now().Before(s.retry) {
		st.Refusing = s.down
	}
	return st
}

// Close refuses further records, waits for those under way and saves the position. Run must have returned. What is spooled stays.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.openGate()
	s.mu.Unlock()
	s.rounds.Wait()
	err := s.writer.seal()
	if s.pos != (position{}) {
		err = errors.Join(err, writePosition(s.cfg.FS, s.pos))
	}
	if len(s.segments) > 0 {
		s.log.Info("records stay in the spool until the next start",
			zap.Int64("records", s.records), zap.Int64("bytes", s.used))
	}
	s.codec.close()
	return err
}

// openGate lets waiting calls continue. s.mu is held.
func (s *Spool) openGate() {
	if s.gate != nil {
		close(s.gate)
		s.gate = nil
	}
}

// gauges updates the metrics of what is held. s.mu is held.
func (s *Spool) gauges() {
	s.metrics.bytes.Set(float64(s.used))
	s.metrics.held.Set(float64(s.records))
}
