package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/sleep"
)

// Handler works on partitions while they are assigned to this process.
type Handler interface {
	// Partition is called in a goroutine of its own for every assigned partition. It fetches, works and commits until ctx ends, then
	// finishes and returns within Config.RebalanceTimeout; no other process has the partition until it has returned. After an error (or nil
	// while ctx is alive) this process's partitions are reassigned after a pause, from their commits; ErrStop or ErrAuth ends the consumer.
	Partition(ctx context.Context, a Assignment, p *Partition) error
}

// ConsumeEvents consumes TopicEvents as a member of the group (GroupReplay) until ctx ends, then returns nil. Errors wrap ErrStop, ErrAuth.
func (c *Client) ConsumeEvents(ctx context.Context, group string, h Handler) error {
	return c.consume(ctx, TopicEvents, group, h)
}

// ConsumeDeadLetters does the same for TopicDeadLetter (GroupDeadLetter).
func (c *Client) ConsumeDeadLetters(ctx context.Context, group string, h Handler) error {
	return c.consume(ctx, TopicDeadLetter, group, h)
}

type consumer struct {
	c     *Client
	topic string // without prefix
	group string // without prefix
	h     Handler
	log   *zap.Logger

	end  context.CancelCauseFunc // ends the consumer
	mu   sync.Mutex
	wait backoff // between failures of handlers
}

func (c *Client) consume(ctx context.Context, topic, group string, h Handler) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	k := &consumer{c: c, topic: topic, group: group, h: h, end: end, wait: newBackoff(),
		log: c.log.With(zapTopic(topic), zap.String("group", group))}
	err := c.join(ctx, group, topic, k.log, func(gen *kafka.Generation, counted int) { k.start(ctx, gen, counted) })
	if cause := context.Cause(ctx); err == nil && ends(cause) {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("consume %s: %w", topic, err)
	}
	return nil
}

// patience bounds a group's request to a broker in this process: it waits only if the process
// is stopped or starved.
const patience = 10 * time.Minute

func (c *Client) groupConfig(group, topic string) kafka.ConsumerGroupConfig {
	timeout := rpcTimeout
	if c.cfg.InProcess {
		timeout = patience
	}
	return kafka.ConsumerGroupConfig{
		ID: c.group(group), Brokers: c.cfg.Brokers, Dialer: c.dialer, Topics: []string{c.topic(topic)},
		HeartbeatInterval: c.cfg.HeartbeatInterval,
		SessionTimeout:    c.cfg.SessionTimeout,
		RebalanceTimeout:  c.cfg.RebalanceTimeout,
		JoinGroupBackoff:  300 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
		Timeout:           timeout,
	}
}

// neighbours is the range balancer on partitions in their order, which a broker does not keep: so a process has whole groups of a layout.
type neighbours struct {
	kafka.RangeGroupBalancer
	counted atomic.Int64 // partitions that were assigned last, if this process assigned them
}

// AssignGroups implements kafka.GroupBalancer.
func (n *neighbours) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	n.counted.Store(int64(len(partitions)))
	inOrder := slices.SortedFunc(slices.Values(partitions), func(a, b kafka.Partition) int { return a.ID - b.ID })
	return n.RangeGroupBalancer.AssignGroups(members, inOrder)
}

