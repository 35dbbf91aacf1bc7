package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// PolicyReader reads every partition of TopicPolicy, each in order, outside any group: each process needs all. Safe for concurrent use.
type PolicyReader struct {
	c      *Client
	fn     func([]Record) error
	rest   func(partition int32) // nil: none
	from   map[int32]int64       // where the caller wants to start
	cancel context.CancelFunc
	done   chan struct{}

	apply sync.Mutex // fn is called by one goroutine at a time

	mu    sync.Mutex
	pos   map[int32]int64 // of the partitions whose beginning has been found
	moved chan struct{}   // closed and replaced when pos changes
	err   error
}

// ReadPolicy starts to read TopicPolicy from the given offsets (the ones stored with the policy table; a missing partition starts at its
// log's start) and passes the records to fn, in batches of one partition, one at a time. Reading may start below a given offset if less
// than that, or nothing, is committed for GroupPolicy: fn must be idempotent, as with any log. It ends with ctx, when fn fails, or with
// Close. rest is called after a batch, once those who wait for its records have been told; the next is read when it returns. It may be nil.
func (c *Client) ReadPolicy(ctx context.Context, from map[int32]int64, fn func([]Record) error,
	rest func(partition int32)) *PolicyReader {
	ctx, cancel := context.WithCancel(ctx)
	r := &PolicyReader{c: c, fn: fn, rest: rest, from: maps.Clone(from), cancel: cancel, done: make(chan struct{}),
		pos: make(map[int32]int64), moved: make(chan struct{})}
	go func() {
		defer close(r.done)
		defer cancel()
		err := r.run(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = err
		close(r.moved)
		r.moved = nil
	}()
	return r
}

// Close ends the reader and waits for the call of fn under way.
func (r *PolicyReader) Close() error {
	r.cancel()
	<-r.done
	return nil
}

// Done is closed when the reader has ended.
func (r *PolicyReader) Done() <-chan struct{} { return r.done }

// Err returns why the reader ended: fn's error, or ErrAuth; nil while it runs, and if Close or
// ctx ended it.
func (r *PolicyReader) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Positions returns, per partition, the offset below which every record has been passed to fn
// and fn has returned. The caller owns the map.
func (r *PolicyReader) Positions() map[int32]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.pos)
}

// WaitFor returns nil once every position is at its mark or past it, as of Client.HighWatermarks, an error if ctx or the reader ends first.
func (r *PolicyReader) WaitFor(ctx context.Context, marks map[int32]int64) error {
	for {
		r.mu.Lock()
		ok, moved, err := true, r.moved, r.err
		for p, m := range marks {
			ok = ok && r.pos[p] >= m
		}
		r.mu.Unlock()
		switch {
		case ok:
			return nil
		case moved == nil && err != nil:
			return fmt.Errorf("wait for policy: %w", err)
		case moved == nil:
			return fmt.Errorf("wait for policy: reader ended: %w", ErrClosed)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for policy: %w", ctx.Err())
		}
	}
}

func (r *PolicyReader) advance(partition int32, to int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, known := r.pos[partition]; known && was == to || r.moved == nil {
		return
	}
	r.pos[partition] = to
	close(r.moved)
	r.moved = make(chan struct{})
}

