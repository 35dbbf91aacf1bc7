package event

import (
	"fmt"
)

// maxDepth is how deeply values may nest. encoding/json, which the apiserver writes with,
// allows 10,000 levels in a body; an event and a list add a few of their own. Any less
// and a client could hide a request by nesting its body.
const maxDepth = 10_100

// DecodeError says what is wrong with an event and where. It never quotes the input, which
// may hold secrets.
type DecodeError struct {
	Field  string // path of member names, "" at the top
	Offset int    // byte offset in what was passed to Decode or DecodeList
	Msg    string // what was found, what was wanted
}

// Error returns `field: message at byte N`.
func (e *DecodeError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset)
	}
	return fmt.Sprintf("%s: %s at byte %d", e.Field, e.Msg, e.Offset)
}

// scanner walks JSON text once, front to back. All methods return false after a failure,
// which is kept in err.
type scanner struct {
	buf []byte
	pos int
	err *DecodeError

	spaced bool     // white space was passed inside the value being skipped
	odd    bool     // something was read that the canonical form writes in another way
	stack  []uint64 // kinds of open containers, 64 a word, beyond the word in a register
	text   []byte   // current chunk for unescaped strings; handed out, never rewritten
	chunk  int      // size of a fresh chunk
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// fail records the first failure.
func (s *scanner) fail(pos int, msg string) bool {
	if s.err == nil {
		s.err = &DecodeError{Offset: pos, Msg: msg}
	}
	return false
}

// unexpected records that the byte at pos is not what the grammar wants there.
func (s *scanner) unexpected(pos int, want string) bool {
	if pos >= len(s.buf) {
		return s.fail(len(s.buf), "unexpected end, want "+want)
	}
	var got string
	switch c := s.buf[pos]; {
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
	return s.fail(pos, "unexpected "+got+", want "+want)
}

// space advances over white space.
func (s *scanner) space() {
	b := s.buf
	i := s.pos
	if i < len(b) && b[i] > ' ' {
		return
	}
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	if i != s.pos {
		s.spaced, s.odd = true, true
		s.pos = i
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos >= len(s.buf) {
		return 0
	}
	return s.buf[s.pos]
}

// open consumes the opening byte of a container.
func (s *scanner) open(c byte, want string) bool {
	if s.peek() != c {
		return s.unexpected(s.pos, want)
	}
	s.pos++
	return true
}

// member advances to the next member of an object and returns its name, with the position
// at the value. more is false after the last one, and after a failure.
func (s *scanner) member(first bool) (name string, more bool) {
	c := s.peek()
	if c == '}' {
		s.pos++
		return "", false
	}
	if !first {
		if c != ',' {
			return "", s.unexpected(s.pos, "comma or end of object")
		}
		s.pos++
		c = s.peek()
	}
	if c != '"' {
		return "", s.unexpected(s.pos, "member name")
	}
	name, ok := s.str()
	if !ok {
		return "", false
	}
	if s.peek() != ':' {
		return "", s.unexpected(s.pos, "colon")
	}
	s.pos++
	s.space()
	return name, true
}

// element advances to the next element of an array; false after the last one and after a
// failure.
func (s *scanner) element(first bool) bool {
	c := s.peek()
	if c == ']' {
		s.pos++
		return false
	}
	if first {
		return true
	}
	if c != ',' {
		return s.unexpected(s.pos, "comma or end of array")
	}
	s.pos++
	if s.peek() == ']' {
		return s.unexpected(s.pos, "value")
	}
	return true
}

// null consumes the literal if it is next.
func (s *scanner) null() bool {
	b := s.buf[min(s.pos, len(s.buf)):]
	if len(b) >= 4 && b[0] == 'n' && b[1] == 'u' && b[2] == 'l' && b[3] == 'l' {
		s.pos += 4
		s.odd = true
		return true
	}
	return false
}

// skip consumes one value of any kind and checks its grammar.
func (s *scanner) skip() bool {
	b := s.buf
	i := s.pos
	var (
		word  uint64 // kinds of the innermost open containers, lowest bit the innermost: 1 is object
		depth int
		c     byte
		ok    bool
	)
	s.stack = s.stack[:0]
value:
	if i >= len(b) || b[i] <= ' ' {
		i = s.pass(i)
		if i >= len(b) {
			return s.unexpected(i, "value")
		}
	}
	switch c = b[i]; {
	case c == '"':
		if i, ok = s.skipString(i + 1); !ok {
			return false
		}
	case c == '{' || c == '[':
		if depth == maxDepth {
			return s.fail(i, "nested too deeply")
		}
		if depth&63 == 0 && depth > 0 {
			s.stack = append(s.stack, word)
		}
		depth++
		word <<= 1
		if i++; i >= len(b) || b[i] <= ' ' {
			i = s.pass(i)
		}
		if c == '{' {
			word |= 1
			if i >= len(b) || b[i] != '}' {
				goto key
			}
		} else if i >= len(b) || b[i] != ']' {
			goto value
		}
		i++
		goto closed
	case c == '-' || c-'0' <= 9:
		s.pos = i
		if !s.number() {
			return false
		}
		i = s.pos
	default:
		s.pos = i
		if !s.literal() {
			return false
		}
		i = s.pos
	}
after:
	if depth == 0 {
		s.pos = i
		return true
	}
	if i >= len(b) || b[i] <= ' ' {
		i = s.pass(i)
	}
	c = 0
	if i < len(b) {
		c = b[i]
	}
	if c == ',' {
		i++
		if word&1 == 0 {
			goto value
		}
		if i < len(b) && b[i] <= ' ' {
			i = s.pass(i)
		}
		goto key
	}
	if word&1 == 1 && c != '}' {
		return s.unexpected(i, "comma or end of object")
	}
	if word&1 == 0 && c != ']' {
		return s.unexpected(i, "comma or end of array")
	}
	i++
closed:
	depth--
	word >>= 1
	if depth&63 == 0 && depth > 0 {
		word = s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
	}
	goto after
key:
	if i >= len(b) || b[i] != '"' {
		return s.unexpected(i, "member name")
	}
	if i, ok = s.skipString(i + 1); !ok {
		return false
	}
	if i >= len(b) || b[i] <= ' ' {
		i = s.pass(i)
	}
	if i >= len(b) || b[i] != ':' {
		return s.unexpected(i, "colon")
	}
	i++
	goto value
}

// pass moves to i and over the white space there, and returns the position behind it.
func (s *scanner) pass(i int) int {
	s.pos = i
	s.space()
	return s.pos
}

// literal consumes true, false or null.
func (s *scanner) literal() bool {
	rest := s.buf[min(s.pos, len(s.buf)):]
	for _, word := range [...]string{"true", "false", "null"} {
		if len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.pos += len(word)
			return true
		}
	}
	return s.unexpected(s.pos, "value")
}

// number consumes a number of the JSON grammar.
func (s *scanner) number() bool {
	b := s.buf
	i := s.pos
	digits := func() bool {
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return s.fail(i, "malformed number")
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return s.fail(i, "malformed number")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return s.fail(i, "malformed number")
		}
	}
	s.pos = i
	return true
}

// raw consumes one value and returns its text, nil for null. The result aliases the buffer
// unless the value has insignificant white space, which is taken out: an event is one line
// wherever it is written.
func (s *scanner) raw() ([]byte, bool) {
	s.space()
	start := s.pos
	s.spaced = false
	if !s.skip() {
		return nil, false
	}
	v := s.buf[start:s.pos:s.pos]
	if len(v) == 4 && v[0] == 'n' {
		s.odd = true
		return nil, true
	}
	if s.spaced {
		v = compact(v)
	}
	return v, true
}

// end checks that nothing but white space is left.
func (s *scanner) end() bool {
	s.space()
	if s.pos < len(s.buf) {
		return s.unexpected(s.pos, "end")
	}
	return true
}
