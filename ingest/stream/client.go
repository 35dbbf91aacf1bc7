// Package stream is the Kafka of Retrial: topics, record codec, producer, and consumers
// that fetch partition by partition. One code path serves the embedded broker and real
// Kafka (3.9, 4.x); the client is kafka-go.
//
//	Record ─▶ Producer.Produce ─▶ queue per partition: one batch in flight, the next fills ─▶ broker (acks = all)
//	                                     │ returns when every record is acknowledged
//	                                     ▼
//	           audit.events      by cluster and request key  ConsumeEvents      group, Handler per partition
//	           audit.policy      key = cluster               ReadPolicy         every partition, no group
//	           audit.deadletter  key = digest                ConsumeDeadLetters group, Handler per partition
//
// # Delivery
//
// Produce returns nil once the broker has every record; a retry may store one twice, which later rooms see by the event key. Consumers read
// at least once. What makes their effects exactly once is the commit protocol, driven by the caller with [Partition.Commit] and [Pending]:
//
//	collect records first..last
//	Commit(first, Pending{First: first, Last: last})   the range is announced
//	store it, with a token made of the topic's epoch, partition, first and last
//	the next batch's announcement commits last+1; when idle or revoked, Commit(last+1, NoPending)
//
// A new owner finds the announced range in [Assignment.Metadata], reads that range again and stores it with the same token.
//
// # Epochs
//
// A topic that was recreated, or whose log was lost, assigns the same offsets a second time. An [Assignment.Epoch] belongs to every
// position, so that (epoch, partition, offset) is never used twice. It is kept in the commit's metadata, starts as the Unix time in seconds
// at which a partition was first consumed, and rises if a commit turns out to point past the end of the log, or at records the log does not
// have.
package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

const rpcTimeout = 15 * time.Second

// Client is one process's connection to Kafka. Its methods are safe for concurrent use.
type Client struct {
	cfg       Config
	log       *zap.Logger
	metrics   *metrics
	transport *kafka.Transport
	kafka     *kafka.Client
	dialer    *kafka.Dialer
	producer  *Producer

	mu         sync.Mutex
	partitions map[string]int   // topic without prefix → number of partitions
	policy     map[int32]readTo // partitions of TopicPolicy as far as a reader came
	layout     inForce
	counted    time.Time // when the partitions of TopicEvents were

	access access
	dials  atomic.Int64 // connections that were begun
}

// NewClient checks the configuration; it does not connect.
func NewClient(cfg Config) (*Client, error) {
	if len(cfg.Brokers) == 0 {
		return nil, errors.New("new stream client: no brokers configured")
	}
	cfg.setDefaults()
	if limit := maxMessageBytes - batchHeader - recordOverhead; cfg.MaxRecordBytes > limit {
		return nil, fmt.Errorf("new stream client: MaxRecordBytes %d is above %d, the limit of the topics", cfg.MaxRecordBytes, limit)
	}
	mechanism, err := cfg.SASL.mechanism()
	if err != nil {
		return nil, fmt.Errorf("new stream client: %w", err)
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("new stream client: register metrics: %w", err)
	}
	c := &Client{cfg: cfg, log: cfg.Log, metrics: m, partitions: make(map[string]int), policy: make(map[int32]readTo)}
	c.transport = &kafka.Transport{
		Dial: c.dial, DialTimeout: 10 * time.Second, ClientID: cfg.ClientID,
		TLS: cfg.TLS, SASL: mechanism, MetadataTopics: c.topics(),
	}
	c.dialer = &kafka.Dialer{
		DialFunc: cfg.Dial, Timeout: 10 * time.Second, ClientID: cfg.ClientID,
		TLS: cfg.TLS, SASLMechanism: mechanism,
	}
	c.kafka = &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Transport: c.transport, Timeout: rpcTimeout}
	c.producer = newProducer(c)
	return c, nil
}

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.dials.Add(1)
	if c.cfg.Dial != nil {
		return c.cfg.Dial(ctx, network, addr)
	}
	// Of several addresses, the next must be tried within the transport's DialTimeout.
	tcp := net.Dialer{Timeout: 3 * time.Second}
	return tcp.DialContext(ctx, network, addr)
}

// Producer returns the client's producer.
func (c *Client) Producer() *Producer { return c.producer }

// Close fails what is being produced and closes the connections. Consumers and readers
// are ended by their contexts; end them first.
func (c *Client) Close() error {
	c.producer.close()
	c.transport.CloseIdleConnections()
	return nil
}