func (r *PolicyReader) run(ctx context.Context) error {
	var cursors []*cursor
	err := r.c.retry(ctx, func(ctx context.Context) (err error) {
		cursors, err = r.cursors(ctx)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", TopicPolicy, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, q := range cursors {
		r.advance(q.partition, q.next.Load())
		wg.Go(func() {
			if err := r.read(ctx, q); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return cause
	}
	return nil
}

func (r *PolicyReader) read(ctx context.Context, q *cursor) error {
	defer r.c.metrics.setLag(TopicPolicy, q.partition, -1)
	for {
		b, err := q.fetch(ctx, 0, 0)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, ErrLogReplaced) {
			err = errors.Join(err, r.startOver(ctx, q))
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", TopicPolicy, err)
		}
		if len(b.Records) > 0 {
			r.apply.Lock()
			r.c.policyRead(q.partition, &b.Records[len(b.Records)-1])
			if ctx.Err() == nil {
				err = r.fn(b.Records)
			}
			r.apply.Unlock()
			if err != nil {
				return fmt.Errorf("apply policy records of partition %d from %d on: %w", q.partition, b.Records[0].Position.Offset, err)
			}
			if ctx.Err() != nil {
				return nil
			}
		}
		r.advance(q.partition, q.next.Load())
		if len(b.Records) > 0 && r.rest != nil {
			r.rest(q.partition)
		}
	}
}

// startOver makes the next reader of a partition start where its log does.
func (r *PolicyReader) startOver(ctx context.Context, q *cursor) error {
	r.c.metrics.resets.WithLabelValues(TopicPolicy).Inc()
	r.c.log.Error("the log is not the one that was read: the topic was recreated or lost records; the next reader starts at its start",
		zapTopic(TopicPolicy), zapPartition(q.partition), zapInt("offset", q.next.Load()))
	return r.c.retry(ctx, func(ctx context.Context) error {
		starts, _, err := r.c.bounds(ctx, TopicPolicy, q.partition)
		if err != nil {
			return err
		}
		return r.c.commitPolicy(ctx, starts, map[int32]uint32{q.partition: max(q.epoch+1, uint32(time.Now().Unix()))})
	})
}

func (r *PolicyReader) cursors(ctx context.Context) ([]*cursor, error) {
	parts, err := r.c.all(ctx, TopicPolicy)
	if err != nil {
		return nil, err
	}
	starts, ends, err := r.c.bounds(ctx, TopicPolicy, parts...)
	if err != nil {
		return nil, err
	}
	commits, err := r.c.committed(ctx, GroupPolicy, TopicPolicy, parts...)
	if err != nil {
		return nil, err
	}
	cursors := make([]*cursor, 0, len(parts))
	fresh := map[int32]int64{}
	for _, p := range parts {
		next, given := r.from[p]
		start, end, commit := starts[p], ends[p], commits[p]
		m, unreadable := decodeMetadata(commit.metadata)
		held, err := r.c.holds(ctx, TopicPolicy, p, commit.offset-1, m.done)
		if err != nil {
			return nil, err
		}
		replaced := commit.offset > end || !held
		if replaced {
			r.c.metrics.resets.WithLabelValues(TopicPolicy).Inc()
			r.c.log.Error(
				"the log is not the one that was read: the topic was recreated or lost records; reading from its start",
				zapTopic(
					TopicPolicy,
				),
				zapPartition(p),
				zapInt("committed", commit.offset),
				zapInt("log_start", start),
				zapInt("log_end", end),
			)
		}
		if !given || commit.offset < 0 || replaced {
			// A reader commits before anything is in the table. A commit that is gone went
			// with its topic, whose successor is unknown to the table, or expired, in which
			// case reading again costs little.
			next = start
		} else {
			// The commit follows the table, so it is the table's offset or a little less; when the log was lost it was set to its start.
			next = min(next, commit.offset)
		}
		q := newCursor(r.c, TopicPolicy, p, m.epoch, max(next, 0))
		if next < start {
			q.gap(start)
		}
		if commit.offset < 0 || unreadable != nil || replaced {
			q.epoch = max(m.epoch+1, uint32(time.Now().Unix()))
			fresh[p] = q.next.Load()
		}
		cursors = append(cursors, q)
	}
	if len(fresh) > 0 {
		epochs := make(map[int32]uint32, len(cursors))
		for _, q := range cursors {
			epochs[q.partition] = q.epoch
		}
		if err := r.c.commitPolicy(ctx, fresh, epochs); err != nil {
			return nil, err
		}
	}
	return cursors, nil
}

// policyRead remembers the last record of a partition that a reader was given: CommitPolicy is called with the offset after it.
func (c *Client) policyRead(partition int32, r *Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy[partition] = readTo{r.Position.Offset, r.fingerprint}
}

// policyFingerprint returns the fingerprint of a record of TopicPolicy, 0 if it is not the last
// one read.
func (c *Client) policyFingerprint(partition int32, offset int64) fingerprint {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.policy[partition]; ok && last.offset == offset {
		return last.fingerprint
	}
	return 0
}

// CommitPolicy records, for GroupPolicy, how far the policy table reflects TopicPolicy: per
// partition the offset of the next record. Call it after the table has been stored: on the
// embedded broker records below may be deleted. Transient failures are retried until ctx
// ends.
func (c *Client) CommitPolicy(ctx context.Context, next map[int32]int64) error {
	parts := slices.Collect(maps.Keys(next))
	var commits map[int32]committed
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		commits, err = c.committed(ctx, GroupPolicy, TopicPolicy, parts...)
		return err
	})
	if err != nil {
		return err
	}
	epochs := make(map[int32]uint32, len(parts))
	for p, commit := range commits {
		m, err := decodeMetadata(commit.metadata)
		if err != nil {
			m.epoch = uint32(time.Now().Unix())
		}
		if err != nil && !commit.none() {
			c.log.Warn(
				"commit without readable metadata",
				zapTopic(TopicPolicy),
				zapPartition(p),
				zapInt("committed", commit.offset),
				zap.Error(err),
			)
		}
		epochs[p] = m.epoch
	}
	return c.commitPolicy(ctx, next, epochs)
}

func (c *Client) commitPolicy(ctx context.Context, next map[int32]int64, epochs map[int32]uint32) error {
	texts := make(map[int32]string, len(next))
	for p, offset := range next {
		var err error
		if texts[p], err = (metadata{epoch: epochs[p], pending: NoPending(nil),
			done: c.policyFingerprint(p, offset-1)}).encode(); err != nil {
			return err
		}
	}
	return c.commit(ctx, commitRequest{group: GroupPolicy, generation: -1, topic: TopicPolicy, offsets: next,
		metadata: func(p int32) string { return texts[p] }})
}
