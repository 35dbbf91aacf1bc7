package native

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/ClickHouse/ch-go/proto"
)

// Audit IDs are UUIDs unless a client chose otherwise. A UUID is kept as its 16 bytes, which is all there is to it; every other text as it
// is, the UUID then being zero. The column audit_id gives back what came in.

// UUIDs builds a UUID column.
type UUIDs struct {
	rows int
	data []byte
}

// Append adds a row. It returns the text to store beside it, empty if s is a canonical UUID, in lower case and not zero.
func (c *UUIDs) Append(s string) (rest string) {
	c.rows++
	var b [16]byte
	if !ParseUUID(&b, s) {
		b, rest = [16]byte{}, s
	}
	// The engine keeps the two halves as little-endian numbers.
	c.data = binary.LittleEndian.AppendUint64(c.data, binary.BigEndian.Uint64(b[:8]))
	c.data = binary.LittleEndian.AppendUint64(c.data, binary.BigEndian.Uint64(b[8:]))
	return rest
}

// ParseUUID parses a UUID as the engine prints it; it returns false for the zero UUID, which stands for text.
func ParseUUID(to *[16]byte, s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	var digits [32]byte
	n := 0
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
			digits[n] = c
			n++
		default:
			return false
		}
	}
	if _, err := hex.Decode(to[:], digits[:]); err != nil {
		return false
	}
	return *to != [16]byte{}
}

// Reset empties the column.
func (c *UUIDs) Reset() { c.rows, c.data = 0, c.data[:0] }

// Type implements proto.ColInput.
func (*UUIDs) Type() proto.ColumnType { return proto.ColumnTypeUUID }

// Rows implements proto.ColInput.
func (c *UUIDs) Rows() int { return c.rows }

// EncodeColumn implements proto.ColInput.
func (c *UUIDs) EncodeColumn(b *proto.Buffer) { b.Buf = append(b.Buf, c.data...) }

// WriteColumn implements proto.ColInput.
func (c *UUIDs) WriteColumn(w *proto.Writer) { w.ChainBuffer(c.EncodeColumn) }