func (c *Client) topic(name string) string { return c.cfg.TopicPrefix + name }
func (c *Client) group(name string) string { return c.cfg.TopicPrefix + name }

// topics returns the names of all topics, with prefix.
func (c *Client) topics() []string {
	names := make([]string, len(topicNames))
	for i, t := range topicNames {
		names[i] = c.topic(t)
	}
	return names
}

// Partitions returns how many partitions a topic (TopicEvents, ...) has.
func (c *Client) Partitions(ctx context.Context, topic string) (int, error) {
	c.mu.Lock()
	n := c.partitions[topic]
	c.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	if err := c.refresh(ctx); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = c.partitions[topic]; n == 0 {
		return 0, fmt.Errorf("%w: topic %s does not exist", ErrTransient, c.topic(topic))
	}
	return n, nil
}

func (c *Client) refresh(ctx context.Context) error {
	resp, err := c.kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: c.topics()})
	if err = c.answered(right{"see topics", ""}, err); err != nil {
		return fmt.Errorf("read topics: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range resp.Topics {
		if t.Error == nil && len(t.Partitions) > 0 {
			c.partitions[strings.TrimPrefix(t.Name, c.cfg.TopicPrefix)] = len(t.Partitions)
		}
	}
	return nil
}

// offsets asks the broker for one offset of each partition: kafka.FirstOffsetOf or
// kafka.LastOffsetOf.
func (c *Client) offsets(
	ctx context.Context,
	topic string,
	which func(int) kafka.OffsetRequest,
	partitions ...int32,
) (map[int32]int64, error) {
	name := c.topic(topic)
	req := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}
	for _, p := range partitions {
		req.Topics[name] = append(req.Topics[name], which(int(p)))
	}
	list := right{"list offsets of topic", name}
	resp, err := c.kafka.ListOffsets(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, c.explain(list, err))
	}
	m := make(map[int32]int64, len(partitions))
	for _, p := range resp.Topics[name] {
		if err := c.answered(list, p.Error); err != nil {
			return nil, fmt.Errorf("list offsets of %s/%d: %w", topic, p.Partition, err)
		}
		// The offset that was not requested is -1.
		m[int32(p.Partition)] = max(p.FirstOffset, p.LastOffset)
	}
	for _, p := range partitions {
		if _, ok := m[p]; !ok {
			return nil, fmt.Errorf("%w: list offsets of %s/%d: no answer", ErrTransient, topic, p)
		}
	}
	return m, nil
}

// bounds returns the first offset kept and the end of the log, per partition.
func (c *Client) bounds(ctx context.Context, topic string, partitions ...int32) (start, end map[int32]int64, err error) {
	// Two requests: the client library confuses two answers for one partition.
	if start, err = c.offsets(ctx, topic, kafka.FirstOffsetOf, partitions...); err == nil {
		end, err = c.offsets(ctx, topic, kafka.LastOffsetOf, partitions...)
	}
	return start, end, err
}

// all returns the partitions of a topic; those of TopicEvents may become more.
func (c *Client) all(ctx context.Context, topic string) ([]int32, error) {
	n, err := c.Partitions(ctx, topic)
	if err == nil && topic == TopicEvents && c.countedBefore(time.Now().Add(-countEvery)) {
		n, err = c.countEvents(ctx)
	}
	if err != nil {
		return nil, err
	}
	parts := make([]int32, n)
	for i := range parts {
		parts[i] = int32(i)
	}
	return parts, nil
}

// layoutEvery is how often a client that produces looks whether there is another layout.
const layoutEvery = 10 * time.Second

// countEvery is how old the number of partitions may be that is asked for.
const countEvery = 5 * time.Second

// inForce is the layout a client produces by.
type inForce struct {
	Layout
	known   bool
	read    time.Time
	reading bool // somebody is
}

// layoutInForce returns the layout to produce by. What is known of it is read again beside those who ask.
func (c *Client) layoutInForce(ctx context.Context) (l Layout, err error) {
	c.mu.Lock()
	f := &c.layout
	known, l := f.known, f.Layout
	again := known && !f.reading && time.Since(f.read) > layoutEvery
	f.reading = f.reading || again
	c.mu.Unlock()
	if again {
		c.producer.background(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
			defer cancel()
			if _, err := c.Layout(ctx); err != nil && ctx.Err() == nil {
				c.log.Debug("the layout of the events cannot be read again", zap.Error(err))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			f.read, f.reading = time.Now(), false
		})
	}
	if known {
		return l, nil
	}
	err = c.retry(ctx, func(ctx context.Context) (err error) {
		l, err = c.Layout(ctx)
		return err
	})
	return l, err
}

