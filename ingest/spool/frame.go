package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/retrial-io/retrial/ingest/stream"
)

// A segment is a header and frames. The header tells of the segment before it, to recognise one cut, or left too long by a failed write:
//
//	0 magic 8 │ 8 number of the segment before 8 │ 16 bytes of it that were acknowledged 8 │ 24 crc 4
//
// A frame holds records of one cluster:
//
//	 0 magic 4 │ 4 bytes after the head 4 │ 8 bytes of the records, uncompressed 4 │ 12 records 4
//	16 bytes of the cluster's name 1 │ 17 reserved 3 │ 20 crc of what follows the head 4
//	24 crc of the 24 bytes before 4 │ 28 the cluster's name, then the records (stream.AppendRecord), zstd
//
// All numbers are little endian, both checksums CRC-32C. The head has a checksum of its own, so
// that a frame with damaged records can be skipped, and a magic number, so that the next frame
// can be found after a damaged head.
const (
	segmentMagic = "RTLSPL1\n" // the digit is the version
	headerBytes  = 28
	headBytes    = 28
	frameMagic   = 0x31465352 // "RSF1"

	// frameTarget is how many bytes of records go into a frame, unless one is larger: enough to compress well, few enough to hold several.
	frameTarget = 1 << 20
	// frameMax bounds what a damaged length can make the reader allocate.
	frameMax = 64 << 20
)

var (
	errDamaged = errors.New("frame is damaged")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// segmentHeader returns the header of a segment that follows the segment before, of which end bytes were acknowledged; 0 for the first.
func segmentHeader(before uint64, end int64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64([]byte(segmentMagic), before)
	b = le.AppendUint64(b, uint64(end))
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseSegmentHeader parses what segmentHeader returns; ok is false if b is not one.
func parseSegmentHeader(b []byte) (before uint64, end int64, ok bool) {
	le := binary.LittleEndian
	if len(b) < headerBytes || string(b[:8]) != segmentMagic || le.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return 0, 0, false
	}
	return le.Uint64(b[8:]), int64(le.Uint64(b[16:])), true
}

// head is the head of a frame, with the name that follows it.
type head struct {
	size    int64 // of the whole frame, head included
	raw     int   // bytes of the records, uncompressed
	records int
	cluster string
	name    int // bytes of the cluster's name
	crc     uint32
}

// parseHead parses the 28 bytes of a head; ok is false if b is not one.
func parseHead(b []byte) (h head, ok bool) {
	le := binary.LittleEndian
	if len(b) < headBytes || le.Uint32(b) != frameMagic || le.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return head{}, false
	}
	h = head{
		size: headBytes + int64(le.Uint32(b[4:])), raw: int(le.Uint32(b[8:])), records: int(le.Uint32(b[12:])),
		name: int(b[16]), crc: le.Uint32(b[20:]),
	}
	return h, h.size <= frameMax && h.raw <= frameMax && h.size >= headBytes+int64(h.name)
}

type frame struct {
	bytes   []byte
	cluster string
}

// codec encodes and decodes frames. Encoding is safe for concurrent use; at most as many frames
// as there are processors are encoded at once, so that memory stays bounded however many posts
// arrive together.
type codec struct {
	enc   *zstd.Encoder
	dec   *zstd.Decoder
	slots chan []byte // buffers for records, one per frame being encoded
}

func newCodec(parallel int) (*codec, error) {
	// The fastest level already compresses audit JSON to a tenth.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(parallel), zstd.WithWindowSize(frameTarget), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd encoder: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(frameMax))
	if err != nil {
		return nil, fmt.Errorf("zstd decoder: %w", err)
	}
	c := &codec{enc: enc, dec: dec, slots: make(chan []byte, parallel)}
	for range parallel {
		c.slots <- nil
	}
	return c, nil
}

func (c *codec) close() {
	_ = c.enc.Close() // nothing is buffered
	c.dec.Close()
}

