package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// The layout of TopicEvents changes in band:
//
//	barriers to every partition ─▶ commit of GroupLayout ─▶ producers, which read it every layoutEvery
//	        │
//	        └─▶ readers: store what is before the barrier where it stands, commit the new layout, wait until all partitions have, and from
//	            there on send what stands in the wrong partition on to the right one
//
// A producer appends by a layout only after the barriers are in all partitions; what comes by the layout before may come at any time. Both
// steps may be repeated: a barrier that tells nothing new is passed over.

// commitLayout puts a layout in force, unless it or a later one is.
func (c *Client) commitLayout(ctx context.Context, l Layout) error {
	return c.retry(ctx, func(ctx context.Context) error {
		now, given, err := c.committedLayout(ctx)
		if err != nil || given && now.Compare(l) >= 0 {
			return err
		}
		text, err := metadata{pending: Pending{First: -1, Last: -1, Layout: l}}.encode()
		if err != nil {
			return err
		}
		return c.commit(ctx, commitRequest{group: GroupLayout, generation: -1, topic: TopicEvents, offsets: map[int32]int64{0: 0},
			metadata: func(int32) string { return text }})
	})
}

// AnnounceLayout tells partitions of a layout, and then puts it in force, unless a later one is: all other partitions must
// have been told of it before.
func (c *Client) AnnounceLayout(ctx context.Context, l Layout, partitions ...int32) error {
	barriers := make([]Record, len(partitions))
	for i, p := range partitions {
		barriers[i] = LayoutRecord(l, time.Now())
		barriers[i].Position.Partition = p
	}
	if len(barriers) > 0 {
		there := func(_ context.Context, r *Record) (int32, error) { return r.Position.Partition, nil }
		if err := c.producer.produceBy(ctx, barriers, c.cfg.MaxRecordBytes, there); err != nil {
			return fmt.Errorf("announce layout (%s): %w", l, err)
		}
	}
	if err := c.commitLayout(ctx, l); err != nil {
		return fmt.Errorf("put layout in force (%s): %w", l, err)
	}
	return nil
}

// beginLayout gives a topic that never had a record the layout of new ones. Others may begin at the same time, and what was
// interrupted is completed by the readers.
func (c *Client) beginLayout(ctx context.Context) error {
	l, err := c.Layout(ctx)
	k := int32(c.cfg.ClusterPartitions)
	if err != nil || l.Epoch > 0 || k <= 0 || k >= l.Partitions {
		return err
	}
	parts, err := c.all(ctx, TopicEvents)
	if err != nil {
		return err
	}
	ends, err := c.offsets(ctx, TopicEvents, kafka.LastOffsetOf, parts...)
	if err != nil {
		return err
	}
	for _, end := range ends {
		if end > 0 {
			return nil
		}
	}
	if err = c.AnnounceLayout(ctx, Layout{Epoch: 1, Partitions: l.Partitions, PerCluster: k}, parts...); err != nil {
		return err
	}
	_, err = c.Layout(ctx)
	return err
}

// SetLayout adds partitions to TopicEvents, if it has fewer, and spreads each cluster over so many of them from now on; 0: as
// before. What is so already stays as it is. It returns when producers can learn of it; repeat it after an error. Processes of
// releases without layouts must not run any more.
func (c *Client) SetLayout(ctx context.Context, partitions, perCluster int) (Layout, error) {
	var now Layout
	var n int
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		if now, err = c.Layout(ctx); err == nil {
			n, err = c.Partitions(ctx, TopicEvents)
		}
		return err
	})
	if err != nil {
		return Layout{}, err
	}
	if partitions == 0 {
		partitions = n
	}
	if perCluster == 0 {
		if perCluster = int(now.PerCluster); now.PerCluster == now.Partitions {
			perCluster = partitions
		}
	}
	switch {
	case partitions < n:
		return Layout{}, fmt.Errorf("topic %s has %d partitions: Kafka cannot take partitions away, and they hold events",
			c.topic(TopicEvents), n)
	case perCluster < 1 || perCluster > partitions:
		return Layout{}, fmt.Errorf("a cluster cannot be spread over %d of %d partitions: want 1 to %d", perCluster, partitions,
			partitions)
	case n == partitions && int(now.Partitions) == n && int(now.PerCluster) == perCluster:
		return now, nil
	}
	if now.Epoch == 0 {
		// Whoever starts while there are more partitions and no barriers yet must not hash over all of them.
		if err := c.commitLayout(ctx, now); err != nil {
			return Layout{}, err
		}
	}
	if n < partitions {
		if err := c.addPartitions(ctx, partitions); err != nil {
			return Layout{}, err
		}
	}
	epoch := now.Epoch
	commits, err := c.Commits(ctx, GroupReplay, TopicEvents)
	if err != nil {
		return Layout{}, err
	}
	for _, commit := range commits {
		epoch = max(epoch, commit.Pending.Layout.Epoch) // of a change that was interrupted
	}
	next := Layout{Epoch: epoch + 1, Partitions: int32(partitions), PerCluster: int32(perCluster)}
	parts, err := c.all(ctx, TopicEvents)
	if err != nil {
		return Layout{}, err
	}
	if err := c.AnnounceLayout(ctx, next, parts...); err != nil {
		return Layout{}, err
	}
	return c.Layout(ctx)
}

// addPartitions returns when TopicEvents has so many.
func (c *Client) addPartitions(ctx context.Context, partitions int) error {
	name := c.topic(TopicEvents)
	return c.retry(ctx, func(ctx context.Context) error {
		resp, err := c.kafka.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: int32(partitions)}}})
		if err == nil {
			err = resp.Errors[name]
		}
		n, counted := c.countEvents(ctx)
		switch {
		case counted == nil && n >= partitions: // an earlier attempt may have added them
			return nil
		case errors.Is(err, kafka.TopicAuthorizationFailed):
			return c.denied(right{"add partitions to topic", name},
				fmt.Sprintf("topic %s needs %d partitions: add them, or grant Alter on it", name, partitions), err)
		case errors.Is(err, kafka.UnsupportedVersion):
			return fmt.Errorf("topic %s: this broker adds no partitions: %w", name, err)
		case err != nil && !errors.Is(err, kafka.InvalidPartitionNumber): // they are there, and not everybody knows yet
			return fmt.Errorf("add partitions to topic %s, %d in all: %w", name, partitions, err)
		}
		return fmt.Errorf("%w: topic %s is seen with %d partitions, not %d", ErrTransient, name, n, partitions)
	})
}
