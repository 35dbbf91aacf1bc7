package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/sleep"
)

// GroupLease is the prefix of the consumer groups through which leases are held. They commit
// nothing.
const GroupLease = "retrial-lease-"

// Lease runs f while this process holds the named lease, until ctx ends; it then returns
// nil. Of all processes that request the lease on one Kafka, one holds it: the member of a
// consumer group that is assigned the first partition of TopicDeadLetter, of which nothing is
// read. The context of f ends when the lease is lost; f must then return. A holder that is cut
// off notices only after a while, so for the length of a session two may believe they hold it:
// f must tolerate that. If f returns an error, or nil before its context has ended, the lease
// goes to any candidate after a pause.
func (c *Client) Lease(ctx context.Context, name string, f func(ctx context.Context) error) error {
	if err := c.retry(ctx, func(ctx context.Context) error {
		_, err := c.Partitions(ctx, TopicDeadLetter)
		return err
	}); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("lease %s: %w", name, err)
	}
	topic := c.topic(TopicDeadLetter)
	cg, err := kafka.NewConsumerGroup(c.groupConfig(GroupLease+name, TopicDeadLetter))
	if err != nil {
		return fmt.Errorf("lease %s: %w", name, err)
	}
	defer cg.Close()
	log := c.log.With(zap.String("lease", name))
	next := c.joins(cg, GroupLease+name, log)
	for {
		gen, err := next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("lease %s: %w", name, err)
		}
		if !slices.ContainsFunc(gen.Assignments[topic], func(a kafka.PartitionAssignment) bool { return a.ID == 0 }) {
			continue // another process holds it; Next returns with the next generation
		}
		gen.Start(func(gctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(gctx, cancel)()
			hold(ctx, log, f)
		})
	}
}

// pauseOfFailure is how long the lease is idle after its holder's work failed.
const pauseOfFailure = time.Second

func hold(ctx context.Context, log *zap.Logger, f func(ctx context.Context) error) {
	log.Info("lease taken")
	err := f(ctx)
	if ctx.Err() != nil {
		log.Info("lease released")
		return
	}
	if err == nil {
		err = errors.New("the work ended by itself")
	}
	log.Warn("work under a lease failed, another process may try", zap.Error(err))
	_ = sleep.For(ctx, pauseOfFailure) // nothing follows
}
