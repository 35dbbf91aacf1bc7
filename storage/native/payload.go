package native

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/ClickHouse/ch-go/proto"
)

// Payload is the data of an INSERT in Native format, revision 0: pieces that are sent one after the other as they lie in memory. What is
// small is encoded into one buffer; texts stay in the chunks they were collected in, which are most of a block and too much to copy.
type Payload struct {
	buf  proto.Buffer
	cuts []cut
}

// cellBytes is what a column takes of a row in the buffer, texts aside, or a little more (events: 520 bytes in a hundred columns). Room for
// a whole block is made at once: a buffer that doubles copies what it has each time.
const cellBytes = 6

// cut is a place in the buffer, and the chunks that go between what is before and after it.
type cut struct {
	at     int
	chunks [][]byte
}

// pieced is a column that sends some of its data from where it lies.
type pieced interface{ encodePieces(p *Payload) }

// Encode fills the payload with a block of columns. The payload refers to them until it is reset.
func (p *Payload) Encode(columns []proto.InputColumn, rows int) error {
	p.Reset()
	p.buf.Buf = slices.Grow(p.buf.Buf, rows*len(columns)*cellBytes)
	p.buf.PutInt(len(columns))
	p.buf.PutInt(rows)
	for _, c := range columns {
		if n := c.Data.Rows(); n != rows {
			return fmt.Errorf("column %s has %d rows of %d", c.Name, n, rows)
		}
		p.buf.PutString(c.Name)
		p.buf.PutString(string(c.Data.Type()))
		encodeState(&p.buf, c.Data)
		p.encode(c.Data)
	}
	return nil
}

// encode adds the values of a column.
func (p *Payload) encode(column proto.ColInput) {
	if c, ok := column.(pieced); ok {
		c.encodePieces(p)
	} else {
		column.EncodeColumn(&p.buf)
	}
}

// insert puts chunks behind what the buffer has now.
func (p *Payload) insert(chunks [][]byte) {
	if len(chunks) > 0 {
		p.cuts = append(p.cuts, cut{len(p.buf.Buf), chunks})
	}
}

// Reset empties the payload, keeping its memory.
func (p *Payload) Reset() {
	p.buf.Buf = p.buf.Buf[:0]
	clear(p.cuts)
	p.cuts = p.cuts[:0]
}

// Size is the number of bytes.
func (p *Payload) Size() int {
	n := len(p.buf.Buf)
	for _, c := range p.cuts {
		for _, b := range c.chunks {
			n += len(b)
		}
	}
	return n
}

// Reader reads the payload from the beginning.
func (p *Payload) Reader() *payloadReader {
	r := &payloadReader{pieces: make([][]byte, 0, 2*len(p.cuts)+1)}
	from := 0
	for _, c := range p.cuts {
		r.pieces = append(r.pieces, p.buf.Buf[from:c.at])
		r.pieces = append(r.pieces, c.chunks...)
		from = c.at
	}
	r.pieces = append(r.pieces, p.buf.Buf[from:])
	return r
}

// payloadReader is an io.WriterTo, so that whoever can take a piece as it is does not copy it.
type payloadReader struct{ pieces [][]byte }

// Read implements io.Reader.
func (r *payloadReader) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) && len(r.pieces) > 0 {
		m := copy(b[n:], r.pieces[0])
		n += m
		if r.pieces[0] = r.pieces[0][m:]; len(r.pieces[0]) == 0 {
			r.pieces = r.pieces[1:]
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements io.WriterTo.
func (r *payloadReader) WriteTo(w io.Writer) (int64, error) {
	var sum int64
	for len(r.pieces) > 0 {
		n, err := w.Write(r.pieces[0])
		sum += int64(n)
		if err != nil {
			return sum, err
		}
		r.pieces = r.pieces[1:]
	}
	return sum, nil
}

const (
	chunkBytes = 256 << 10 // a chunk that is kept for reuse
	firstChunk = 1 << 10   // the first of a column that keeps none
)

// Chunks are kept for the texts of a block from insert to insert: a buffer that grows, and is
// collected, and grows again costs more than what is written into it.
type Chunks struct {
	free [][]byte
	used int // handed out since the last trim
}

func (m *Chunks) take() []byte {
	m.used++
	if n := len(m.free); n > 0 {
		b := m.free[n-1]
		m.free = m.free[:n-1]
		return b
	}
	return make([]byte, 0, chunkBytes)
}

func (m *Chunks) put(b []byte) {
	if cap(b) == chunkBytes {
		m.free = append(m.free, b[:0])
	}
}

// Trim releases, when all chunks are back, a quarter of those not needed since the last trim, so that a busy hour's memory does not outlast
// it.
func (m *Chunks) Trim() {
	if spare := len(m.free) - m.used; spare > 0 {
		keep := len(m.free) - (spare+3)/4
		clear(m.free[keep:])
		m.free = m.free[:keep]
	}
	m.used = 0
}

// TextColumn builds a String column, in the form it is sent in.
type TextColumn struct {
	Mem  *Chunks // nil: chunks are made and left to the collector
	full [][]byte
	last []byte
	rows int
}

// Append adds a row.
func (c *TextColumn) Append(s string) {
	c.room(len(s))
	c.last = append(binary.AppendUvarint(c.last, uint64(len(s))), s...)
	c.rows++
}

// AppendBytes adds a row.
func (c *TextColumn) AppendBytes(s []byte) {
	c.room(len(s))
	c.last = append(binary.AppendUvarint(c.last, uint64(len(s))), s...)
	c.rows++
}

// room makes sure that a text and its length fit into the last chunk.
func (c *TextColumn) room(n int) {
	n += binary.MaxVarintLen64
	if cap(c.last)-len(c.last) >= n {
		return
	}
	size := min(max(firstChunk, 2*cap(c.last)), chunkBytes)
	if len(c.last) > 0 {
		c.full = append(c.full, c.last)
	}
	if c.Mem != nil && n <= chunkBytes {
		c.last = c.Mem.take()
		return
	}
	c.last = make([]byte, 0, max(n, size))
}

// Reset empties the column.
func (c *TextColumn) Reset() {
	if c.Mem != nil {
		for _, b := range c.full {
			c.Mem.put(b)
		}
		c.Mem.put(c.last)
	}
	clear(c.full)
	c.full, c.last, c.rows = c.full[:0], nil, 0
}

// Type implements proto.ColInput.
func (*TextColumn) Type() proto.ColumnType { return proto.ColumnTypeString }

// Rows implements proto.ColInput.
func (c *TextColumn) Rows() int { return c.rows }

// EncodeColumn implements proto.ColInput.
func (c *TextColumn) EncodeColumn(b *proto.Buffer) {
	for _, chunk := range c.full {
		b.Buf = append(b.Buf, chunk...)
	}
	b.Buf = append(b.Buf, c.last...)
}

// WriteColumn implements proto.ColInput.
func (c *TextColumn) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// encodePieces sends the chunks as they are; what fits into one is little enough to copy.
func (c *TextColumn) encodePieces(p *Payload) {
	p.insert(c.full)
	p.buf.Buf = append(p.buf.Buf, c.last...)
}
