package native

import (
	"github.com/ClickHouse/ch-go/proto"
)

// This file has the column builders of an insert that the driver's own do not make cheap: dictionary columns that hash a value once, arrays
// and maps filled in place. They are written as ClickHouse's Native format, revision 0.

// LowCard builds a LowCardinality(String) column. Consecutive equal values, the common case in a batch of events, cost one comparison.
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

// AppendBytes adds a row whose text need not be a string of its own: only what is new to the dictionary is copied.
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

// element is what a list or a map is made of.
type element[T any] interface {
	*T
	proto.ColInput
	proto.Resettable
}

// List builds an Array column.
type List[T any, C element[T]] struct {
	ends  proto.ColUInt64
	Items T
}

// The lists that tables have.
type (
	LowCardArray = texts[LowCard, *LowCard]
	TextArray    = texts[TextColumn, *TextColumn]
	NumberArray  = List[proto.ColUInt64, *proto.ColUInt64]
	CodeArray    = List[proto.ColInt32, *proto.ColInt32]
	LowCardLists = List[LowCardArray, *LowCardArray]
)

// End ends the value of a row, whose items have been appended.
func (c *List[T, C]) End() { c.ends = append(c.ends, uint64(C(&c.Items).Rows())) }

// Reset empties the column.
func (c *List[T, C]) Reset() { c.ends = c.ends[:0]; C(&c.Items).Reset() }

// Type implements proto.ColInput.
func (c *List[T, C]) Type() proto.ColumnType { return "Array(" + C(&c.Items).Type() + ")" }

// Rows implements proto.ColInput.
func (c *List[T, C]) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *List[T, C]) EncodeState(b *proto.Buffer) { encodeState(b, C(&c.Items)) }

// EncodeColumn implements proto.ColInput.
func (c *List[T, C]) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	C(&c.Items).EncodeColumn(b)
}

func (c *List[T, C]) encodePieces(p *Payload) {
	c.ends.EncodeColumn(&p.buf)
	p.encode(C(&c.Items))
}

// WriteColumn implements proto.ColInput.
func (c *List[T, C]) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// texts builds an Array column of texts.
type texts[T any, C interface {
	element[T]
	Append(text string)
}] struct{ List[T, C] }

// Append adds a row.
func (c *texts[T, C]) Append(list []string) {
	for _, s := range list {
		C(&c.Items).Append(s)
	}
	c.End()
}

// Map builds a Map column.
type Map[K, V any, CK element[K], CV element[V]] struct {
	ends   proto.ColUInt64
	Keys   K
	Values V
}

// The maps that tables have.
type (
	TextMap = Map[LowCard, LowCard, *LowCard, *LowCard]
	ListMap = Map[LowCard, LowCardArray, *LowCard, *LowCardArray]
)

// End ends the value of a row.
func (c *Map[K, V, CK, CV]) End() { c.ends = append(c.ends, uint64(CK(&c.Keys).Rows())) }

// Reset empties the column.
func (c *Map[K, V, CK, CV]) Reset() { c.ends = c.ends[:0]; CK(&c.Keys).Reset(); CV(&c.Values).Reset() }

// Type implements proto.ColInput.
func (c *Map[K, V, CK, CV]) Type() proto.ColumnType {
	return "Map(" + CK(&c.Keys).Type() + ", " + CV(&c.Values).Type() + ")"
}

// Rows implements proto.ColInput.
func (c *Map[K, V, CK, CV]) Rows() int { return len(c.ends) }

// EncodeState implements proto.StateEncoder.
func (c *Map[K, V, CK, CV]) EncodeState(b *proto.Buffer) {
	encodeState(b, CK(&c.Keys))
	encodeState(b, CV(&c.Values))
}

// EncodeColumn implements proto.ColInput.
func (c *Map[K, V, CK, CV]) EncodeColumn(b *proto.Buffer) {
	c.ends.EncodeColumn(b)
	CK(&c.Keys).EncodeColumn(b)
	CV(&c.Values).EncodeColumn(b)
}

// WriteColumn implements proto.ColInput.
func (c *Map[K, V, CK, CV]) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }

// encodeState writes what comes before the values of a column that has such.
func encodeState(b *proto.Buffer, column proto.ColInput) {
	if s, ok := column.(proto.StateEncoder); ok {
		s.EncodeState(b)
	}
}

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
