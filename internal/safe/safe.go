// Package safe makes strings from audit events safe to show. Names, URIs and user agents
// are chosen by clients and are hostile: control bytes drive terminals, bidirectional
// overrides make text read as something else, newlines forge lines of a report.
package safe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with everything that is not plainly printable as a Go escape (\n, \x1b,
// \u202e). Printable text of any script is unchanged.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\':
			b.WriteString(`\\`) // so that text cannot look like an escape
		case printable(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// JSON returns JSON text with every character that is not plainly printable escaped as
// JSON writes it (\u009b, \u202e). Its meaning is unchanged. Encoders escape only the control
// characters below a space, but a terminal obeys those above DEL, too. Bytes that are not
// UTF-8 become the replacement character.
func JSON(text []byte) []byte {
	return escape(text, func(out []byte, r rune) []byte {
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	})
}

// YAML does for YAML text what [JSON] does. Strings that are not [Printable] must be in double
// quotes: no other style of YAML has escapes.
func YAML(text []byte) []byte {
	return escape(text, func(out []byte, r rune) []byte { return fmt.Appendf(out, `\U%08x`, r) })
}

// Printable reports whether all of s is plainly printable, on one line.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !printable(r) })
}

// escape returns text with the unprintable characters from DEL on escaped, those of more than 16 bits as astral appends them.
func escape(text []byte, astral func(out []byte, r rune) []byte) []byte {
	i := 0
	for i < len(text) && text[i] < 0x7f {
		i++
	}
	if i == len(text) {
		return text
	}
	out := append(make([]byte, 0, len(text)+16), text[:i]...)
	for i < len(text) {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r < 0x7f || printable(r):
			out = utf8.AppendRune(out, r)
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = astral(out, r)
		}
		i += n
	}
	return out
}

func printable(r rune) bool {
	return r == ' ' || unicode.IsPrint(r) && !unicode.Is(unicode.Cf, r)
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}
