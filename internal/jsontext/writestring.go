package jsontext

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

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
