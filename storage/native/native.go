package native

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/ingest/event"
)

// This file has the column builders of an insert that the driver's own do not make cheap:
// dictionary columns that hash a value once, arrays and maps filled in place. They are
// written as ClickHouse's Native format, revision 0.

// LowCard builds a LowCardinality(String) column. Consecutive equal values, the common
// case in a batch of events, cost one comparison.
type LowCard struct {
	dict map[string]uint32
	vals TextColumn // the dictionary, in order of first use
	keys []uint32
	last string
	lkey uint32
}

// Append adds a row.
func (c *LowCard) Append(s string) {
	if len(c.keys) > 0 && s == c.last {
		c.keys = append(c.keys, c.lkey)
		return
	}
	key, ok := c.dict[s]
	if !ok {
		if c.dict == nil {
			c.dict = make(map[string]uint32, 64)
		}
		key = uint32(c.vals.Rows())
		c.dict[s] = key
		c.vals.Append(s)
	}
	c.last, c.lkey = s, key
	c.keys = append(c.keys, key)
}

// AppendBytes adds a row whose text need not be a string of its own: only what is new to the
// dictionary is copied.
func (c *LowCard) AppendBytes(b []byte) {
	if len(c.keys) > 0 && string(b) == c.last {
		c.keys = append(c.keys, c.lkey)
		return
	}
	if key, ok := c.dict[string(b)]; ok {
		c.keys = append(c.keys, key)
		return
	}
	c.Append(string(b))
}

// Reset empties the column, keeping its memory.
func (c *LowCard) Reset() {
	clear(c.dict)
	c.vals.Reset()
	c.keys = c.keys[:0]
	c.last, c.lkey = "", 0
}

// Type implements proto.ColInput.
func (*LowCard) Type() proto.ColumnType { return "LowCardinality(String)" }

// Rows implements proto.ColInput.
func (c *LowCard) Rows() int { return len(c.keys) }

// EncodeState implements proto.StateEncoder: the version of the keys' serialization.
func (*LowCard) EncodeState(b *proto.Buffer) { b.PutInt64(1) }

// Flags of a LowCardinality block: it carries its own dictionary, replacing any before.
const (
	lowCardAdditionalKeys   = 1 << 9
	lowCardUpdateDictionary = 1 << 10
)

// EncodeColumn implements proto.ColInput.
func (c *LowCard) EncodeColumn(b *proto.Buffer) {
	if len(c.keys) == 0 {
		return
	}
	n := c.vals.Rows()
	width := int64(0) // log2 of the bytes of a key
	if n > 1<<8 {
		width = 1
	}
	if n > 1<<16 {
		width = 2
	}
	b.PutInt64(lowCardAdditionalKeys | lowCardUpdateDictionary | width)
	b.PutInt64(int64(n))
	c.vals.EncodeColumn(b)
	b.PutInt64(int64(len(c.keys)))
	switch width {
	case 0:
		for _, k := range c.keys {
			b.Buf = append(b.Buf, byte(k))
		}
	case 1:
		for _, k := range c.keys {
			b.Buf = append(b.Buf, byte(k), byte(k>>8))
		}
	default:
		for _, k := range c.keys {
			b.Buf = append(b.Buf, byte(k), byte(k>>8), byte(k>>16), byte(k>>24))
		}
	}
}

// WriteColumn implements proto.ColInput; the store encodes into one buffer.
func (c *LowCard) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// LowCardArray builds an Array(LowCardinality(String)) column.
type LowCardArray struct {
	ends  proto.ColUInt64
	Items LowCard
}

// Append adds a row.
func (c *LowCardArray) Append(list []string) {
	for _, s := range list {
		c.Items.Append(s)
	}
	c.End()
}

// End ends the value of a row, whose items have been appended.
func (c *LowCardArray) End() { c.ends = append(c.ends, uint64(c.Items.Rows())) }

// Reset empties the column.
func (c *LowCardArray) Reset() { c.ends = c.ends[:0]; c.Items.Reset() }

// Type implements proto.ColInput.
func (*LowCardArray) Type() proto.ColumnType { return "Array(LowCardinality(String))" }

// Rows implements proto.ColInput.
func (c *LowCardArray) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *LowCardArray) EncodeState(b *proto.Buffer) { c.Items.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *LowCardArray) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.Items.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *LowCardArray) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// TextArray builds an Array(String) column.
type TextArray struct {
	ends  proto.ColUInt64
	Items TextColumn
}

// End ends the value of a row.
func (c *TextArray) End() { c.ends = append(c.ends, uint64(c.Items.Rows())) }

// Append adds a row.
func (c *TextArray) Append(list []string) {
	for _, s := range list {
		c.Items.Append(s)
	}
	c.End()
}

// Reset empties the column.
func (c *TextArray) Reset() { c.ends = c.ends[:0]; c.Items.Reset() }

// Type implements proto.ColInput.
func (*TextArray) Type() proto.ColumnType { return "Array(String)" }

// Rows implements proto.ColInput.
func (c *TextArray) Rows() int { return len(c.ends) }