// Layout asks Kafka for the layout in force, and how many partitions TopicEvents has by now.
func (c *Client) Layout(ctx context.Context) (Layout, error) {
	n, err := c.countEvents(ctx)
	if err != nil {
		return Layout{}, err
	}
	l, given, err := c.committedLayout(ctx)
	if err != nil {
		return Layout{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.layout
	switch all := int32(n); {
	case given && l.Partitions <= all:
	case given:
		c.log.Error("audit.events has fewer partitions than its layout says: the topic was recreated; records are hashed over all of them",
			zap.Stringer("layout", l), zap.Int32("partitions", all))
		l = Layout{Partitions: all, PerCluster: all}
	case f.known && f.Epoch == 0 && f.Partitions <= all:
		l = f.Layout // partitions that were added without a layout belong to nobody
	default:
		l = Layout{Partitions: all, PerCluster: all}
	}
	if f.known && f.Layout != l {
		c.log.Info("the layout of the events changed", zap.Stringer("before", f.Layout), zap.Stringer("now", l))
	}
	f.Layout, f.known, f.read = l, true, time.Now()
	return l, nil
}

// countEvents asks how many partitions TopicEvents has by now.
func (c *Client) countEvents(ctx context.Context) (int, error) {
	n, err := c.count(ctx, TopicEvents)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partitions[TopicEvents], c.counted = n, time.Now()
	return n, nil
}

// count asks how many partitions a topic has by now.
func (c *Client) count(ctx context.Context, topic string) (int, error) {
	resp, err := c.kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{c.topic(topic)}})
	if err == nil {
		for _, t := range resp.Topics {
			err = errors.Join(err, t.Error)
		}
	}
	if err = c.answered(right{"see topics", ""}, err); err != nil {
		return 0, fmt.Errorf("read topics: %w", err)
	}
	n := 0
	for _, t := range resp.Topics {
		n = max(n, len(t.Partitions))
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: topic %s does not exist", ErrTransient, c.topic(topic))
	}
	return n, nil
}

func (c *Client) countedBefore(at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.Before(at)
}

// committedLayout reads the layout that was given to the topic, false if none was.
func (c *Client) committedLayout(ctx context.Context) (Layout, bool, error) {
	commits, err := c.committed(ctx, GroupLayout, TopicEvents, 0)
	if err != nil {
		return Layout{}, false, err
	}
	m, err := decodeMetadata(commits[0].metadata)
	if err != nil || m.pending.Layout == (Layout{}) {
		return Layout{}, false, nil
	}
	return m.pending.Layout, true, nil
}

// HighWatermarks returns the end of every partition's log: all acknowledged before lies below. It retries what is transient.
func (c *Client) HighWatermarks(ctx context.Context, topic string) (end map[int32]int64, err error) {
	err = c.retry(ctx, func(ctx context.Context) error {
		parts, err := c.all(ctx, topic)
		if err != nil {
			return err
		}
		end, err = c.offsets(ctx, topic, kafka.LastOffsetOf, parts...)
		return err
	})
	return end, err
}

// why replaces the client library's catch-all error for a failed connection with the actual
// cause, if asking the brokers reveals it.
func (c *Client) why(err error) error {
	if !errors.Is(err, kafka.BrokerNotAvailable) {
		return err
	}
	ctx, cancel := context.WithTimeout(c.producer.alive, rpcTimeout)
	defer cancel()
	if found := c.Ping(ctx); found != nil && c.producer.alive.Err() == nil {
		return found
	}
	return err
}

// retry runs f until it succeeds, fails permanently, or ctx ends.
func (c *Client) retry(ctx context.Context, f func(context.Context) error) error {
	wait := newBackoff()
	for failures := 1; ; failures++ {
		err := c.explain(connecting, f(ctx))
		if err == nil || !errors.Is(err, ErrTransient) {
			return err
		}
		if failures == logAfter {
			if err = c.why(err); errors.Is(err, ErrAuth) {
				return err
			}
			if !refused(err) {
				c.log.Warn("kafka does not answer, retrying", zap.Error(err))
			}
		}
		if !wait.sleep(ctx) {
			return err
		}
	}
}
