package storage

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/ingest/event"
)

// This file has the column builders of an insert that the driver's own do not make cheap:
// dictionary columns that hash a value once, arrays and maps filled in place. They are
// written as ClickHouse's Native format, revision 0.

// lowCard builds a LowCardinality(String) column. Consecutive equal values, the common
// case in a batch of events, cost one comparison.
type lowCard struct {
	dict map[string]uint32
	vals textColumn // the dictionary, in order of first use
	keys []uint32
	last string
	lkey uint32
}

// Append adds a row.
func (c *lowCard) Append(s string) {
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
func (c *lowCard) AppendBytes(b []byte) {
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
func (c *lowCard) Reset() {
	clear(c.dict)
	c.vals.Reset()
	c.keys = c.keys[:0]
	c.last, c.lkey = "", 0
}

// Type implements proto.ColInput.
func (*lowCard) Type() proto.ColumnType { return "LowCardinality(String)" }

// Rows implements proto.ColInput.
func (c *lowCard) Rows() int { return len(c.keys) }

// EncodeState implements proto.StateEncoder: the version of the keys' serialization.
func (*lowCard) EncodeState(b *proto.Buffer) { b.PutInt64(1) }

// Flags of a LowCardinality block: it carries its own dictionary, replacing any before.
const (
	lowCardAdditionalKeys   = 1 << 9
	lowCardUpdateDictionary = 1 << 10
)

// EncodeColumn implements proto.ColInput.
func (c *lowCard) EncodeColumn(b *proto.Buffer) {
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
func (c *lowCard) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// lowCardArray builds an Array(LowCardinality(String)) column.
type lowCardArray struct {
	ends  proto.ColUInt64
	items lowCard
}

// Append adds a row.
func (c *lowCardArray) Append(list []string) {
	for _, s := range list {
		c.items.Append(s)
	}
	c.end()
}

// end closes a row whose items have been appended.
func (c *lowCardArray) end() { c.ends = append(c.ends, uint64(c.items.Rows())) }

// Reset empties the column.
func (c *lowCardArray) Reset() { c.ends = c.ends[:0]; c.items.Reset() }

// Type implements proto.ColInput.
func (*lowCardArray) Type() proto.ColumnType { return "Array(LowCardinality(String))" }

// Rows implements proto.ColInput.
func (c *lowCardArray) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *lowCardArray) EncodeState(b *proto.Buffer) { c.items.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *lowCardArray) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.items.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *lowCardArray) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// textArray builds an Array(String) column.
type textArray struct {
	ends  proto.ColUInt64
	items textColumn
}

func (c *textArray) end() { c.ends = append(c.ends, uint64(c.items.Rows())) }

// Append adds a row.
func (c *textArray) Append(list []string) {
	for _, s := range list {
		c.items.Append(s)
	}
	c.end()
}

// Reset empties the column.
func (c *textArray) Reset() { c.ends = c.ends[:0]; c.items.Reset() }

// Type implements proto.ColInput.
func (*textArray) Type() proto.ColumnType { return "Array(String)" }

// Rows implements proto.ColInput.
func (c *textArray) Rows() int { return len(c.ends) }

// EncodeColumn implements proto.ColInput.
func (c *textArray) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.items.EncodeColumn(b)
}

func (c *textArray) encodePieces(p *payload) {
	c.ends.EncodeColumn(&p.buf)
	c.items.encodePieces(p)
}

// WriteColumn implements proto.ColInput.
func (c *textArray) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// arrayOf builds an Array column of numbers.
type arrayOf[T proto.ColUInt64 | proto.ColInt32, C interface {
	*T
	proto.ColInput
	proto.Resettable
}] struct {
	ends  proto.ColUInt64
	items T
}

// numberArray builds an Array(UInt64) column, codeArray an Array(Int32) column.
type (
	numberArray = arrayOf[proto.ColUInt64, *proto.ColUInt64]
	codeArray   = arrayOf[proto.ColInt32, *proto.ColInt32]
)

func (c *arrayOf[T, C]) end() { c.ends = append(c.ends, uint64(C(&c.items).Rows())) }

// Reset empties the column.
func (c *arrayOf[T, C]) Reset() { c.ends = c.ends[:0]; C(&c.items).Reset() }

// Type implements proto.ColInput.
func (c *arrayOf[T, C]) Type() proto.ColumnType { return "Array(" + C(&c.items).Type() + ")" }

// Rows implements proto.ColInput.
func (c *arrayOf[T, C]) Rows() int { return len(c.ends) }

// EncodeColumn implements proto.ColInput.
func (c *arrayOf[T, C]) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	C(&c.items).EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *arrayOf[T, C]) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// textMap builds a Map(LowCardinality(String), LowCardinality(String)) column.
type textMap struct {
	ends   proto.ColUInt64
	keys   lowCard
	values lowCard
}

func (c *textMap) end() { c.ends = append(c.ends, uint64(c.keys.Rows())) }

// Reset empties the column.
func (c *textMap) Reset() { c.ends = c.ends[:0]; c.keys.Reset(); c.values.Reset() }

// Type implements proto.ColInput.
func (*textMap) Type() proto.ColumnType { return "Map(LowCardinality(String), LowCardinality(String))" }

// Rows implements proto.ColInput.
func (c *textMap) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *textMap) EncodeState(b *proto.Buffer) { c.keys.EncodeState(b); c.values.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *textMap) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.keys.EncodeColumn(b)
	c.values.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *textMap) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// listMap builds a Map(LowCardinality(String), Array(LowCardinality(String))) column.
type listMap struct {
	ends   proto.ColUInt64
	keys   lowCard
	values lowCardArray
}

// appendExtra adds a row of what authenticators added to a user.
func (c *listMap) appendExtra(extra event.Extra) {
	for i := range extra {
		c.keys.Append(extra[i].Key)
		c.values.Append(extra[i].Values)
	}
	c.end()
}

func (c *listMap) end() { c.ends = append(c.ends, uint64(c.keys.Rows())) }

// Reset empties the column.
func (c *listMap) Reset() { c.ends = c.ends[:0]; c.keys.Reset(); c.values.Reset() }

// Type implements proto.ColInput.
func (*listMap) Type() proto.ColumnType {
	return "Map(LowCardinality(String), Array(LowCardinality(String)))"
}

// Rows implements proto.ColInput.
func (c *listMap) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *listMap) EncodeState(b *proto.Buffer) { c.keys.EncodeState(b); c.values.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *listMap) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.keys.EncodeColumn(b)
	c.values.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *listMap) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// lowCardLists builds an Array(Array(LowCardinality(String))) column.
type lowCardLists struct {
	ends  proto.ColUInt64
	lists lowCardArray
}

func (c *lowCardLists) end() { c.ends = append(c.ends, uint64(c.lists.Rows())) }

// Reset empties the column.
func (c *lowCardLists) Reset() { c.ends = c.ends[:0]; c.lists.Reset() }

// Type implements proto.ColInput.
func (*lowCardLists) Type() proto.ColumnType { return "Array(Array(LowCardinality(String)))" }

// Rows implements proto.ColInput.
func (c *lowCardLists) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *lowCardLists) EncodeState(b *proto.Buffer) { c.lists.EncodeState(b) }

// EncodeColumn implements proto.ColInput.
func (c *lowCardLists) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	c.lists.EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *lowCardLists) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }
