// Package jsontext reads and edits JSON text where encoding/json is too slow, or hides how the text
// is written: a scanner that returns parts of its input, a reader of what apiservers usually write,
// a tree whose values can be replaced in place, pruning to given members, and the writing of
// strings. It accepts what encoding/json accepts, and reads strings as it does.
package jsontext

import "fmt"

// MaxDepth is how deeply values may nest. encoding/json, which the apiserver writes with,
// allows 10,000 levels in a body; an event and a list add a few of their own. With a lower
// limit a client could hide a request by nesting its body.
const MaxDepth = 10_100

// Error is what is wrong with a text and where. It never quotes the input, which may hold
// secrets.
type Error struct {
	Field  string // path of member names, "" at the top
	Offset int    // byte offset in the text
	Msg    string // what was found, what was wanted
}

// Error returns `field: message at byte N`.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset)
	}
	return fmt.Sprintf("%s: %s at byte %d", e.Field, e.Msg, e.Offset)
}

// Scanner walks JSON text once, front to back. Methods return false after a failure, kept in Err. With a Buf alone it is at the beginning.
type Scanner struct {
	Buf []byte
	Pos int    // of the next byte to read
	Err *Error // the first failure

	Spaced bool // white space was skipped since it was last set to false
	Odd    bool // what was read is not canonical: white space, null, an escape that AppendString does not write

	stack []uint64 // kinds of open containers, 64 a word, beyond the word in a register
	text  []byte   // current chunk for unescaped strings; returned to callers, never rewritten
	chunk int      // size of a fresh chunk
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// Fail records the first failure.
func (s *Scanner) Fail(pos int, msg string) bool {
	if s.Err == nil {
		s.Err = &Error{Offset: pos, Msg: msg}
	}
	return false
}

// Unexpected records that the byte at pos is not what the grammar requires there.
func (s *Scanner) Unexpected(pos int, want string) bool {
	if pos >= len(s.Buf) {
		return s.Fail(len(s.Buf), "unexpected end, want "+want)
	}
	var got string
	switch c := s.Buf[pos]; {
	case c == '"':
		got = "string"
	case c == '{':
		got = "object"
	case c == '[':
		got = "array"
	case c == '-' || c-'0' <= 9:
		got = "number"
	case c == 't' || c == 'f':
		got = "boolean"
	case c == 'n':
		got = "null"
	default:
		got = fmt.Sprintf("character %q", rune(c))
	}
	return s.Fail(pos, "unexpected "+got+", want "+want)
}

func (s *Scanner) space() {
	b := s.Buf
	i := s.Pos
	if i < len(b) && b[i] > ' ' {
		return
	}
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	if i != s.Pos {
		s.Spaced, s.Odd = true, true
		s.Pos = i
	}
}

// Peek returns the next byte that is not white space, 0 at the end.
func (s *Scanner) Peek() byte {
	s.space()
	if s.Pos >= len(s.Buf) {
		return 0
	}
	return s.Buf[s.Pos]
}

// Open consumes the opening byte of a container.
func (s *Scanner) Open(c byte, want string) bool {
	if s.Peek() != c {
		return s.Unexpected(s.Pos, want)
	}
	s.Pos++
	return true
}

// Member advances to an object's next member, the position at its value, and returns its name. more is false after the last, or a failure.
func (s *Scanner) Member(first bool) (name string, more bool) {
	c := s.Peek()
	if c == '}' {
		s.Pos++
		return "", false
	}
	if !first {
		if c != ',' {
			return "", s.Unexpected(s.Pos, "comma or end of object")
		}
		s.Pos++
		c = s.Peek()
	}
	if c != '"' {
		return "", s.Unexpected(s.Pos, "member name")
	}
	name, ok := s.Str()
	if !ok {
		return "", false
	}
	if s.Peek() != ':' {
		return "", s.Unexpected(s.Pos, "colon")
	}
	s.Pos++
	s.space()
	return name, true
}

// Element advances to the next element of an array; it returns false after the last one and
// after a failure.
func (s *Scanner) Element(first bool) bool {
	c := s.Peek()
	if c == ']' {
		s.Pos++
		return false
	}
	if first {
		return true
	}
	if c != ',' {
		return s.Unexpected(s.Pos, "comma or end of array")
	}
	s.Pos++
	if s.Peek() == ']' {
		return s.Unexpected(s.Pos, "value")
	}
	return true
}

// Null consumes the literal if it is next.
func (s *Scanner) Null() bool {
	b := s.Buf[min(s.Pos, len(s.Buf)):]
	if len(b) >= 4 && b[0] == 'n' && b[1] == 'u' && b[2] == 'l' && b[3] == 'l' {
		s.Pos += 4
		s.Odd = true
		return true
	}
	return false
}

// Raw consumes one value and returns its text, nil for null: one line, which aliases the buffer unless white space was removed.
func (s *Scanner) Raw() ([]byte, bool) {
	s.space()
	start := s.Pos
	s.Spaced = false
	if !s.Skip() {
		return nil, false
	}
	v := s.Buf[start:s.Pos:s.Pos]
	if len(v) == 4 && v[0] == 'n' {
		s.Odd = true
		return nil, true
	}
	if s.Spaced {
		v = Compact(v)
	}
	return v, true
}

// End checks that nothing but white space is left.
func (s *Scanner) End() bool {
	s.space()
	if s.Pos < len(s.Buf) {
		return s.Unexpected(s.Pos, "end")
	}
	return true
}

// ValuePos returns where the next value begins.
func (s *Scanner) ValuePos() int {
	s.space()
	return s.Pos
}

// NewScanner returns a scanner at the beginning of a text; memory for strings that have to be
// decoded is taken chunk bytes at a time.
func NewScanner(buf []byte, chunk int) Scanner { return Scanner{Buf: buf, chunk: chunk} }

// Reset puts the scanner at the beginning of another text.
func (s *Scanner) Reset(buf []byte, chunk int) {
	s.Buf, s.Pos, s.Err, s.chunk = buf, 0, nil, chunk
}

// TakeOver gives the scanner the memory of another whose strings are no longer used.
func (s *Scanner) TakeOver(last *Scanner) { s.stack, s.text = last.stack[:0], last.text[:0] }
