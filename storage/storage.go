// Package storage keeps events, verdicts, usage and policy history in ClickHouse: the
// embedded engine by default, a server by DSN, the same SQL and the same driver on both.
//
//	Row ──block──▶ INSERT (one block, one token) ──▶ events ──counted──▶ access_usage, grant_usage,
//	                                                                    volume, activity, accesses, group_sets
//	Observation ─▶ policy_objects      DeadLetter ─▶ dead_letters      queries ◀── all of them
//
// What keeps it exact:
//   - Rows are only added. A correction adds the old row with sign −1 and the new one with
//     +1; counts are sum(sign), lists use FINAL and sign = 1.
//   - A block goes in under a deduplication token that its rollups share, so sending it again
//     changes nothing while the token is remembered; Known finds the rows after that.
//   - Rollups are made by views of each insert at a server, and from many inserts' rows at a time
//     in the embedded engine: before anything reads them.
//   - Recover makes the rollups of one Kafka partition equal to its events by state, not by
//     token: it converges from whatever a crash left.
//
// docs/schema.md lists the tables; docs/adr has the reasons.
package storage

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/schema"
	"github.com/retrial-io/retrial/storage/statement"
)

// Config says where the store is. Exactly one of DSN and Transport is set.
type Config struct {
	// DSN of a server: http(s)://user:password@host:8123/?setting=value. The database in it is ignored in favour of Database.
	DSN string
	// TLS for an https DSN; nil: the system's roots.
	TLS *tls.Config
	// Transport runs the requests in process, see storage/embedded.
	Transport http.RoundTripper
	// Shared says that other processes write into the same database. It is so at a server; an embedded store is this process's alone
	// unless a test plays several. Where it is not, rollups are made later than events are stored, see later.
	Shared bool
	// Database to use. Default "retrial".
	Database string
	// ClusterName is that of a cluster of servers, as their remote_servers have it: tables are replicated and lie in the database named
	// Database and "_local", Distributed ones over them in Database. Empty: a single server.
	ClusterName string
	// ReadOnly opens the store for queries alone: no migrations, and the server is told to refuse writes (readonly=2).
	ReadOnly bool
	// Now is the clock, for retention only. Default time.Now.
	Now func() time.Time
	// Log receives lifecycle messages; nil: none.
	Log *zap.Logger
	// Registerer receives the metrics; nil: none are registered.
	Registerer prometheus.Registerer
}

// Store is an open store; safe for concurrent use. The methods implement the interfaces its
// users declare (replay/runner Store, dashboards/ui Queries).
type Store struct {
	*queries.Reader
	cfg     Config
	db      string // quoted
	user    string // at a server
	conn    driver.Conn
	metrics *metrics
	folds   *codec.Folds
	later   *later  // nil: inserts make rollups
	recent  *recent // nil: others write, too

	trim     trimLimits
	trimming sync.Mutex
	trimAt   int64 // bytes of policy_objects from which it is looked at again; by trimming

	inserted   atomic.Uint64 // blocks, those that failed included
	changed    chan struct{} // has an element when there are more of them
	inserts    *gathering[insertMember]
	lookups    *gathering[*lookup]
	mends      *gathering[[]time.Time] // days
	mu         sync.Mutex
	regulars   map[int32]time.Time // when a partition inserted last
	blocks     []*pendingBlock     // at rest, for the next inserts
	partitions map[int32]*partition
}

// partition serializes what is done to the rows of one Kafka partition in this process.
type partition struct {
	sync.Mutex
	checked int    // inserts verified since the last doubt, see Insert
	sent    tokens // of inserts that others may have had rows in, whatever became of them
}

// databaseName matches names that are safe in SQL and in file names.
var databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`) //nolint:gochecknoglobals // compiled constant

var clusterName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`) //nolint:gochecknoglobals // compiled constant

