package jsontext

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// StringBytes returns a string's bytes without a copy; they must not be written to.
func StringBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// appendUnescaped appends the text of a grammatical JSON string body to dst, which has room for it and one word more; valid means that it
// is valid UTF-8, which can be copied by words. plain reports whether the canonical form has the same escapes for the same bytes.
func appendUnescaped(dst, src []byte, valid bool) (out []byte, plain bool) {
	plain = valid
	for i := 0; i < len(src); {
		if n := len(dst); valid && i+8 <= len(src) {
			x := binary.LittleEndian.Uint64(src[i:])
			binary.LittleEndian.PutUint64(dst[n:n+8], x)
			escapes := x ^ '\\'*ones
			escapes = (escapes - ones) & (highs &^ escapes)
			if escapes == 0 {
				dst = dst[:n+8]
				i += 8
				continue
			}
			k := bits.TrailingZeros64(escapes) >> 3
			dst = dst[:n+k]
			i += k
		}
		c := src[i]
		if c != '\\' && (valid || c < utf8.RuneSelf) {
			dst = append(dst, c)
			i++
			continue
		}
		if c != '\\' {
			r, n := utf8.DecodeRune(src[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i += 2
		switch c = src[i-1]; c {
		case '"', '\\':
			dst = append(dst, c)
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default:
			plain = false
			dst, i = appendOddEscape(dst, src, i)
		}
	}
	return dst, plain
}

// appendOddEscape appends what an escape that is not canonical stands for, and returns where it ends; i is after its second byte.
func appendOddEscape(dst, src []byte, i int) ([]byte, int) {
	switch c := src[i-1]; c {
	case 'b':
		return append(dst, '\b'), i
	case 'f':
		return append(dst, '\f'), i
	case 'u':
		r := Hex4(src[i:])
		i += 4
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+6 <= len(src) && src[i] == '\\' && src[i+1] == 'u' {
				low = Hex4(src[i+2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		return utf8.AppendRune(dst, r), i
	default: // a slash
		return append(dst, c), i
	}
}

// Compact returns a copy of a grammatical JSON value without insignificant white space.
func Compact(v []byte) []byte {
	out := make([]byte, 0, len(v))
	quoted := false
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case quoted:
			if c == '\\' {
				out = append(out, c)
				i++
				c = v[i]
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c <= ' ':
			continue
		}
		out = append(out, c)
	}
	return out
}
