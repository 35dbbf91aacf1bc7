package jsontext

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// special marks, in the top bit of each byte, the quotes, backslashes and control bytes of a word. Only the lowest mark is exact, and only
// that one is used. A quote is the byte right above the control bytes once bit 1 is flipped; bytes beyond ASCII are masked out at the end.
func special(x uint64) uint64 {
	return (((x ^ 0x02*ones) - 0x21*ones) | ((x ^ '\\'*ones) - ones)) & (highs &^ x)
}

// Str consumes a string; the position is at its quote. The result aliases the buffer
// unless the string has escapes or invalid UTF-8.
func (s *Scanner) Str() (string, bool) {
	b := s.Buf
	start := s.Pos + 1
	i := start
	var high uint64
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		m := special(x)
		if m == 0 {
			high |= x
			i += 8
			continue
		}
		n := bits.TrailingZeros64(m) &^ 7
		high |= x & (1<<n - 1)
		i += n >> 3
		break
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c == '"' {
			s.Pos = i + 1
			if high&highs != 0 && !utf8.Valid(b[start:i]) {
				return s.unescape(start, i), true
			}
			if i == start {
				return "", true
			}
			return unsafe.String(&b[start], i-start), true
		}
		if c == '\\' || c < ' ' {
			end, ok := s.skipString(i)
			if !ok {
				return "", false
			}
			s.Pos = end
			return s.unescape(start, end-1), true
		}
		high |= uint64(c)
	}
	return "", s.Fail(len(b), "unexpected end, want end of string")
}

// skipString checks a string from the byte after its quote and returns the position after
// its closing quote.
func (s *Scanner) skipString(i int) (int, bool) {
	b := s.Buf
	for {
		for i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
			if b[i] == '"' {
				return i + 1, true
			}
			break
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
			i++
		}
		if i >= len(b) {
			return i, s.Fail(len(b), "unexpected end, want end of string")
		}
		switch b[i] {
		case '"':
			return i + 1, true
		case '\\':
			if i+1 >= len(b) {
				return i, s.Fail(len(b), "unexpected end, want end of string")
			}
			switch b[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				if i+6 > len(b) || Hex4(b[i+2:]) < 0 {
					return i, s.Fail(i, "malformed \\u escape")
				}
				i += 6
			default:
				return i, s.Fail(i, "malformed escape")
			}
		default:
			return i, s.Fail(i, "control character in string")
		}
	}
}

// Hex4 decodes four hexadecimal digits; it returns -1 if they are not.
func Hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c-'a' <= 5:
			c -= 'a' - 10
		case c-'A' <= 5:
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape returns the text of a checked string body as encoding/json would: lone
// surrogates and invalid UTF-8 become U+FFFD.
func (s *Scanner) unescape(start, end int) string {
	src := s.Buf[start:end]
	need := len(src)
	valid := utf8.Valid(src)
	if !valid {
		need *= 3 // one bad byte becomes three
	}
	need += 8 // it is copied by words
	if cap(s.text)-len(s.text) < need {
		s.text = make([]byte, 0, max(need, s.chunk))
	}
	from := len(s.text)
	text, plain := appendUnescaped(s.text, src, valid)
	s.text = text
	s.Odd = s.Odd || !plain
	out := s.text[from:]
	if len(out) == 0 {
		return ""
	}
	return unsafe.String(&out[0], len(out))
}

// AppendString appends a quoted JSON string.
func AppendString(dst []byte, v string) []byte {
	dst = append(dst, '"')
	return append(appendEscaped(dst, v), '"')
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends a string's text with what JSON wants escaped escaped, whole runs
// at a time.
func appendEscaped(dst []byte, v string) []byte {
	b := StringBytes(v)
	if !utf8.Valid(b) {
		b = []byte(strings.ToValidUTF8(v, "\uFFFD"))
	}
	from := 0
	for i := 0; i < len(b); {
		if i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		c := b[i]
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, b[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(dst, b[from:]...)
}

// DropComma removes the comma that every member is written with before the first member.
func DropComma(dst []byte, from int) []byte {
	if len(dst) > from && dst[from] == ',' {
		return append(dst[:from], dst[from+1:]...)
	}
	return dst
}