// EncodeColumn implements proto.ColInput.
func (c *TextArray) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.Items.EncodeColumn(b)
}

func (c *TextArray) encodePieces(p *Payload) {
	c.ends.EncodeColumn(&p.buf)
	c.Items.encodePieces(p)
}

// WriteColumn implements proto.ColInput.
func (c *TextArray) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// arrayOf builds an Array column of numbers.
type arrayOf[T proto.ColUInt64 | proto.ColInt32, C interface {
	*T
	proto.ColInput
	proto.Resettable
}] struct {
	ends  proto.ColUInt64
	Items T
}

// NumberArray builds an Array(UInt64) column, codeArray an Array(Int32) column.
type (
	NumberArray = arrayOf[proto.ColUInt64, *proto.ColUInt64]
	CodeArray   = arrayOf[proto.ColInt32, *proto.ColInt32]
)

// End ends the value of a row.
func (c *arrayOf[T, C]) End() { c.ends = append(c.ends, uint64(C(&c.Items).Rows())) }

// Reset empties the column.
func (c *arrayOf[T, C]) Reset() { c.ends = c.ends[:0]; C(&c.Items).Reset() }

// Type implements proto.ColInput.
func (c *arrayOf[T, C]) Type() proto.ColumnType { return "Array(" + C(&c.Items).Type() + ")" }

// Rows implements proto.ColInput.
func (c *arrayOf[T, C]) Rows() int { return len(c.ends) }

// EncodeColumn implements proto.ColInput.
func (c *arrayOf[T, C]) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	C(&c.Items).EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *arrayOf[T, C]) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// TextMap builds a Map(LowCardinality(String), LowCardinality(String)) column.
type TextMap struct {
	ends   proto.ColUInt64
	Keys   LowCard
	Values LowCard
}

// End ends the value of a row.
func (c *TextMap) End() { c.ends = append(c.ends, uint64(c.Keys.Rows())) }

// Reset empties the column.
func (c *TextMap) Reset() { c.ends = c.ends[:0]; c.Keys.Reset(); c.Values.Reset() }

// Type implements proto.ColInput.
func (*TextMap) Type() proto.ColumnType { return "Map(LowCardinality(String), LowCardinality(String))" }

// Rows implements proto.ColInput.
func (c *TextMap) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *TextMap) EncodeState(b *proto.Buffer) { c.Keys.EncodeState(b); c.Values.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *TextMap) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.Keys.EncodeColumn(b)
	c.Values.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *TextMap) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// ListMap builds a Map(LowCardinality(String), Array(LowCardinality(String))) column.
type ListMap struct {
	ends   proto.ColUInt64
	keys   LowCard
	values LowCardArray
}

// AppendExtra adds a row of what authenticators added to a user.
func (c *ListMap) AppendExtra(extra event.Extra) {
	for i := range extra {
		c.keys.Append(extra[i].Key)
		c.values.Append(extra[i].Values)
	}
	c.end()
}

func (c *ListMap) end() { c.ends = append(c.ends, uint64(c.keys.Rows())) }

// Reset empties the column.
func (c *ListMap) Reset() { c.ends = c.ends[:0]; c.keys.Reset(); c.values.Reset() }

// Type implements proto.ColInput.
func (*ListMap) Type() proto.ColumnType {
	return "Map(LowCardinality(String), Array(LowCardinality(String)))"
}

// Rows implements proto.ColInput.
func (c *ListMap) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *ListMap) EncodeState(b *proto.Buffer) { c.keys.EncodeState(b); c.values.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *ListMap) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.keys.EncodeColumn(b)
	c.values.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *ListMap) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// LowCardLists builds an Array(Array(LowCardinality(String))) column.
type LowCardLists struct {
	ends  proto.ColUInt64
	Lists LowCardArray
}

// End ends the value of a row.
func (c *LowCardLists) End() { c.ends = append(c.ends, uint64(c.Lists.Rows())) }

// Reset empties the column.
func (c *LowCardLists) Reset() { c.ends = c.ends[:0]; c.Lists.Reset() }

// Type implements proto.ColInput.
func (*LowCardLists) Type() proto.ColumnType { return "Array(Array(LowCardinality(String)))" }

// Rows implements proto.ColInput.
func (c *LowCardLists) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *LowCardLists) EncodeState(b *proto.Buffer) { c.Lists.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *LowCardLists) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.Lists.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *LowCardLists) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// Micros is a column of times in microseconds.
type Micros struct{ *proto.ColInt64 }

// Type is part of proto.Column.
func (Micros) Type() proto.ColumnType { return "DateTime64(6, 'UTC')" }

// Dates is a column of days.
type Dates struct{ *proto.ColUInt16 }

// Type is part of proto.Column.
func (Dates) Type() proto.ColumnType { return "Date" }

// Seconds is a column of times in seconds.
type Seconds struct{ *proto.ColUInt32 }

// Type is part of proto.Column.
func (Seconds) Type() proto.ColumnType { return "DateTime('UTC')" }
