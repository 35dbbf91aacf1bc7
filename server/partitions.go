package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/config"
)

// Partitions are those of audit.events, and the layout by which clusters are spread over them.
type Partitions = stream.Partitions

// partitionsWithin bounds what the commands about partitions wait for Kafka.
const partitionsWithin = time.Minute

// ReadPartitions asks Kafka for the partitions of audit.events.
func ReadPartitions(ctx context.Context, cfg config.Config, log *zap.Logger) (p Partitions, err error) {
	err = withStream(ctx, cfg, log, func(ctx context.Context, c *stream.Client) error {
		p, err = c.DescribePartitions(ctx)
		return err
	})
	return p, err
}

// SetPartitions adds partitions to audit.events, if it has fewer, and spreads each cluster over so many of them from now on; 0 leaves a
// number as it is.
func SetPartitions(ctx context.Context, cfg config.Config, log *zap.Logger, partitions, perCluster int) (p Partitions, err error) {
	err = withStream(ctx, cfg, log, func(ctx context.Context, c *stream.Client) error {
		if _, err := c.SetLayout(ctx, partitions, perCluster); err != nil {
			return err
		}
		p, err = c.DescribePartitions(ctx)
		return err
	})
	return p, err
}

// withStream connects to a real Kafka.
func withStream(ctx context.Context, cfg config.Config, log *zap.Logger, f func(context.Context, *stream.Client) error) error {
	if len(cfg.Kafka.Brokers) == 0 {
		return errors.New("kafka-brokers: processes share partitions of a real Kafka: name its brokers; the embedded broker serves one " +
			"process, for which one partition is best")
	}
	sc, err := streamConfig(cfg)
	if err != nil {
		return err
	}
	sc.Log = log
	c, err := stream.NewClient(sc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, partitionsWithin)
	defer cancel()
	if err = c.Ping(ctx); err == nil {
		err = f(ctx, c)
	}
	if err != nil {
		err = fmt.Errorf("partitions of %s%s: %w", cfg.Kafka.TopicPrefix, stream.TopicEvents, err)
	}
	return errors.Join(err, c.Close())
}
