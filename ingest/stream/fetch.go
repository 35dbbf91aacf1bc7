package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
)

// Batch is what a fetch returned: records of one partition in offset order.
type Batch struct {
	// Records is empty if none came within Config.FetchWait. The list is valid until the next fetch; what its records refer to stays.
	Records []Record
	// HighWatermark is the end of the partition's log when the records were fetched.
	HighWatermark int64
	// Missing counts the offsets before the first record that were deleted before they
	// could be read. They are lost.
	Missing int64
}

// cursor reads one partition from an offset on. It is used by one goroutine; next, end and
// since may be read by others.
type cursor struct {
	c         *Client
	topic     string // without prefix
	partition int32
	epoch     uint32
	dec       *decoder

	next  atomic.Int64 // offset of the next record to return
	end   atomic.Int64 // high watermark as last seen
	since atomic.Int64 // when the fetch under way began, Unix nanoseconds; 0: none under way

	ready   []Record    // decoded, not yet returned
	room    []Record    // memory of ready, reused for the next answer
	missing int64       // not reported yet
	last    fingerprint // of the record before next, once ready is returned
	look    look
	window  window
	headers []header
}

func newCursor(c *Client, topic string, partition int32, epoch uint32, next int64) *cursor {
	q := &cursor{c: c, topic: topic, partition: partition, epoch: epoch, dec: newDecoder()}
	q.next.Store(next)
	return q
}

// fetch returns up to maxRecords records with up to maxBytes of keys and values, at least
// one if there is any. It returns an empty batch after Config.FetchWait without records.
// Transient errors are retried until ctx ends; it then returns ctx's error.
func (q *cursor) fetch(ctx context.Context, maxRecords, maxBytes int) (Batch, error) {
	defer q.since.Store(0)
	if len(q.ready) == 0 {
		q.since.CompareAndSwap(0, time.Now().UnixNano())
		if err := q.fill(ctx); err != nil {
			return Batch{}, err
		}
	}
	n, size := 0, 0
	for n < len(q.ready) && (maxRecords <= 0 || n < maxRecords) {
		size += len(q.ready[n].Key) + len(q.ready[n].Value)
		if n > 0 && maxBytes > 0 && size > maxBytes {
			break
		}
		n++
	}
	b := Batch{Records: q.ready[:n:n], HighWatermark: q.end.Load(), Missing: q.missing}
	q.ready, q.missing = q.ready[n:], 0
	if n > 0 {
		q.next.Store(b.Records[n-1].Position.Offset + 1)
	}
	q.c.metrics.setLag(q.topic, q.partition, max(0, q.end.Load()-q.next.Load()))
	return b, nil
}

// logAfter is the number of consecutive failures, a few seconds' worth, after which an outage is
// logged once.
const logAfter = 8

// fill requests records from the broker, retrying transient failures.
func (q *cursor) fill(ctx context.Context) error {
	wait := newBackoff()
	for failures := 1; ; failures++ {
		err := q.request(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, kafka.OffsetOutOfRange) {
			err = q.relocate(ctx)
			if err == nil {
				continue
			}
		}
		if err = q.c.explain(connecting, err); !errors.Is(err, ErrTransient) {
			return fmt.Errorf("fetch %s/%d at %d: %w", q.topic, q.partition, q.next.Load(), err)
		}
		q.c.metrics.fetchErrors.WithLabelValues(q.topic).Inc()
		if failures == logAfter {
			if err = q.c.why(err); errors.Is(err, ErrAuth) {
				return fmt.Errorf("fetch %s/%d: %w", q.topic, q.partition, err)
			}
			if !refused(err) {
				q.c.log.Warn("fetch fails, retrying", zapTopic(q.topic), zapPartition(q.partition), zap.Error(err))
			}
		}
		if !wait.sleep(ctx) {
			return ctx.Err()
		}
	}
}

// relocate handles an offset the log does not have: below its start reading continues at the start; past its end the caller starts over.
func (q *cursor) relocate(ctx context.Context) error {
	starts, ends, err := q.c.bounds(ctx, q.topic, q.partition)
	if err != nil {
		return err
	}
	next, start, end := q.next.Load(), starts[q.partition], ends[q.partition]
	q.end.Store(end)
	switch {
	case next < start:
		q.gap(start)
	case next > end:
		return fmt.Errorf("%w: at %d, the log ends at %d", ErrLogReplaced, next, end)
	default:
		return fmt.Errorf("%w: offset %d is refused although it is between %d and %d", ErrTransient, next, start, end)
	}
	return nil
}

