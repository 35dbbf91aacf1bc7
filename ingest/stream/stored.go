package stream

import (
	"encoding/binary"
	"fmt"
)

// The format of a record outside of Kafka: the lengths and bytes of topic, key and value, as
// varints, then the headers exactly as they travel, codec version included.

// AppendRecord appends r in the format that a [Decoder] reads, without Position, Appended and
// Err, which belong to a place in a log.
func AppendRecord(b []byte, r *Record) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Topic)))
	b = append(b, r.Topic...)
	b = binary.AppendUvarint(b, uint64(len(r.Key)))
	b = append(b, r.Key...)
	b = binary.AppendUvarint(b, uint64(len(r.Value)))
	b = append(b, r.Value...)
	return appendHeaders(b, r)
}

// Decoder reads what AppendRecord has written, by this release or one whose codec version it
// still reads. It is for one goroutine.
type Decoder struct {
	d       *decoder
	headers []header
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return &Decoder{d: newDecoder()} }

// Next reads the record at the beginning of b and returns the bytes after it. Key and Value
// alias b. Errors match ErrMalformed or ErrCodecVersion; after ErrMalformed it is unknown where
// the next record begins.
func (d *Decoder) Next(b []byte) (r Record, rest []byte, err error) {
	field := func(what string) (v []byte) {
		if err != nil {
			return nil
		}
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			err = fmt.Errorf("%w: the %s is truncated", ErrMalformed, what)
			return nil
		}
		v, b = b[w:w+int(n):w+int(n)], b[w+int(n):]
		return v
	}
	signed := func(what string) (v []byte) {
		if err != nil {
			return nil
		}
		n, w := binary.Varint(b)
		if w <= 0 || n < 0 || n > int64(len(b)-w) {
			err = fmt.Errorf("%w: the %s is truncated", ErrMalformed, what)
			return nil
		}
		v, b = b[w:w+int(n):w+int(n)], b[w+int(n):]
		return v
	}
	topic := field("topic")
	r.Key, r.Value = field("key"), field("value")
	if err != nil {
		return r, nil, err
	}
	count, w := binary.Varint(b)
	if w <= 0 || count < 0 || count > int64(len(b)) {
		return r, nil, fmt.Errorf("%w: no number of headers", ErrMalformed)
	}
	b, d.headers = b[w:], d.headers[:0]
	for range count {
		name := signed("header's name")
		value := signed("header's value")
		if err != nil {
			return r, nil, err
		}
		d.headers = append(d.headers, header{d.d.intern(name), value})
	}
	r.Topic = d.d.intern(topic)
	d.d.record(&r, d.headers)
	r.Err, err = nil, r.Err
	if err == nil && !knownTopic(r.Topic) {
		err = fmt.Errorf("%w: unknown topic %q", ErrMalformed, r.Topic)
	}
	return r, b, err
}
