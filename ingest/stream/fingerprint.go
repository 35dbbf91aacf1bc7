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

// An offset alone does not show that a log is still the one that was read: a broker may lose
// the acknowledged end of a log, or the topic may be recreated, and then the same offsets go to
// other records. While the log is shorter than what was read, that is obvious; once it has grown
// past it, only the records differ. So a reader keeps the fingerprint of the last record it was
// given and checks that it is still there whenever the log may have changed unnoticed, and a
// commit holds the fingerprints of the records it refers to.

// fingerprint identifies the record at an offset among all that may stand there. 0: nothing is known, as with commits of earlier releases.
type fingerprint uint64

// fingerprintOf hashes what was appended except the value, whose hash is in the headers.
func fingerprintOf(r *Record, headers []header) fingerprint {
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
	return max(fingerprint(d.Sum64()), 1)
}

type fingerprints struct {
	from int64
	list []fingerprint
}

// add appends the next. What came before a gap is forgotten: the gap may be of any length.
func (p *fingerprints) add(offset int64, of fingerprint) {
	if p.from+int64(len(p.list)) != offset {
		p.from, p.list = offset, p.list[:0]
	}
	p.list = append(p.list, of)
}

func (p *fingerprints) at(offset int64) fingerprint {
	if i := offset - p.from; i >= 0 && i < int64(len(p.list)) {
		return p.list[i]
	}
	return 0
}

func (p *fingerprints) drop(below int64) {
	if n := min(below-p.from, int64(len(p.list))); n > 0 {
		p.list = append(p.list[:0], p.list[n:]...)
		p.from += n
	}
}

// readTo is the last record a reader was given.
type readTo struct {
	offset      int64
	fingerprint fingerprint
}

// holds reports whether the record at an offset has the fingerprint; it is true if the record is
// not known, or not kept any more.
func (c *Client) holds(ctx context.Context, topic string, partition int32, offset int64, want fingerprint) (bool, error) {
	if want == 0 {
		return true, nil
	}
	got, err := c.fingerprintAt(ctx, topic, partition, offset)
	return got == 0 || got == want, err
}

// fingerprintAt returns the fingerprint of the record at an offset, 0 if there is none (any more).
func (c *Client) fingerprintAt(ctx context.Context, topic string, partition int32, offset int64) (fingerprint, error) {
	// A broker answers with at least one batch, however little is requested.
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
		return r.fingerprint, err
	}
}

// look is when a reader last made sure that the log is the one it reads.
type look struct {
	// dials is Client.dials as of then: a broker that has not restarted since answers on
	// older connections.
	dials int64
	// leader is the leader epoch of the last batch read. One leader only appends.
	leader int32
}

// same returns ErrLogReplaced if the log that answered is not the one that was read before. It checks only if there is reason to.
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
			return fmt.Errorf("%w: another record is at %d", ErrLogReplaced, at)
		}
	}
	q.look = now
	return nil
}
