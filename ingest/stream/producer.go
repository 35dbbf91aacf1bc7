package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"golang.org/x/sync/semaphore"
)

// Appender takes records into Kafka, by whatever way. Produce returns nil once every record was
// acknowledged; after an error any of them may have been. It keeps nothing of a record after it has
// returned.
type Appender interface {
	Produce(ctx context.Context, recs ...Record) error
}

// Producer appends records to the log. Concurrent calls share batches: each partition has
// a queue with one batch in flight, and what arrives meanwhile becomes the next one, so
// that batches grow with load and nothing waits for a timer.
//
// Records of one call to one partition keep their order, as do those of successive calls.
type Producer struct {
	c    *Client
	room *semaphore.Weighted // Config.InFlightBytes

	mu     sync.Mutex
	queues map[partition]*partitionQueue
	closed bool
	done   sync.WaitGroup // queues being served

	alive context.Context // ends with the producer; queues outlive the calls that fill them
	stop  context.CancelFunc

	pool sync.Pool // *batch
}

type partition struct {
	topic     string // without prefix
	partition int32
}

// partitionQueue holds the batches of a partition that are not yet sent.
type partitionQueue struct {
	mu      sync.Mutex
	queue   []*outgoing
	running bool
}

// outgoing is a batch with the calls that wait for it.
type outgoing struct {
	*batch
	calls    []*call
	payload  int       // bytes of keys, values and headers
	deadline time.Time // the latest of the calls'
}

// call is one Produce call. It is finished when all of its queues have answered.
type call struct {
	mu   sync.Mutex
	left int
	err  error
	done chan struct{}
	size int64
	room *semaphore.Weighted
}

// answer records the outcome of one queue.
func (k *call) answer(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
	if k.left--; k.left == 0 {
		// The room is released here, not when the caller stops waiting: until now the records
		// were held in a batch.
		k.room.Release(k.size)
		close(k.done)
	}
}

func newProducer(c *Client) *Producer {
	p := &Producer{c: c, room: semaphore.NewWeighted(c.cfg.InFlightBytes),
		queues: make(map[partition]*partitionQueue),
		pool:   sync.Pool{New: func() any { return new(batch) }}}
	p.alive, p.stop = context.WithCancel(context.Background())
	return p
}

// Produce appends records and returns once all in-sync replicas have them. It retries what is transient until ctx or ProduceTimeout ends.
//
// Errors: *TooLargeError before anything is sent; ErrFull; ErrTransient (also if ctx ended,
// whose error it then wraps); ErrAuth; ErrClosed. After an error some records may have been
// appended.
func (p *Producer) Produce(ctx context.Context, recs ...Record) error {
	if len(recs) == 0 {
		return nil
	}
	return p.produceBy(ctx, recs, p.c.cfg.MaxRecordBytes, p.inForce)
}

// ProduceBy appends records of TopicEvents to the partitions that are theirs by a layout, whichever is in force, as Produce
// does: records that were in the log before, whatever is the largest this client takes in.
func (p *Producer) ProduceBy(ctx context.Context, l Layout, recs ...Record) error {
	if len(recs) == 0 {
		return nil
	}
	by := func(_ context.Context, r *Record) (int32, error) { return l.PartitionOf(r.Cluster, r.Key), nil }
	return p.produceBy(ctx, recs, maxMessageBytes-batchHeader-recordOverhead, by)
}

// route returns the partition of a record.
type route func(ctx context.Context, r *Record) (int32, error)

func (p *Producer) produceBy(ctx context.Context, recs []Record, limit int, to route) error {
	start := time.Now()
	err := p.produce(ctx, recs, limit, to)
	if err != nil {
		p.c.metrics.produceErrors.WithLabelValues(kindOf(err)).Inc()
		return fmt.Errorf("produce %d records: %w", len(recs), err)
	}
	p.c.metrics.produceSeconds.Observe(time.Since(start).Seconds())
	return nil
}

func (p *Producer) produce(ctx context.Context, recs []Record, limit int, to route) error {
	var total int64
	for i := range recs {
		n := RecordSize(&recs[i])
		if n > limit {
			return &TooLargeError{Index: i, Topic: recs[i].Topic, Size: n, Limit: limit}
		}
		total += int64(n)
	}
	ctx, cancel := context.WithTimeout(ctx, p.c.cfg.ProduceTimeout)
	defer cancel()

	// One call may be larger than all the room there is: it then waits until it is alone.
	total = min(total, p.c.cfg.InFlightBytes)
	if err := p.room.Acquire(ctx, total); err != nil {
		return fmt.Errorf("%w: wait for room for %d bytes: %w", ErrTransient, total, err)
	}
	k := &call{done: make(chan struct{}), size: total, room: p.room}
	byPartition, err := p.split(ctx, recs, to)
	if err != nil {
		p.room.Release(total)
		return err
	}
	p.c.metrics.inFlight.Add(float64(total))
	defer p.c.metrics.inFlight.Sub(float64(total))
	deadline, _ := ctx.Deadline()
	k.left = len(byPartition)
	for l, idx := range byPartition {
		if !p.enqueue(l, recs, idx, k, deadline) {
			k.answer(ErrClosed)
		}
	}
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		return fmt.Errorf("%w: wait for acknowledgement: %w", ErrTransient, ctx.Err())
	}
}

// RecordSize returns the bytes Config.MaxRecordBytes is compared with: a bound of what the record takes in a batch before compression.
func RecordSize(r *Record) int {
	return recordOverhead + len(r.Key) + len(r.Value) + headersSize(r)
}

