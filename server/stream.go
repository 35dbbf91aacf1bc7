package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/config"
)

func (s *system) openStream(ctx context.Context) error {
	k := s.cfg.Kafka
	cfg, err := streamConfig(s.cfg)
	if err != nil {
		return err
	}
	cfg.Log, cfg.Registerer = s.log, s.reg
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
		cfg.Brokers, cfg.Dial, cfg.Replication, cfg.InProcess = []string{broker.Addr()}, broker.Dial, 1, true
	}
	if s.stream, err = stream.NewClient(cfg); err != nil {
		return err
	}
	s.closers = append(s.closers, s.stream.Close)
	return s.ensureTopics(ctx)
}

// streamConfig returns what the configuration says about the stream.
func streamConfig(c config.Config) (cfg stream.Config, err error) {
	k := c.Kafka
	cfg = stream.Config{Brokers: k.Brokers, TopicPrefix: k.TopicPrefix, Partitions: int(k.Partitions),
		ClusterPartitions: int(k.ClusterPartitions), Replication: int(k.Replication),
		MaxRecordBytes: int(c.Webhook.MaxEventBytes) + recordOverhead}
	if cfg.Partitions == 0 {
		cfg.Partitions = realPartitions
		if len(k.Brokers) == 0 {
			cfg.Partitions = embeddedPartitions
		}
	}
	if cfg.SASL, err = saslOf(k); err == nil && k.TLS {
		cfg.TLS, err = tlsOf("kafka-ca-file", k.CAFile)
	}
	return cfg, err
}

// Partitions of new topics, if the configuration leaves it open. Every insert has a fixed cost, so one process does best with
// one partition; several processes need some to share. Measured with bench pipeline (docs/bench.md).
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

// tlsOf returns a TLS configuration that trusts the authorities in caFile, the system's without one; errors name the flag.
func tlsOf(flag, caFile string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s holds no PEM certificate", flag, caFile)
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

// topicsWithin is how long a process that has a spool waits for Kafka at its start.
const topicsWithin = 10 * time.Second

// ensureTopics makes the topics. A process with a spool starts without Kafka: it may have been restarted during an outage.
func (s *system) ensureTopics(ctx context.Context) error {
	if !s.halves.ingests() || !bool(s.cfg.Spool.On) || len(s.cfg.Kafka.Brokers) == 0 {
		return s.stream.EnsureTopics(ctx)
	}
	within, cancel := context.WithTimeout(ctx, topicsWithin)
	defer cancel()
	err := s.stream.EnsureTopics(within)
	if err == nil || ctx.Err() != nil || errors.Is(err, stream.ErrAuth) || !errors.Is(err, stream.ErrTransient) {
		return err
	}
	s.log.Warn("kafka cannot be reached, records will be spooled until it can", zap.Error(err))
	s.topicsLater = true
	return nil
}