// join makes this process a member of a group that shares a topic's partitions, and calls start with every generation and, if this process
// has assigned them, how many partitions it saw. It ends with ctx, which is not an error, or when the broker refuses what it never granted.
// Other failures are retried: by the group client after its pause, after a growing one if access is refused.
func (c *Client) join(ctx context.Context, group, topic string, log *zap.Logger, start func(gen *kafka.Generation, counted int)) error {
	err := c.retry(ctx, func(ctx context.Context) error {
		_, err := c.Partitions(ctx, topic)
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	config, balancer := c.groupConfig(group, topic), &neighbours{}
	config.GroupBalancers = []kafka.GroupBalancer{balancer}
	cg, err := kafka.NewConsumerGroup(config)
	if err != nil {
		return err
	}
	defer cg.Close()
	wait, failures := newBackoff(), 0
	for {
		gen, err := cg.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		failures++
		switch err = c.answered(right{"join group", config.ID}, err); {
		case err == nil:
			wait, failures = newBackoff(), 0
			start(gen, int(balancer.counted.Swap(0)))
		case errors.Is(err, ErrAuth):
			return fmt.Errorf("join group %s: %w", strings.TrimPrefix(config.ID, c.cfg.TopicPrefix), err)
		case refused(err):
			wait.sleep(ctx)
		case failures == logAfter:
			log.Warn("cannot join the group, retrying", zap.Error(err))
		}
	}
}

// during runs f in a generation, with a context that ends with the generation or with ctx, whose
// values it has.
func during(ctx context.Context, gen *kafka.Generation, f func(context.Context)) {
	gen.Start(func(gctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(gctx, cancel)()
		f(ctx)
	})
}

// watchPartitions returns when a topic has more partitions than were counted (0: than it has now), or ctx ends. What the client knows of a
// topic is some seconds old, so fewer mean nothing. The group client could look for itself, but would make a heartbeat wait for the answer.
func (c *Client) watchPartitions(ctx context.Context, topic string, counted int) {
	if c.cfg.PartitionsEvery < 0 {
		<-ctx.Done()
		return
	}
	for first := true; first || sleep.For(ctx, c.cfg.PartitionsEvery) == nil; first = false {
		n, err := c.count(ctx, topic)
		switch {
		case err == nil && counted == 0:
			counted = n
		case err == nil && n > counted:
			c.log.Info("the topic has more partitions, they are assigned anew", zapTopic(topic), zap.Int("partitions", n))
			return
		}
	}
}

// start runs the handlers of a generation. The group client ends all of them when one
// returns, and joins the next generation when all have.
func (k *consumer) start(ctx context.Context, gen *kafka.Generation, counted int) {
	parts := gen.Assignments[k.c.topic(k.topic)]
	ids := make([]int32, len(parts))
	for i, a := range parts {
		ids[i] = int32(a.ID)
	}
	k.c.metrics.rebalances.WithLabelValues(k.topic).Inc()
	k.c.metrics.assigned.WithLabelValues(k.topic).Set(float64(len(parts)))
	k.log.Info("partitions assigned", zap.Int32("generation", gen.ID), zap.Int32s("partitions", ids))
	during(ctx, gen, func(ctx context.Context) { k.c.watchPartitions(ctx, k.topic, counted) })
	for _, id := range ids {
		during(ctx, gen, func(ctx context.Context) { k.run(ctx, gen, id) })
	}
}

// ends reports whether a handler's error ends the consumer. Rights are granted by people: retrying would hide that one must act.
func ends(err error) bool { return errors.Is(err, ErrStop) || errors.Is(err, ErrAuth) }

// run takes over a partition and hands it to the handler.
func (k *consumer) run(ctx context.Context, gen *kafka.Generation, id int32) {
	defer k.c.metrics.setLag(k.topic, id, -1)
	err := k.take(ctx, gen, id)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return
	}
	if err == nil {
		err = errors.New("handler returned while its partition was assigned")
	}
	if ends(err) {
		k.end(err)
		return
	}
	k.c.metrics.failures.WithLabelValues(k.topic).Inc()
	k.log.Warn("partition handler ended, partitions are reassigned", zapPartition(id), zap.Error(err))
	k.mu.Lock()
	wait := k.wait
	k.wait.next = min(2*k.wait.next, maxBackoff)
	k.mu.Unlock()
	wait.sleep(ctx)
}

func (k *consumer) take(ctx context.Context, gen *kafka.Generation, id int32) error {
	p := &Partition{cursor: newCursor(k.c, k.topic, id, 0, 0), group: k.group, generation: int(gen.ID), member: gen.MemberID}
	var a Assignment
	err := k.c.retry(ctx, func(ctx context.Context) (err error) {
		a, err = k.assignment(ctx, p)
		return err
	})
	if err != nil {
		return err
	}
	p.epoch = a.Epoch
	p.next.Store(a.Committed)
	p.end.Store(a.Committed)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		k.watch(ctx, p, cancel)
	}()
	err = k.h.Partition(ctx, a, p)
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		err = cause
	}
	cancel(nil)
	<-watched
	if err == nil {
		k.mu.Lock()
		k.wait = newBackoff()
		k.mu.Unlock()
	}
	return err
}

