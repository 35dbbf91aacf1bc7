package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// GroupLease begins the names of the consumer groups leases are held through. They commit
// nothing.
const GroupLease = "retrial-lease-"

// Lease runs f while this process holds the named lease, until ctx ends; it then returns
// nil. Of all processes that ask for a lease of one name on one Kafka, one holds it: the
// member of a consumer group that is assigned the first partition of TopicDeadLetter, of which
// nothing is read. The context of f ends when the lease is lost; f must then return. A
// holder that is cut off learns of it after a while, so for the length of a session two may
// believe they hold it: what f does must bear that. When f returns an error, or nil before
// its context has ended, the lease goes to whoever wants it after a pause.
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
			continue // somebody else holds it; Next returns with the next generation
		}
		gen.Start(func(gctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(gctx, cancel)()
			hold(ctx, log, f)
		})
	}
}

// pauseOfFailure is how long a holder whose work failed keeps the lease idle.
const pauseOfFailure = time.Second

func hold(ctx context.Context, log *zap.Logger, f func(ctx context.Context) error) {
	log.Info("lease taken")
	err := f(ctx)
	if ctx.Err() != nil {
		log.Info("lease given up")
		return
	}
	if err == nil {
		err = errors.New("the work ended by itself")
	}
	log.Warn("work under a lease failed, somebody else may try", zap.Error(err))
	t := time.NewTimer(pauseOfFailure)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
