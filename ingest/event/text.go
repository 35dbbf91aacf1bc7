package event

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// stringBytes returns a string's bytes without a copy; they must not be written to.
func stringBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// appendUnescaped appends the text of a grammatical JSON string body; valid says that it is
// valid UTF-8, of which whole runs can be copied.
func appendUnescaped(dst, src []byte, valid bool) []byte {
	for i := 0; i < len(src); {
		if valid {
			n := bytes.IndexByte(src[i:], '\\')
			if n < 0 {
				return append(dst, src[i:]...)
			}
			dst = append(dst, src[i:i+n]...)
			i += n
		}
		c := src[i]
		if c != '\\' {
			r, n := utf8.DecodeRune(src[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i += 2
		switch c = src[i-1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(src[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+6 <= len(src) && src[i] == '\\' && src[i+1] == 'u' {
					low = hex4(src[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// compact returns a copy of a grammatical JSON value without insignificant white space.
func compact(v []byte) []byte {
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
