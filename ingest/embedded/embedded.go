// Package embedded runs the Kafka broker of a one-node installation in the process: kfake, written as a test fake, behind safeguards.
//
//	stream.Client ──Dial──▶ in-process pipe ─▶ guard ─▶ kfake ─▶ Dir/log   (acknowledged after fsync)
//	                                                      ▲
//	             ticker: delete below what every group has committed, keep the last batch
//
// The safeguards:
//
//   - No listening socket. Clients come through [Broker.Dial], so no other process can send
//     a byte; every frame is still checked (size, known request), because one bad frame would
//     end the whole process.
//   - One owner. The directory is locked with flock; the second process gets a
//     [LockedError] that names the first.
//   - No retention. The broker's own retention is switched off; only what every named
//     group has committed is deleted, and never the last batch of a partition, from which
//     the next offset is derived after a crash.
//   - A cap. Above MaxBytes of unconsumed log produce requests are answered with
//     THROTTLING_QUOTA_EXCEEDED, which package stream turns into stream.ErrFull and the
//     receiver into 429. Nothing is ever deleted to make room.
//   - Acknowledged means on disk: responses wait for fsync, which many share (see durable).
//   - No offset goes back unnoticed. At start every commit is compared with the log that was
//     found; one that points past it is reset before a client can connect (see
//     Config.Verify).
//
// It is for one node: evaluation, development, small clusters. There is no replication, and a start after a kill reads the whole log.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
)

const (
	// DefaultMaxBytes is the cap on unconsumed log when Config.MaxBytes is 0.
	DefaultMaxBytes = 2 << 30
	// MinMaxBytes is the smallest cap that leaves room for the last batch every
	// partition keeps.
	MinMaxBytes = 32 << 20
	// longestSession is the longest session timeout a group member may request.
	longestSession = 7 * 24 * time.Hour

	// defaultTrimInterval is how often consumed log is deleted.
	defaultTrimInterval = time.Second
	// segmentBytes is when the broker starts a new file. Only whole files are deleted: up to one per partition outlives its records.
	segmentBytes = 16 << 20

	// address is what the broker advertises. It is not a network address: Dial is the only way
	// in and ignores it.
	address = "embedded:9092"
)

// Config is what Start needs. Dir is required.
type Config struct {
	// Dir holds the lock, and the log in Dir/log. It is created if missing (mode 0700)
	// and must belong to this broker alone.
	Dir string
	// MaxBytes caps the unconsumed log over all topics, in bytes as stored (0:
	// DefaultMaxBytes). At the cap producers are refused.
	MaxBytes int64
	// Consumers names, per topic, the groups whose commits permit deletion. A record is
	// deleted once all of them have committed past it; nothing is deleted from a
	// topic that is not named here, nor is it counted against MaxBytes.
	Consumers map[string][]string
	// Reserve names the topics that may use a further eighth of MaxBytes once the cap is
	// reached. The dead-letter topic belongs here: a consumer that must set aside a bad record
	// would otherwise wait for room that only its own progress can make.
	Reserve []string
	// Verify is called at start with every commit of a group in Consumers. It returns
	// ok = false if the commit needs records the log no longer has (its end is
	// highWatermark), and the metadata to write with the commit that replaces it, at the
	// log's start. Nil: a commit above the high watermark is replaced, with no metadata.
	Verify func(committed int64, metadata string, highWatermark int64) (replacement string, ok bool)
	// TrimInterval is how often consumed records are deleted (0: one second).
	TrimInterval time.Duration
	// Sync makes a file or directory durable before its content is acknowledged. Nil: (*os.File).Sync; fault tests put a failure here.
	Sync func(f *os.File) error

	Log        *zap.Logger           // nil: silent
	Registerer prometheus.Registerer // nil: metrics are kept but not exposed
}

