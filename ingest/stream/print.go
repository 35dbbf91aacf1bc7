package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// An offset alone does not say that a log is still the one that was read: a broker may lose
// the end of a log that it had acknowledged, or have the topic made anew, and then give the
// same offsets to other records. While the log is shorter than what was read that shows by
// itself; once it has grown past it, only the records tell. So a reader keeps the print of
// the last record it was given and looks whether it still stands there whenever the log may
// have changed behind its back, and a commit names the prints of the records it speaks of.

// print tells the record at an offset from any other that may come to stand there. 0 is that
// of a record nothing is known about, as is one in a commit of an earlier release.
type print uint64

// printOf hashes what was appended besides the value, which the headers hold the hash of.
func printOf(r *Record, headers []header) print {
	var d xxhash.Digest
	d.Reset()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(r.Appended.UnixMilli()))
	binary.BigEndian.PutUint64(b[8:], uint64(len(r.Value)))
	_, _ = d.Write(b[:]) // hashes do not fail
	_, _ = d.Write(r.Key)
	for _, h := range headers {
		_, _ = d.Write(h.value)
	}
	return max(print(d.Sum64()), 1)
}

// prints are those of consecutive offsets.
type prints struct {
	from int64
	list []print
}

// add appends the next. What came before a gap is forgotten: it may be of any length.
func (p *prints) add(offset int64, of print) {
	if p.from+int64(len(p.list)) != offset {
		p.from, p.list = offset, p.list[:0]
	}
	p.list = append(p.list, of)
}

func (p *prints) at(offset int64) print {
	if i := offset - p.from; i >= 0 && i < int64(len(p.list)) {
		return p.list[i]
	}
	return 0
}

// drop forgets what lies below an offset.
func (p *prints) drop(below int64) {
	if n := min(below-p.from, int64(len(p.list))); n > 0 {
		p.list = append(p.list[:0], p.list[n:]...)
		p.from += n
	}
}

// readTo is the last record a reader was given.
type readTo struct {
	offset int64
	print  print
}

// holds looks whether the record at an offset has the print. What is not known, or not kept
// any more, is not doubted.
func (c *Client) holds(ctx context.Context, topic string, partition int32, offset int64, want print) (bool, error) {
	if want == 0 {
		return true, nil
	}
	got, err := c.printAt(ctx, topic, partition, offset)
	return got == 0 || got == want, err
}

// printAt returns the print of the record at an offset, 0 when there is none (any more).
func (c *Client) printAt(ctx context.Context, topic string, partition int32, offset int64) (print, error) {
	// A broker answers with one batch at least, however little is asked for.
	resp, err := c.fetch(ctx, topic, partition, offset, 1)
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	q := newCursor(c, topic, partition, 0, offset)
	for {
		kr, err := resp.Records.ReadRecord()
		switch {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("read records: %w", err)
		case kr.Offset < offset:
			closeRecord(kr)
			continue
		case kr.Offset > offset:
			closeRecord(kr)
			return 0, nil
		}
		r, err := q.decode(kr)
		return r.print, err
	}
}

// look is when a reader last made sure that the log is the one it reads.
type look struct {
	// dials is Client.dials as of then: a broker that was not started since answers on
	// connections that are older.
	dials int64
	// leader is the leader epoch of the last batch read. One leader only appends.
	leader int32
}

// same looks whether the log that answered with these records is still the one that was read
// before, if there is a reason to doubt it.
func (q *cursor) same(ctx context.Context, records kafka.RecordReader) error {
	now := look{q.c.dials.Load(), q.look.leader}
	first := now.leader
	if s, ok := records.(*protocol.RecordStream); ok {
		for i, part := range s.Records {
			if b, ok := part.(*protocol.RecordBatch); ok {
				if now.leader = b.PartitionLeaderEpoch; i == 0 {
					first = now.leader
				}
			}
		}
	}
	if q.look.dials != now.dials || q.look.leader != first {
		at := q.next.Load() - 1
		held, err := q.c.holds(ctx, q.topic, q.partition, at, q.last)
		if err != nil {
			return err
		}
		if !held {
			return fmt.Errorf("%w: another record stands at %d", ErrLogReplaced, at)
		}
	}
	q.look = now
	return nil
}