// split sorts the indices of records by the partition they go to.
func (p *Producer) split(ctx context.Context, recs []Record, to route) (map[partition][]int, error) {
	byPartition := make(map[partition][]int)
	for i := range recs {
		r := &recs[i]
		if !slices.Contains(topicNames[:], r.Topic) {
			return nil, fmt.Errorf("record %d: unknown topic %q", i, r.Topic)
		}
		of, err := to(ctx, r)
		if err != nil {
			return nil, err
		}
		l := partition{r.Topic, of}
		byPartition[l] = append(byPartition[l], i)
	}
	return byPartition, nil
}

// inForce is the route of records that come in.
func (p *Producer) inForce(ctx context.Context, r *Record) (of int32, err error) {
	if r.Topic == TopicEvents {
		l, err := p.c.layoutInForce(ctx)
		return l.PartitionOf(r.Cluster, r.Key), err
	}
	var n int
	err = p.c.retry(ctx, func(ctx context.Context) (err error) {
		n, err = p.c.Partitions(ctx, r.Topic)
		return err
	})
	return PartitionOf(r.Key, n), err
}

// enqueue appends a call's records for one partition to its queue and makes sure that it is served; false if the producer is closed.
func (p *Producer) enqueue(l partition, recs []Record, idx []int, k *call, deadline time.Time) bool {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	ls := p.queues[l]
	if ls == nil {
		ls = &partitionQueue{}
		p.queues[l] = ls
	}
	p.done.Add(1) // for serve; undone below if the queue is already being served
	p.mu.Unlock()

	ls.mu.Lock()
	defer ls.mu.Unlock()
	serve := !ls.running
	if serve {
		ls.running = true
	} else {
		p.done.Done()
	}
	now := time.Now().UnixMilli()
	var out *outgoing
	if n := len(ls.queue); n > 0 {
		out = ls.queue[n-1]
	}
	extra := 0 // batches of this call beyond the first
	for _, i := range idx {
		r := &recs[i]
		size := RecordSize(r)
		if out == nil || out.n > 0 && out.size()+size > p.c.cfg.BatchBytes {
			out = &outgoing{batch: p.pool.Get().(*batch)}
			out.reset()
			ls.queue = append(ls.queue, out)
		}
		if n := len(out.calls); n == 0 || out.calls[n-1] != k {
			out.calls = append(out.calls, k)
			extra++
		}
		if deadline.After(out.deadline) {
			out.deadline = deadline
		}
		out.payload += len(r.Key) + len(r.Value)
		out.append(r, now)
	}
	if extra > 1 {
		k.mu.Lock()
		k.left += extra - 1
		k.mu.Unlock()
	}
	if serve {
		go p.serve(l, ls)
	}
	return true
}

// serve sends a partition's batches until there are none.
func (p *Producer) serve(l partition, ls *partitionQueue) {
	defer p.done.Done()
	for {
		ls.mu.Lock()
		if len(ls.queue) == 0 {
			ls.queue, ls.running = nil, false
			ls.mu.Unlock()
			return
		}
		out := ls.queue[0]
		ls.queue[0] = nil
		ls.queue = ls.queue[1:]
		ls.mu.Unlock()

		sent, err := p.send(l, out)
		if err == nil {
			m := p.c.metrics
			m.produced.WithLabelValues(l.topic).Add(float64(out.n))
			m.producedBytes.WithLabelValues(l.topic).Add(float64(out.payload))
			m.batches.WithLabelValues(l.topic).Inc()
			m.batchBytes.WithLabelValues(l.topic).Add(float64(sent))
		}
		for _, k := range out.calls {
			k.answer(err)
		}
		// A request that timed out may still be read: only an acknowledged buffer is used again, and none that grew for one huge record.
		if err == nil && cap(out.buf) <= 4*p.c.cfg.BatchBytes {
			p.pool.Put(out.batch)
		}
	}
}

// send sends one batch, repeatedly if need be, until the deadline of its last call.
// It returns the bytes sent.
func (p *Producer) send(l partition, out *outgoing) (int, error) {
	raw := out.seal()
	ctx, cancel := context.WithDeadline(p.alive, out.deadline)
	defer cancel()
	wait := newBackoff()
	for failures := 1; ; failures++ {
		err := p.attempt(ctx, l, raw)
		if err == nil {
			return len(raw), nil
		}
		if p.alive.Err() != nil {
			return 0, ErrClosed
		}
		if failures == logAfter {
			err = p.c.why(err)
		}
		if !errors.Is(err, ErrTransient) && !errors.Is(err, context.Canceled) {
			return 0, fmt.Errorf("%s/%d: %w", l.topic, l.partition, err)
		}
		if !wait.sleep(ctx) {
			return 0, fmt.Errorf("%w: %s/%d: %w", ErrTransient, l.topic, l.partition, err)
		}
	}
}

func (p *Producer) attempt(ctx context.Context, l partition, raw []byte) error {
	resp, err := p.c.kafka.RawProduce(ctx, &kafka.RawProduceRequest{
		Topic: p.c.topic(l.topic), Partition: int(l.partition), RequiredAcks: kafka.RequireAll,
		RawRecords: protocol.RawRecordSet{Reader: bytes.NewReader(raw)},
	})
	if err == nil {
		err = resp.Error
	}
	return p.c.answered(right{"produce to topic", p.c.topic(l.topic)}, err)
}

// background has f called beside what is produced; its context ends with the producer.
func (p *Producer) background(f func(ctx context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.done.Go(func() { f(p.alive) })
	}
}

// close fails what waits and returns once no request is under way.
func (p *Producer) close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	p.stop()
	p.mu.Unlock()
	p.done.Wait()
}
