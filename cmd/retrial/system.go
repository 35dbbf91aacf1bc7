package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/runner"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
	chdb "github.com/retrial-io/retrial/storage/embedded"
)

// system is everything between the listeners and the disk, wired once for serve and for
// the commands that open the store themselves.
type system struct {
	cfg        config.Config
	log        *zap.Logger
	reg        registry
	authority  *identity.Authority
	redactor   *event.Redactor
	stream     *stream.Client
	store      *storage.Store
	engine     *chdb.Engine // of the embedded store; nil when the store is a server
	otherwise  *otherwise
	runner     *runner.Runner
	rules      *detect.Set
	apiservers *apiservers
	detect     *detections
	asking     *queryLog
	contacts   *webhook.Contacts // who reached the webhook's listener
	hook       string            // its address, once it listens

	closers []func() error // in the order they were opened
}

// registry is where metrics go and where /metrics reads them.
type registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// openSystem opens the data directory, the engines and the clients. What was opened is
// closed again when anything fails.
func openSystem(ctx context.Context, cfg config.Config, log *zap.Logger, reg registry) (_ *system, err error) {
	s := &system{cfg: cfg, log: log, reg: reg, contacts: webhook.NewContacts(nil)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(filepath.Dir(positionFile(cfg, "")), 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w; choose another with --data-dir", err)
	}
	key, err := redactionKey(cfg, log)
	if err != nil {
		return nil, err
	}
	s.redactor = event.NewRedactor(key)
	if s.authority, err = identity.Open(identityConfig(cfg), log, reg); err != nil {
		return nil, err
	}
	if s.rules, err = configuredRules(cfg); err != nil {
		return nil, err
	}
	if s.apiservers, err = openApiservers(cfg.Replay.ApiserverConfig, log, reg); err != nil {
		return nil, err
	}
	if err := s.openStream(ctx); err != nil {
		return nil, err
	}
	if s.store, err = s.openStore(ctx); err != nil {
		return nil, err
	}
	s.asking = newQueryLog(s.store, log)
	if err := reg.Register(newSiteMetrics(s)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.closers = append(s.closers, s.asking.close)
	s.detect = newDetections(s)
	engine := replay.New(replay.Config{Lag: time.Duration(cfg.Replay.Lag), Version: version, Apiserver: s.apiservers.history})
	s.runner, err = runner.New(runner.Config{
		Hold: nonZero(cfg.Replay.Hold), Linger: nonZero(cfg.Replay.Linger), BatchRecords: int(cfg.Replay.BatchRows),
		Lag: max(2*time.Second, time.Duration(cfg.Replay.Lag)), Redact: s.redactor.RedactBytes, Tagger: s.detect.tagger, Log: log, Registerer: reg,
	}, runner.Kafka{Client: s.stream}, engine, s.store)
	if err != nil {
		return nil, err
	}
	s.otherwise, err = newOtherwise(engine, s.store, s.site().dataDir(), log, reg)
	return s, err
}

// redactionKey returns the installation's key. Data that was redacted under another key is
// not opened: events sent again would no longer equal those stored.
func redactionKey(cfg config.Config, log *zap.Logger) ([]byte, error) {
	if err := identity.CheckKeyPath(cfg.KeyFile, cfg.DataDir); err != nil {
		return nil, fmt.Errorf("%w (--key-file)", err)
	}
	file := filepath.Join(cfg.DataDir, "redaction-key.id")
	known, knownErr := os.ReadFile(file)
	if _, err := os.Stat(cfg.KeyFile); knownErr == nil && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("redaction key %s is not there, and %s was filled under one: restore it, or name it with --key-file", cfg.KeyFile, cfg.DataDir)
	}
	key, created, err := identity.KeyFile(cfg.KeyFile, cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("%w (--key-file)", err)
	}
	if created {
		log.Info("made the redaction key; back it up", zap.String("file", absolute(cfg.KeyFile)))
	}
	switch err := knownErr; {
	case errors.Is(err, os.ErrNotExist):
		if err := os.WriteFile(file, []byte(identity.KeyID(key)+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("data directory: %w", err)
	case strings.TrimSpace(string(known)) != identity.KeyID(key):
		return nil, fmt.Errorf("redaction key %s is not the one %s was filled under: name that one with --key-file, or use another --data-dir", cfg.KeyFile, cfg.DataDir)
	}
	return key, nil
}

// nonZero turns a configured 0 into "none": the runner takes 0 for its default.
func nonZero(d config.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}

func (s *system) openStream(ctx context.Context) error {
	k := s.cfg.Kafka
	cfg := stream.Config{
		Brokers: k.Brokers, TopicPrefix: k.TopicPrefix, Partitions: int(k.Partitions), Replication: int(k.Replication),
		MaxRecordBytes: int(s.cfg.Webhook.MaxEventBytes) + recordOverhead, Log: s.log, Registerer: s.reg,
	}
	if cfg.Partitions == 0 {
		cfg.Partitions = realPartitions
		if len(k.Brokers) == 0 {
			cfg.Partitions = embeddedPartitions
		}
	}
	if len(k.Brokers) == 0 {
		broker, err := embedded.Start(embedded.Config{
			Dir: filepath.Join(s.cfg.DataDir, "kafka"), MaxBytes: int64(k.EmbeddedMaxBytes),
			Consumers: stream.Consumers(k.TopicPrefix), Reserve: []string{k.TopicPrefix + stream.TopicDeadLetter},
			Verify: stream.VerifyCommit, Log: s.log, Registerer: s.reg,
		})
		if err != nil {
			return fmt.Errorf("embedded kafka: %w", err)
		}
		s.closers = append(s.closers, broker.Close)
		cfg.Brokers, cfg.Dial, cfg.Replication = []string{broker.Addr()}, broker.Dial, 1
	}
	var err error
	if cfg.SASL, err = saslOf(k); err != nil {
		return err
	}
	if k.TLS {
		if cfg.TLS, err = tlsOf(k.CAFile); err != nil {
			return err
		}
	}
	if s.stream, err = stream.NewClient(cfg); err != nil {
		return err
	}
	s.closers = append(s.closers, s.stream.Close)
	return s.stream.EnsureTopics(ctx)
}

// Partitions of topics that are made, when the configuration leaves it open. Every insert
// has a fixed cost, so one process does best with one partition; several processes need
// some to share. Measured with bench pipeline (docs/bench.md).
const (
	embeddedPartitions = 1
	realPartitions     = 12
)

// recordOverhead is what a record's key and headers may take beside the event.
const recordOverhead = 2 << 10

func saslOf(k config.Kafka) (*stream.SASL, error) {
	if k.SASLMechanism == "" {
		return nil, nil
	}
	password, err := readSecret("kafka-sasl-password-file", k.SASLPasswordFile)
	if err != nil {
		return nil, err
	}
	return &stream.SASL{Mechanism: k.SASLMechanism, User: k.SASLUser, Password: password}, nil
}

func tlsOf(caFile string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("kafka-ca-file: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("kafka-ca-file: %s holds no PEM certificate", caFile)
	}
	return c, nil
}

func readSecret(flag, path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%s: name the file that holds the secret", flag)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return strings.TrimSpace(string(b)), nil
}

func (s *system) openStore(ctx context.Context) (*storage.Store, error) {
	c := s.cfg.ClickHouse
	cfg := storage.Config{Database: c.Database, Log: s.log, Registerer: s.reg}
	if c.DSN == "" {
		engine, err := chdb.Open(chdb.Config{
			Path: storeDir(s.cfg), Library: c.Library, MaxMemory: int64(c.EmbeddedMaxMemory), Log: s.log,
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
	}
	store, err := storage.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, store.Close)
	return store, nil
}

// storeDir is where the embedded store keeps its files.
func storeDir(cfg config.Config) string { return filepath.Join(cfg.DataDir, "clickhouse") }

// dsnOf returns the DSN with the password from its file.
func dsnOf(c config.ClickHouse) (string, error) {
	if c.PasswordFile == "" {
		return c.DSN, nil
	}
	u, err := url.Parse(c.DSN)
	if err != nil {
		return "", fmt.Errorf("clickhouse-dsn: it is no URL; write http://user@host:8123/database")
	}
	password, err := readSecret("clickhouse-password-file", c.PasswordFile)
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// retainEvery is how often what is past its retention is looked for.
const retainEvery = 15 * time.Minute

// retain drops what is past its retention until ctx ends. A failure is told and tried
// again: disk is used for longer, nothing else suffers.
func (s *system) retain(ctx context.Context) {
	r := s.cfg.Retention
	days := func(d config.Duration) int { return int(time.Duration(d) / (24 * time.Hour)) }
	policy := storage.Retention{EventDays: days(r.Events), RollupDays: days(r.Rollups), DiskCap: int64(r.DiskCap), KeepImports: r.KeepImports}
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for ticks := 1; ; ticks++ {
		if err := s.store.Retain(ctx, policy); err != nil && ctx.Err() == nil {
			s.log.Warn("retention not applied", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if ticks%forgetTicks == 0 {
			s.runner.ForgetPolicy(keptPolicy(r))
		}
	}
}

// forgetTicks is how many of those ticks lie between two looks for policy to forget.
const forgetTicks = 4

// keptPolicy is how long before the requests that come the policy is kept in memory: as long
// as anything stays that rests on it, rollups being dropped by whole months; 0: for ever.
func keptPolicy(r config.Retention) time.Duration {
	if r.Events == 0 || r.Rollups == 0 {
		return 0
	}
	return time.Duration(max(r.Events, r.Rollups)) + 31*24*time.Hour
}

// close closes what was opened, last first.
func (s *system) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// receiver returns the handler audit events are posted to. The trusted one takes imports
// and states without authentication and must only be reachable by the owner.
func (s *system) receiver(trusted bool) (http.Handler, error) {
	w := s.cfg.Webhook
	cfg := webhook.Config{
		MaxBody: int64(w.MaxBodyBytes), MaxEvent: int(w.MaxEventBytes), MaxInFlight: int64(w.MaxInFlightBytes),
		MaxClusterInFlight: int64(w.MaxClusterInFlight), Anonymous: w.AllowAnonymous, Trusted: trusted, Ready: s.ready,
	}
	if trusted {
		cfg.State = s.takeState
	} else {
		cfg.Contacts = s.contacts
	}
	return webhook.New(cfg, s.stream.Producer(), s.redactor, s.authority.Registry(), s.log, s.reg)
}

func (s *system) ready(ctx context.Context) error {
	if err := s.stream.Ping(ctx); err != nil {
		return err
	}
	return s.store.Ping(ctx)
}

// takenState is the answer to a state that was taken in.
type takenState struct {
	Objects int            `json:"objects"`
	Kinds   []string       `json:"kinds"`
	Skipped map[string]int `json:"skipped,omitempty"` // objects of kinds the replica does not keep
}

// String tells people what became of the listing.
func (t takenState) String() string {
	text := fmt.Sprintf("%d objects", t.Objects)
	if len(t.Skipped) == 0 {
		return text
	}
	kinds := slices.Sorted(maps.Keys(t.Skipped))
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", t.Skipped[kind], kind)
	}
	return text + "; not needed and left out: " + strings.Join(kinds, ", ")
}

// takeState turns a listing, as kubectl prints it, into observations on audit.policy.
func (s *system) takeState(ctx context.Context, cluster string, since time.Time, r io.Reader) (any, error) {
	snap, skipped, err := state.ReadSnapshot(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", webhook.ErrBadState, err)
	}
	snap.Since = since
	observations := snap.Observations()
	if len(snap.Objects) == 0 {
		return nil, fmt.Errorf("%w: it holds no role, binding, namespace or service account", webhook.ErrBadState)
	}
	if err := s.runner.CheckCluster(cluster, observations...); err != nil {
		return nil, fmt.Errorf("%w: %w; is it meant for another cluster's name?", webhook.ErrBadState, err)
	}
	now := time.Now()
	records := make([]stream.Record, 0, len(observations))
	for _, o := range observations {
		if len(o.Object) > 0 { // annotations hold copies of Secrets, and tokens
			o.Object = s.redactor.RedactObject(o.Resource, o.Object)
		}
		records = append(records, stream.PolicyRecord(stream.KindObservation, cluster, "import", now, o.Append(nil)))
	}
	if err := s.stream.Producer().Produce(ctx, records...); err != nil {
		return nil, err
	}
	s.log.Info("state taken in", zap.String("cluster", cluster), zap.Int("objects", len(snap.Objects)))
	return takenState{Objects: len(snap.Objects), Kinds: snap.Kinds, Skipped: skipped}, nil
}