// Broker is a running embedded broker. Its methods are safe for concurrent use.
type Broker struct {
	cfg     Config
	log     *zap.Logger
	metrics *metrics
	lock    *os.File
	pipe    *pipeListener
	disk    *durable
	kafka   *kfake.Cluster

	held atomic.Int64 // bytes of log at and above each partition's start

	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// Start locks the directory, loads the log, repairs commits that point past it and begins
// to serve. It returns a *LockedError if another process holds the directory; other errors say
// what could not be created, read or written.
func Start(cfg Config) (*Broker, error) {
	if cfg.Dir == "" {
		return nil, errors.New("start embedded broker: no directory configured")
	}
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	if cfg.MaxBytes < MinMaxBytes {
		return nil, fmt.Errorf("start embedded broker: the cap of %d bytes is too small: want at least %d", cfg.MaxBytes, MinMaxBytes)
	}
	cfg.TrimInterval = cmp.Or(cfg.TrimInterval, defaultTrimInterval)
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	m := newMetrics(cfg.Registerer)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start embedded broker: create directory: %w", err)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start embedded broker: %w", err)
	}

	b := &Broker{cfg: cfg, log: cfg.Log, metrics: m, lock: lock, stop: make(chan struct{})}
	logDir := filepath.Join(cfg.Dir, "log")
	b.disk = newDurable(logDir, func(err error) {
		m.failed.Set(1)
		b.log.Error("the log cannot be synced: nothing is acknowledged until the next start", zap.Error(err))
	})
	if cfg.Sync != nil {
		b.disk.sync = cfg.Sync
	}
	b.pipe = newPipeListener(func(reason string) { m.rejected.WithLabelValues(reason).Inc() }, b.disk.responded)
	started := time.Now()
	b.kafka, err = kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ClusterID("retrial-embedded"),
		kfake.DataDir(logDir),
		kfake.ListenFn(func(_, _ string) (net.Listener, error) { return b.pipe, nil }),
		kfake.WithLogger(brokerLog{cfg.Log}),
		// Members live in this process and stop when it does.
		kfake.GroupMaxSessionTimeout(longestSession),
		kfake.BrokerConfigs(map[string]string{
			"log.segment.bytes": fmt.Sprint(segmentBytes),
			// The broker deletes nothing by itself: no limits, no ticker, no expiry of the commits of a group that did not run.
			"log.retention.ms":          "-1",
			"log.retention.bytes":       "-1",
			"log.cleaner.backoff.ms":    fmt.Sprint(int64(365 * 24 * time.Hour / time.Millisecond)),
			"offsets.retention.minutes": fmt.Sprint(1<<31 - 1),
		}),
	)
	if err != nil {
		b.pipe.Close()
		lock.Close()
		return nil, fmt.Errorf("start embedded broker: open the log in %s: %w "+
			"(restore the directory, or move it away to start empty and lose the records not yet consumed)", cfg.Dir, err)
	}
	b.kafka.ControlKey(produceKey, b.admit)
	if err := b.verify(); err != nil {
		b.shut()
		return nil, fmt.Errorf("start embedded broker: %w", err)
	}
	b.Trim()
	b.done.Add(1)
	go b.trimLoop()
	b.log.Info("embedded broker started", zap.String("dir", cfg.Dir), zap.Int64("log_bytes", b.held.Load()),
		zap.Int64("max_bytes", cfg.MaxBytes), zap.Duration("took", time.Since(started)))
	return b, nil
}

// Addr returns the address the broker advertises, for a client's list of brokers. Only Dial
// reaches it.
func (b *Broker) Addr() string { return address }

// Dial opens a connection to the broker; network and addr are ignored. It fits kafka.Transport, kafka.Dialer and stream.Config.
func (b *Broker) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return b.pipe.dial(ctx)
}

// Held returns the bytes of log that count against MaxBytes.
func (b *Broker) Held() int64 { return b.held.Load() }

// Close stops the broker, writes its state and releases the directory. Requests under way
// fail. Further calls do nothing.
func (b *Broker) Close() error {
	b.once.Do(func() {
		close(b.stop)
		b.done.Wait()
		b.Trim()
		b.shut()
		b.log.Info("embedded broker stopped", zap.String("dir", b.cfg.Dir))
	})
	return nil
}

func (b *Broker) shut() {
	b.kafka.Close()
	b.pipe.Close()
	b.disk.close()
	b.lock.Close()
}

// brokerLog passes the broker's warnings on; what it logs about requests is dropped.
type brokerLog struct{ log *zap.Logger }

func (l brokerLog) Logf(level kfake.LogLevel, msg string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		l.log.Error("embedded broker", zap.String("detail", fmt.Sprintf(msg, args...)))
	case kfake.LogLevelWarn:
		l.log.Warn("embedded broker", zap.String("detail", fmt.Sprintf(msg, args...)))
	}
}

type metrics struct {
	held, limit, failed      prometheus.Gauge
	refused, trimmed, resets prometheus.Counter
	rejected                 *prometheus.CounterVec // reason: size, key, version
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: "retrial_embedded_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: "retrial_embedded_" + name, Help: help})
	}
	m := &metrics{
		held:    gauge("log_bytes", "Bytes of the embedded broker's log that are not yet consumed."),
		limit:   gauge("log_limit_bytes", "Cap on retrial_embedded_log_bytes, at which producers are refused."),
		refused: counter("refused_requests_total", "Produce requests refused because the log was at its cap."),
		trimmed: counter("trimmed_records_total", "Records deleted after every consumer group had committed them."),
		resets:  counter("resets_total", "Commits found at start that pointed past the log and were reset: records were lost."),
		failed:  gauge("sync_failed", "1 after the log could not be synced to disk: nothing is acknowledged until the next start."),
		rejected: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "retrial_embedded_rejected_frames_total",
			Help: "Connections ended because of a frame that the broker must not see."}, []string{"reason"}),
	}
	for _, r := range []string{"size", "key", "version"} {
		m.rejected.WithLabelValues(r)
	}
	return m
}
