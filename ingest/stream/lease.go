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

// Lease runs f while this process holds the named lease, until ctx ends; it then returns nil. Of all processes that request the lease on
// one Kafka, one holds it: the member of a group that is assigned the first partition of TopicDeadLetter, of which nothing is read. The
// context of f ends when the lease is lost; f must then return. A holder that is cut off notices only after a while, so for the length of a
// session two may believe they hold it: f must tolerate that. If f returns before its context has ended, any candidate gets the lease after
// a pause.
func (c *Client) Lease(ctx context.Context, name string, f func(ctx context.Context) error) error {
	log := c.log.With(zap.String("lease", name))
	err := c.join(ctx, GroupLease+name, TopicDeadLetter, log, func(gen *kafka.Generation, _ int) {
		first := func(a kafka.PartitionAssignment) bool { return a.ID == 0 }
		if slices.ContainsFunc(gen.Assignments[c.topic(TopicDeadLetter)], first) { // otherwise another process holds it
			during(ctx, gen, func(ctx context.Context) { hold(ctx, log, f) })
		}
	})
	if err != nil {
		return fmt.Errorf("lease %s: %w", name, err)
	}
	return nil
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