func (q *cursor) gap(to int64) {
	n := to - q.next.Load()
	q.next.Store(to)
	q.last = 0
	q.missing += n
	q.c.metrics.gaps.WithLabelValues(q.topic).Add(float64(n))
	q.c.log.Error("records were deleted before they were read", zapTopic(q.topic), zapPartition(q.partition), zapInt("missing", n))
}

// fetch makes one request for records. For an offset the log does not have, it returns
// kafka.OffsetOutOfRange.
func (c *Client) fetch(ctx context.Context, topic string, partition int32, offset, maxBytes int64) (*kafka.FetchResponse, error) {
	resp, err := c.kafka.Fetch(ctx, &kafka.FetchRequest{Topic: c.topic(topic), Partition: int(partition), Offset: offset,
		MinBytes: 1, MaxBytes: maxBytes, MaxWait: c.cfg.FetchWait})
	if err == nil {
		err = resp.Error
	}
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return nil, err
	}
	return resp, c.answered(right{"fetch from topic", c.topic(topic)}, err)
}

func (q *cursor) request(ctx context.Context) error {
	clear(q.room) // releases what was returned, however long the fetch takes
	resp, err := q.c.fetch(ctx, q.topic, q.partition, q.next.Load(), q.c.cfg.FetchBytes)
	if err != nil {
		return err
	}
	if err = q.same(ctx, resp.Records); err != nil {
		return err
	}
	q.end.Store(resp.HighWatermark)
	next := q.next.Load()
	q.ready = q.room[:0]
	var size int
	for {
		kr, err := resp.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		// The broker answers with whole batches: the first may begin before next.
		if kr.Offset < next {
			closeRecord(kr)
			continue
		}
		if len(q.ready) == 0 && kr.Offset > next {
			q.gap(kr.Offset)
		}
		r, err := q.decode(kr)
		if err != nil {
			return err
		}
		size += len(r.Key) + len(r.Value)
		q.ready = append(q.ready, r)
		q.last = r.fingerprint
	}
	q.room = q.ready
	m := q.c.metrics
	m.fetched.WithLabelValues(q.topic).Add(float64(len(q.ready)))
	m.fetchedBytes.WithLabelValues(q.topic).Add(float64(size))
	return nil
}

func closeRecord(r *kafka.Record) {
	if r.Key != nil {
		r.Key.Close()
	}
	if r.Value != nil {
		r.Value.Close()
	}
}

func (q *cursor) decode(kr *kafka.Record) (Record, error) {
	r := Record{
		Topic:    q.topic,
		Position: event.Position{Epoch: q.epoch, Partition: q.partition, Offset: kr.Offset},
		Appended: kr.Time.UTC(),
	}
	var err error
	if r.Key, err = q.take(kr.Key); err == nil {
		r.Value, err = q.take(kr.Value)
	}
	if err != nil {
		return r, fmt.Errorf("read record %d: %w", kr.Offset, err)
	}
	q.headers = q.headers[:0]
	for _, h := range kr.Headers {
		q.headers = append(q.headers, header{h.Key, h.Value})
	}
	r.fingerprint = fingerprintOf(&r, q.headers)
	q.dec.record(&r, q.headers)
	if r.Err != nil {
		q.c.metrics.undecodable.WithLabelValues(q.topic).Inc()
	}
	return r, nil
}

// take returns b's bytes in place, in the client's pages: since b is not closed, which would
// release the pages for reuse, they become the record's. Bytes that span several pages are
// copied together.
func (q *cursor) take(b kafka.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	n := b.Len()
	pages, ok := b.(io.WriterTo)
	if !ok {
		p := make([]byte, n)
		_, err := io.ReadFull(b, p)
		return p, err
	}
	q.window = window{size: n}
	if _, err := pages.WriteTo(&q.window); err != nil {
		return nil, err
	}
	if p := q.window.bytes; len(p) == n {
		return p[:n:n], nil
	}
	return nil, fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, len(q.window.bytes), n)
}

// window captures what a WriteTo writes, without copying if it comes in one piece.
type window struct {
	bytes []byte
	size  int
	own   bool // bytes is a copy
}

// Write implements io.Writer.
func (w *window) Write(p []byte) (int, error) {
	switch {
	case w.bytes == nil:
		w.bytes = p
	case !w.own:
		w.bytes, w.own = append(make([]byte, 0, w.size), w.bytes...), true
		fallthrough
	default:
		w.bytes = append(w.bytes, p...)
	}
	return len(p), nil
}