// encode makes frames of records, in their order.
func (c *codec) encode(recs []stream.Record) []frame {
	buf := <-c.slots
	defer func() {
		if cap(buf) > 4*frameTarget { // grown by one huge record
			buf = nil
		}
		c.slots <- buf
	}()
	var frames []frame
	for first := 0; first < len(recs); {
		buf = buf[:0]
		n := first
		fits := func() bool {
			return recs[n].Cluster == recs[first].Cluster && len(buf)+len(recs[n].Value) <= frameTarget
		}
		for ; n < len(recs) && (n == first || fits()); n++ {
			buf = stream.AppendRecord(buf, &recs[n])
		}
		frames = append(frames, c.frame(recs[first].Cluster, n-first, buf))
		first = n
	}
	return frames
}

func (c *codec) frame(cluster string, records int, raw []byte) frame {
	name := cluster[:min(len(cluster), 255)]
	b := make([]byte, headBytes, headBytes+len(name)+len(raw)/6)
	b = append(b, name...)
	b = c.enc.EncodeAll(raw, b)
	le := binary.LittleEndian
	le.PutUint32(b, frameMagic)
	le.PutUint32(b[4:], uint32(len(b)-headBytes))
	le.PutUint32(b[8:], uint32(len(raw)))
	le.PutUint32(b[12:], uint32(records))
	b[16] = byte(len(name))
	le.PutUint32(b[20:], crc32.Checksum(b[headBytes:], castagnoli))
	le.PutUint32(b[24:], crc32.Checksum(b[:24], castagnoli))
	return frame{bytes: b, cluster: cluster}
}

// decode appends the records of a whole frame to recs. They share no memory with b.
func (c *codec) decode(recs []stream.Record, d *stream.Decoder, h head, b []byte) ([]stream.Record, error) {
	body := b[headBytes:]
	if crc32.Checksum(body, castagnoli) != h.crc {
		return recs, fmt.Errorf("%w: checksum", errDamaged)
	}
	raw, err := c.dec.DecodeAll(body[h.name:], make([]byte, 0, h.raw))
	if err != nil {
		return recs, fmt.Errorf("%w: %w", errDamaged, err)
	}
	before := len(recs)
	for len(raw) > 0 {
		var r stream.Record
		if r, raw, err = d.Next(raw); err != nil {
			return recs[:before], fmt.Errorf("record %d of %d: %w", len(recs)-before, h.records, err)
		}
		recs = append(recs, r)
	}
	if len(recs)-before != h.records {
		return recs[:before], fmt.Errorf("%w: it has %d records, its head says %d", errDamaged, len(recs)-before, h.records)
	}
	return recs, nil
}

// readHead reads the head at an offset, and the cluster's name. ok is false if there is no
// head; err is an error of reading.
func readHead(f File, at, end int64) (h head, ok bool, err error) {
	var b [headBytes + 255]byte
	n := int(min(int64(len(b)), end-at))
	if n < headBytes {
		return head{}, false, nil
	}
	if err := readFull(f, b[:n], at); err != nil {
		return head{}, false, err
	}
	if h, ok = parseHead(b[:]); !ok || headBytes+h.name > n {
		return head{}, false, nil
	}
	h.cluster = string(b[headBytes : headBytes+h.name])
	return h, true, nil
}

func readFull(f File, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), at, err)
}

// nextHead returns the offset of the first head at or after an offset, or end.
func nextHead(f File, at, end int64) (int64, error) {
	const step = 64 << 10
	buf := make([]byte, step+headBytes)
	for at < end {
		b := buf[:min(int64(len(buf)), end-at)]
		if err := readFull(f, b, at); err != nil {
			return 0, err
		}
		for i := 0; i+headBytes <= len(b); i++ {
			if _, ok := parseHead(b[i:]); ok {
				return at + int64(i), nil
			}
		}
		at += step
	}
	return end, nil
}
