package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

func zapTopic(t string) zap.Field           { return zap.String("topic", t) }
func zapPartition(p int32) zap.Field        { return zap.Int32("partition", p) }
func zapInt(name string, v int64) zap.Field { return zap.Int64(name, v) }

// Assignment is where a handler takes over a partition.
type Assignment struct {
	Topic     string // without prefix
	Partition int32
	// Epoch goes with every position of this partition; see the package comment.
	Epoch uint32
	// Committed is the offset reading starts at: everything below is done; the range that
	// Metadata may announce starts here.
	Committed int64
	// Metadata is what the last commit recorded. If it has a range, that must be read and
	// stored again before anything else.
	Metadata Pending
}

// Partition is a partition while it is assigned. Fetch and Commit are for the handler's
// goroutine; the rest may be called from any.
type Partition struct {
	*cursor
	fingerprints fingerprints // of what was fetched and not committed, and of the record before
	group        string
	generation   int
	member       string
}

// Fetch returns the next records in offset order: at most maxRecords with at most maxBytes of keys and values (0: no bound of its own), at
// least one if there is any. The list is valid until the next. Without records it is empty, after Config.FetchWait.
//
// Errors: ctx's if it ended; ErrLogReplaced (return it: the partition is assigned again, with a
// new epoch if anything of what is gone was stored); ErrAuth. Transient failures are retried
// inside.
func (p *Partition) Fetch(ctx context.Context, maxRecords, maxBytes int) (Batch, error) {
	b, err := p.fetch(ctx, maxRecords, maxBytes)
	for i := range b.Records {
		p.fingerprints.add(b.Records[i].Position.Offset, b.Records[i].fingerprint)
	}
	return b, err
}

// Position returns the offset of the next record Fetch returns.
func (p *Partition) Position() int64 { return p.next.Load() }

// Commit records that every record below next is done, and pending. Transient errors are
// retried until ctx ends. A handler makes its last commit after its own context has ended
// (context.WithoutCancel and a timeout): until it returns, the partition is still its own.
//
// Errors: ErrRevoked if the partition belongs to another consumer by now; ErrTransient if ctx
// ended first; ErrAuth.
func (p *Partition) Commit(ctx context.Context, next int64, pending Pending) error {
	m := metadata{epoch: p.epoch, pending: pending, done: p.fingerprints.at(next - 1)}
	if pending.Has() {
		m.announced = p.fingerprints.at(pending.Last)
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	if err := p.c.commit(ctx, commitRequest{group: p.group, generation: p.generation, member: p.member,
		topic: p.topic, offsets: map[int32]int64{p.partition: next}, metadata: func(int32) string { return text }}); err != nil {
		return err
	}
	p.fingerprints.drop(next - 1)
	return nil
}

// commitRequest is one commit; generation -1 and no member for a group without members.
type commitRequest struct {
	group, member string
	generation    int
	topic         string // without prefix
	offsets       map[int32]int64
	metadata      func(partition int32) string
}

func (c *Client) commit(ctx context.Context, r commitRequest) error {
	req := &kafka.OffsetCommitRequest{GroupID: c.group(r.group), GenerationID: r.generation, MemberID: r.member,
		Topics: map[string][]kafka.OffsetCommit{}}
	topic := c.topic(r.topic)
	for part, off := range r.offsets {
		req.Topics[topic] = append(req.Topics[topic], kafka.OffsetCommit{Partition: int(part), Offset: off, Metadata: r.metadata(part)})
	}
	err := c.retry(ctx, func(ctx context.Context) error {
		resp, err := c.kafka.OffsetCommit(ctx, req)
		if err == nil {
			for _, p := range resp.Topics[topic] {
				if p.Error != nil {
					err = errors.Join(err, fmt.Errorf("partition %d: %w", p.Partition, p.Error))
				}
			}
		}
		return c.answered(right{"commit to group", c.group(r.group)}, err)
	})
	if err != nil {
		c.metrics.commitErrors.WithLabelValues(kindOf(err)).Inc()
		return fmt.Errorf("commit %s of group %s: %w", r.topic, r.group, err)
	}
	c.metrics.commits.WithLabelValues(r.topic).Add(float64(len(r.offsets)))
	return nil
}

// committed is a partition's commit; its offset is -1 if there is none.
type committed struct {
	offset   int64
	metadata string
}

// none reports whether nothing was consumed under the commit: there is none, or an empty one
// was made by hand.
func (c committed) none() bool { return c.offset < 0 || c.offset == 0 && c.metadata == "" }

func (c *Client) committed(ctx context.Context, group, topic string, partitions ...int32) (map[int32]committed, error) {
	req := &kafka.OffsetFetchRequest{GroupID: c.group(group), Topics: map[string][]int{}}
	name := c.topic(topic)
	for _, p := range partitions {
		req.Topics[name] = append(req.Topics[name], int(p))
	}
	resp, err := c.kafka.OffsetFetch(ctx, req)
	if err == nil {
		err = resp.Error
	}
	m := make(map[int32]committed, len(partitions))
	// A group that never committed: real Kafka answers with offsets of -1, the embedded
	// broker with an error.
	if errors.Is(err, kafka.GroupIdNotFound) {
		for _, p := range partitions {
			m[p] = committed{offset: -1}
		}
		return m, nil
	}
	read := right{"read commits of group", c.group(group)}
	if err != nil {
		return nil, fmt.Errorf("read commits of group %s: %w", group, c.explain(read, err))
	}
	for _, p := range resp.Topics[name] {
		if p.Error != nil {
			return nil, fmt.Errorf("read commit of group %s on %s/%d: %w", group, topic, p.Partition, c.explain(read, p.Error))
		}
		m[int32(p.Partition)] = committed{p.CommittedOffset, p.Metadata}
	}
	for _, p := range partitions {
		if _, ok := m[p]; !ok {
			return nil, fmt.Errorf("%w: read commit of group %s on %s/%d: no answer", ErrTransient, group, topic, p)
		}
	}
	return m, c.answered(read, nil)
}

// Commit is what was last committed for a partition.
type Commit struct {
	Next    int64 // -1: nothing was
	Pending Pending
}

// Commits returns what the members of a group, in whatever processes, have committed for a topic. It retries until ctx ends.
func (c *Client) Commits(ctx context.Context, group, topic string) (map[int32]Commit, error) {
	var found map[int32]committed
	err := c.retry(ctx, func(ctx context.Context) error {
		parts, err := c.all(ctx, topic)
		if err != nil {
			return err
		}
		found, err = c.committed(ctx, group, topic, parts...)
		return err
	})
	if err != nil {
		return nil, err
	}
	commits := make(map[int32]Commit, len(found))
	for p, k := range found {
		m, _ := decodeMetadata(k.metadata) // foreign metadata announces nothing
		commits[p] = Commit{Next: k.offset, Pending: m.pending}
	}
	return commits, nil
}
