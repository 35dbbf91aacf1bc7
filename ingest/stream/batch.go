package stream

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/segmentio/kafka-go/compress"
)

// A record batch is built here rather than by the client library: records of concurrent
// callers are appended straight into the bytes that are sent, which costs a third of the
// CPU and lets the caller keep its buffers.
//
// Layout (Kafka's record batch, magic 2), after the four bytes of the record set's size:
//
//	 0 base offset 8 │ 8 length 4 │ 12 leader epoch 4 │ 16 magic 1 │ 17 crc 4 │ 21 attributes 2
//	23 last offset delta 4 │ 27 first timestamp 8 │ 35 max timestamp 8 │ 43 producer id 8
//	51 producer epoch 2 │ 53 base sequence 4 │ 57 number of records 4 │ 61 records
const (
	sizePrefix  = 4
	batchHeader = 61
)

// recordOverhead bounds what the record format adds to key, value and headers: six lengths of up to five bytes (a delta ten), attributes.
const recordOverhead = 48

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch is a record batch under construction. Zero value: call reset first.
type batch struct {
	buf      []byte // size prefix, header, records as appended so far
	n        int32
	first    int64 // timestamp of the first record, Unix milliseconds
	last     int64 // highest timestamp
	headers  []byte
	compress []byte
}

func (b *batch) reset() {
	if cap(b.buf) < sizePrefix+batchHeader {
		b.buf = make([]byte, 0, 64<<10)
	}
	b.buf = b.buf[:sizePrefix+batchHeader]
	b.n, b.first, b.last = 0, 0, 0
}

// size returns the bytes of the batch, uncompressed.
func (b *batch) size() int { return len(b.buf) }

// append adds a record appended at ms (Unix milliseconds).
func (b *batch) append(r *Record, ms int64) {
	if b.n == 0 {
		b.first, b.last = ms, ms
	}
	b.last = max(b.last, ms)
	b.headers = appendHeaders(b.headers[:0], r)
	delta, seq := ms-b.first, int64(b.n)
	n := 1 + varintLen(delta) + varintLen(seq) +
		varintLen(int64(len(r.Key))) + len(r.Key) +
		varintLen(int64(len(r.Value))) + len(r.Value) + len(b.headers)
	p := b.buf
	p = binary.AppendVarint(p, int64(n))
	p = append(p, 0) // attributes
	p = binary.AppendVarint(p, delta)
	p = binary.AppendVarint(p, seq)
	p = binary.AppendVarint(p, int64(len(r.Key)))
	p = append(p, r.Key...)
	p = binary.AppendVarint(p, int64(len(r.Value)))
	p = append(p, r.Value...)
	b.buf = append(p, b.headers...)
	b.n++
}

func varintLen(v int64) int { return uvarintLen(uint64(v)<<1 ^ uint64(v>>63)) }

// seal compresses the records and fills in the header. The result is valid until the next reset.
//
// Batches are compressed with snappy: on audit events it costs half the processor time of lz4 and
// zstd to write, takes as much room as lz4 and twice that of zstd (docs/adr/0010-kafka.md). All
// records are one block, without the framing that some clients put around many small ones:
// neighbouring records of a batch repeat each other.
func (b *batch) seal() []byte {
	const head = sizePrefix + batchHeader
	records := b.buf[head:]
	out := slices.Grow(append(b.compress[:0], b.buf[:head]...), s2.MaxEncodedLen(len(records)))
	out = out[:head+len(s2.EncodeSnappy(out[head:cap(out)], records))]
	b.compress = out
	be := binary.BigEndian
	be.PutUint32(out, uint32(len(out)-sizePrefix))
	h := out[sizePrefix:]
	be.PutUint64(h[0:], 0)
	be.PutUint32(h[8:], uint32(len(h)-12))
	be.PutUint32(h[12:], 1<<32-1) // leader epoch: the broker's
	h[16] = 2
	be.PutUint16(h[21:], uint16(compress.Snappy))
	be.PutUint32(h[23:], uint32(b.n-1))
	be.PutUint64(h[27:], uint64(b.first))
	be.PutUint64(h[35:], uint64(b.last))
	be.PutUint64(h[43:], 1<<64-1) // no producer id: not idempotent
	be.PutUint16(h[51:], 1<<16-1)
	be.PutUint32(h[53:], 1<<32-1)
	be.PutUint32(h[57:], uint32(b.n))
	be.PutUint32(h[17:], crc32.Checksum(h[21:], castagnoli))
	return out
}