// Open connects, creates the database and applies the migrations that are missing.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg.Database = cmp.Or(cfg.Database, "retrial")
	if cfg.ClusterName != "" && !clusterName.MatchString(cfg.ClusterName) {
		return nil, fmt.Errorf("open store: cluster %q: use letters, digits, -, _ and dots", cfg.ClusterName)
	}
	if !databaseName.MatchString(cfg.Database) {
		return nil, fmt.Errorf("open store: database %q: use letters, digits and underscores", cfg.Database)
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Store{
		changed: make(chan struct{}, 1),
		db:      "`" + cfg.Database + "`", folds: codec.NewFolds(), trim: usualTrim,
		partitions: map[int32]*partition{}, regulars: map[int32]time.Time{},
		inserts: newGathering[insertMember](), lookups: newGathering[*lookup](),
		mends: newGathering[[]time.Time]()}
	if cfg.Transport != nil {
		cfg.Transport = upToDate{cfg.Transport, s}
	}
	opt, err := options(cfg)
	if err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.cfg, s.user, s.conn, s.Reader = cfg, cmp.Or(opt.Auth.Username, "default"), conn, queries.New(statement.DB{Conn: conn, Name: s.db})
	if s.metrics, err = newMetrics(cfg.Registerer); err != nil {
		conn.Close()
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := conn.Ping(ctx); err != nil {
		conn.Close()
		return nil, s.connecting(err)
	}
	if !cfg.ReadOnly {
		if err := errors.Join(s.checkRights(ctx), s.checkCluster(ctx)); err != nil {
			conn.Close()
			return nil, fmt.Errorf("open store: %w", err)
		}
		if err := s.migrate(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		for _, step := range []func(context.Context) error{s.durable, s.countLater, s.fill} {
			if err := step(ctx); err != nil {
				conn.Close()
				return nil, err
			}
		}
	}
	return s, nil
}

func options(cfg Config) (*clickhouse.Options, error) {
	opt := &clickhouse.Options{Protocol: clickhouse.HTTP, Addr: []string{"embedded:8123"}}
	switch {
	case cfg.DSN != "" && cfg.Transport != nil:
		return nil, errors.New("open store: both a DSN and an embedded transport are given")
	case cfg.DSN != "":
		var err error
		if opt, err = parseDSN(cfg.DSN); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		if opt.Protocol != clickhouse.HTTP {
			return nil, errors.New("open store: the DSN must begin with http:// or https://")
		}
		if cfg.TLS != nil {
			opt.TLS = cfg.TLS
		}
	case cfg.Transport == nil:
		return nil, errors.New("open store: neither a DSN nor an embedded transport is given")
	}
	opt.Auth.Database = "" // set per statement: it may not exist yet
	opt.MaxOpenConns, opt.MaxIdleConns = 24, 12
	opt.Settings = merge(opt.Settings, readSettings)
	if cfg.ClusterName != "" {
		opt.Settings = merge(opt.Settings, clusterSettings)
	}
	if cfg.ReadOnly {
		opt.Settings["readonly"] = 2
	}
	opt.TransportFunc = func(base *http.Transport) (http.RoundTripper, error) {
		if cfg.Transport != nil {
			return payloads{cfg.Transport}, nil
		}
		return payloads{base}, nil
	}
	return opt, nil
}

// readSettings apply to every statement.
var readSettings = clickhouse.Settings{ //nolint:gochecknoglobals // constant table
	// All versions of a row share its ingest day, so FINAL need not look across partitions.
	"do_not_merge_across_partitions_select_final": 1,
	// All versions of a row share what the skip indexes are on, so they hold under FINAL.
	"use_skip_indexes_if_final": 1,
	"async_insert":              0,
	"max_query_size":            16 << 20, // key lists of a block
	"session_timezone":          "UTC",
	"optimize_on_insert":        0, // a block lands as it is: the views have seen every row of it
}

// clusterSettings apply to every statement in the cluster form.
var clusterSettings = clickhouse.Settings{ //nolint:gochecknoglobals // constant table
	// An INSERT is answered when its shard has stored it, not when it is to be sent there.
	"distributed_foreground_insert": 1,
	// An INSERT ... SELECT is of the rows of all shards, not of each shard's for itself.
	"parallel_distributed_insert_select": 0,
	// Subqueries of all shards are asked once and their answers sent along.
	"distributed_product_mode": "global",
	// One replica of a shard answers while it is there: it has what was written through it.
	"load_balancing": "in_order",
}

func merge(into, from clickhouse.Settings) clickhouse.Settings {
	if into == nil {
		into = clickhouse.Settings{}
	}
	maps.Copy(into, from)
	return into
}

// Close closes the connections; an embedded engine is closed by whoever opened it.
func (s *Store) Close() error {
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Ping reports whether the store answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.conn.Ping(ctx); err != nil {
		return fmt.Errorf("ping store: %w", err)
	}
	return nil
}

// table returns the quoted, qualified name of a table.
func (s *Store) table(name string) string { return s.db + "." + name }

// partition returns the lock of a Kafka partition.
func (s *Store) partition(n int32) *partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partitions[n]
	if p == nil {
		p = &partition{}
		s.partitions[n] = p
	}
	return p
}

// form returns the form in which the store's DDL is rendered.
func (s *Store) form() schema.Form {
	return schema.Form{Database: "`" + s.localDatabase() + "`", ClusterName: s.cfg.ClusterName}
}

// localDatabase returns the database of the tables themselves; in the cluster form, Database has the Distributed ones over them.
func (s *Store) localDatabase() string {
	if s.cfg.ClusterName == "" {
		return s.cfg.Database
	}
	return s.cfg.Database + "_local"
}

// local returns the quoted, qualified name of a table that holds rows: for statements about the table, not about its rows.
func (s *Store) local(name string) string { return s.form().Database + "." + name }

// at returns where statements go.
func (s *Store) at() statement.DB { return statement.DB{Conn: s.conn, Name: s.db} }

// metrics are the store's; without a registerer they are not exported. One store per registerer.
type metrics struct {
	rows      prometheus.Counter
	bytes     prometheus.Counter
	inserts   *prometheus.CounterVec
	seconds   prometheus.Histogram
	known     prometheus.Histogram
	rolled    prometheus.Histogram
	repaired  *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	reinserts prometheus.Counter
	folded    *prometheus.CounterVec
	forgotten *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	buckets := []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}
	m := &metrics{
		rows: prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_storage_rows_total",
			Help: "Rows inserted into events, rows that take others back included."}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_storage_insert_bytes_total",
			Help: "Bytes of insert blocks as sent."}),
		inserts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_inserts_total",
			Help: "Inserts by result: ok, error."}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "retrial_storage_insert_seconds",
			Help: "Time of an insert, encoding included.", Buckets: buckets}),
		known: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "retrial_storage_known_seconds",
			Help: "Time of looking up which rows of a block are stored.", Buckets: buckets}),
		rolled: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "retrial_storage_rollup_seconds",
			Help: "Time of counting the rows of several inserts in the rollups.", Buckets: buckets}),
		repaired: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_repaired_rows_total",
			Help: "Rows recovery added to a rollup to make it equal to its events."}, []string{"table"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_dropped_partitions_total",
			Help: "Table partitions dropped, by table and cause: retention, disk."}, []string{"table", "cause"}),
		reinserts: prometheus.NewCounter(prometheus.CounterOpts{Name: "retrial_storage_reinserted_blocks_total",
			Help: "Blocks the store claimed to have but had lost, sent again."}),
		folded: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_folded_total",
			Help: "Requests, and checks behind them, that rollups do not count under an access of their own: kind (without the name), " +
				"other (beyond what a subject or a cluster has in a day), nobody (refused, of nobody in particular), groups (as a " +
				"subject whose set of groups is not told apart), subject (nor is the subject); of activity, agent (beyond the user " +
				"agents of a subject or a cluster in a day); of detections, first-seen (beyond the keys of a user or a cluster in a day)."},
			[]string{"as"}),
		forgotten: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "retrial_storage_policy_contents_forgotten_total",
			Help: "Contents of policy objects that were forgotten because an object, or all of a cluster, was written too often, by " +
				"cluster. What they were is unknown from then on."}, []string{"cluster"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.rows, m.bytes, m.inserts, m.seconds, m.known, m.rolled, m.repaired, m.dropped, m.reinserts,
		m.folded, m.forgotten} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