// assignment reads the partition's commit and compares it with the log.
func (k *consumer) assignment(ctx context.Context, p *Partition) (Assignment, error) {
	id := p.partition
	a := Assignment{Topic: k.topic, Partition: id}
	commits, err := k.c.committed(ctx, k.group, k.topic, id)
	if err != nil {
		return a, err
	}
	starts, ends, err := k.c.bounds(ctx, k.topic, id)
	if err != nil {
		return a, err
	}
	start, end := starts[id], ends[id]
	commit := commits[id]
	fresh := uint32(time.Now().Unix())
	m, err := decodeMetadata(commit.metadata)
	replaced := beyond(commit.offset, m.pending, end)
	if !replaced && err == nil {
		if replaced, err = k.rewritten(ctx, id, commit.offset, m); err != nil {
			return a, err
		}
	}
	switch {
	case commit.none():
		a.Epoch, a.Committed, a.Metadata = fresh, start, NoPending(nil)
	case replaced:
		k.c.metrics.resets.WithLabelValues(k.topic).Inc()
		k.log.Error("the log is not the one that was consumed: the topic was recreated or lost records; consuming from its start",
			zapPartition(id), zapInt("committed", commit.offset), zapInt("pending_last", m.pending.Last),
			zapInt("log_start", start), zapInt("log_end", end))
		a.Epoch, a.Committed, a.Metadata = max(m.epoch+1, fresh), start, m.pending.anew()
	case err != nil:
		// The offset was set by hand, or the broker dropped the metadata: keep the offset;
		// positions get an epoch of their own.
		k.log.Warn("commit without readable metadata", zapPartition(id), zapInt("committed", commit.offset), zap.Error(err))
		a.Epoch, a.Committed, a.Metadata = fresh, commit.offset, NoPending(nil)
	default:
		a.Epoch, a.Committed, a.Metadata = m.epoch, commit.offset, m.pending
		p.last = m.done
		p.fingerprints = fingerprints{from: commit.offset - 1, list: []fingerprint{m.done}}
		return a, nil
	}
	// The epoch must be on record before a position with it is stored anywhere.
	p.epoch = a.Epoch
	return a, p.Commit(ctx, a.Committed, a.Metadata)
}

// rewritten reports whether other records have taken the place of those a commit refers to.
func (k *consumer) rewritten(ctx context.Context, id int32, committed int64, m metadata) (bool, error) {
	held, err := k.c.holds(ctx, k.topic, id, committed-1, m.done)
	if held && err == nil && m.pending.Has() {
		held, err = k.c.holds(ctx, k.topic, id, m.pending.Last, m.announced)
	}
	return !held, err
}

var errStalled = errors.New("fetch makes no progress although there are records")

// watch ends the partition if fetches have returned nothing for Config.StallTimeout although
// the broker's high watermark shows records. A handler that is busy with something else is
// left alone.
func (k *consumer) watch(ctx context.Context, p *Partition, end context.CancelCauseFunc) {
	limit := k.c.cfg.StallTimeout
	t := time.NewTicker(max(limit/4, time.Millisecond))
	defer t.Stop()
	var idle time.Time // since when fetches have returned nothing at position at
	at := int64(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			next := p.next.Load()
			if next != at || p.since.Load() == 0 {
				at, idle = next, now
				continue
			}
			if now.Sub(idle) < limit {
				continue
			}
			_, ends, err := k.c.bounds(ctx, k.topic, p.partition)
			if err != nil || ends[p.partition] <= next {
				idle = now
				continue
			}
			k.c.metrics.restarts.WithLabelValues(k.topic).Inc()
			end(fmt.Errorf("%w: at %d of %d for %s", errStalled, next, ends[p.partition], limit))
			return
		}
	}
}
