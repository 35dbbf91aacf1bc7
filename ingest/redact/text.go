package redact

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// looks maps pairs of bytes at which suspicious looks closer to where: lookBase plus the distance
// from the pair to the byte to pass to suspect, 0 for all other pairs. Every pattern has two pairs
// here that overlap in a byte, so that one of them begins at an even place wherever the pattern
// begins; they are the ones that are rarest in audit events.
var looks = [1 << 16]uint8{
	'e' | 'y'<<8: lookBase + 2, 'y' | 'J'<<8: lookBase + 1,
	'Z' | 'X'<<8: lookBase + 3, 'X' | 'l'<<8: lookBase + 2,
	'P' | 'R'<<8: lookBase, 'R' | 'I'<<8: lookBase - 1,
	'd' | 'E'<<8: lookBase - 2, 'E' | 'x'<<8: lookBase - 3,
	'e' | 'c'<<8: lookBase - 1, 'c' | 'r'<<8: lookBase - 2,
	'S' | '0'<<8: lookBase, '0' | 't'<<8: lookBase - 1,
	'e' | 'a'<<8: lookBase - 1, 'a' | 'r'<<8: lookBase - 2,
	'E' | 'A'<<8: lookBase - 1, 'A' | 'R'<<8: lookBase - 2,
	'i' | 'z'<<8: lookBase + 1, 'z' | 'a'<<8: lookBase,
	'T' | 'o'<<8: lookBase, 'o' | 'k'<<8: lookBase - 1,
	'c' | 'C'<<8: lookBase - 3, 'C' | 'r'<<8: lookBase - 4,
	'\\' | 'u'<<8: lookBase, 'u' | '0'<<8: lookBase - 1,
}

const lookBase = 8

// suspicious reports whether a text, JSON or not, may hold one of the patterns redaction
// looks for. It is one scan, two bytes at a time; it errs on the safe side, and is nearly always
// false.
func suspicious(b []byte) bool {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if looks[uint16(x)]|looks[uint16(x>>16)]|looks[uint16(x>>32)]|looks[uint16(x>>48)] == 0 {
			continue
		}
		for j := i; j < i+8; j += 2 {
			if look := looks[uint16(x)]; look != 0 && suspect(b, j+int(look)-lookBase) {
				return true
			}
			x >>= 16
		}
	}
	for ; i+2 <= len(b); i += 2 {
		if look := looks[uint16(b[i])|uint16(b[i+1])<<8]; look != 0 && suspect(b, i+int(look)-lookBase) {
			return true
		}
	}
	return false
}

// suspect checks the surroundings of a byte, which may be outside of the text.
func suspect(b []byte, i int) bool {
	if i < 0 || i >= len(b) {
		return false
	}
	after := b[i+1:]
	switch b[i] {
	case 'J':
		return i >= 2 && b[i-1] == 'y' && b[i-2] == 'e'
	case 'K':
		return i >= 3 && b[i-1] == 'l' && b[i-2] == 'X' && b[i-3] == 'Z'
	case 'P':
		return begins(after, "RIVATE KEY") || begins(after, "odExecOptions")
	case 'S':
		if begins(after, "ecret") {
			return len(after) > 5 && (after[5] == '"' || after[5] == '\\' || after[5] == 'L')
		}
		return begins(after, "0tLS1CRUdJTi")
	case 'B', 'b':
		return begins(after, "earer") || begins(after, "EARER")
	case 'z':
		if i < 3 || b[i-1] != 'i' || b[i-2] != 'r' || b[i-3] != 'o' || !begins(after, "ation") || len(after) < 6 {
			return false
		}
		c := after[5]
		return c == '"' || c == '\\' || c == ':' || c == '=' || c == ' '
	case 'T':
		return begins(after, "okenRe")
	case 'E':
		return begins(after, "xecCredential")
	case '\\':
		// An ASCII letter, digit or dash written as an escape hides a pattern; what Go's
		// encoder escapes (<, >, &, control bytes) does not.
		if !begins(after, "u00") || len(after) < 5 {
			return false
		}
		c := jsontext.Hex4(after[1:])
		return c == '-' || c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	return false
}

func begins(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// message redacts free text: the patterns, and values assigned to sensitive names, a rule too
// coarse for object bodies.
func (p *pass) message(s string) string {
	switch {
	case suspicious(jsontext.StringBytes(s)):
		return p.scrub(s, &anything)
	case strings.IndexByte(s, '=') >= 0 || strings.IndexByte(s, ':') >= 0:
		return p.scrub(s, &headers)
	}
	return s
}

// text redacts the patterns in a text.
func (p *pass) text(s string) string { return p.scrub(s, &patterns) }

// scrub replaces every secret in a text that one of the given bytes announces.
func (p *pass) scrub(s string, announces *[256]bool) string {
	var out strings.Builder
	done := 0
	for i := 0; i < len(s); {
		if !announces[s[i]] {
			i++
			continue
		}
		start, end := secretAt(s, i)
		if end <= start {
			i = max(i+1, end)
			continue
		}
		if secret := s[start:end]; !isToken(secret) {
			out.WriteString(s[done:start])
			out.WriteString(p.token(jsontext.StringBytes(secret)))
			done = end
		}
		i = end
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// longRun is the length from which a run of token characters is skipped as a whole: checking every position would take quadratic time.
const longRun = 256

// past returns the empty bounds from which to continue after a run without a secret.
func past(i, n int) (start, end int) {
	if n >= longRun {
		return i + n, i + n
	}
	return i, i
}

// The bytes at which secretAt looks closer.
//
//nolint:gochecknoglobals // constant tables
var (
	patterns = [256]bool{'e': true, 'Z': true, '-': true, 'L': true, 'B': true, 'b': true, 'a': true, 'A': true}
	// headers and assignments, all that a text that is not suspicious can hold
	headers  = [256]bool{'a': true, 'A': true, '=': true, ':': true}
	anything = [256]bool{'e': true, 'Z': true, '-': true, 'L': true, 'B': true, 'b': true, 'a': true, 'A': true, '=': true, ':': true}
)

// secretAt returns the bounds of a secret that the byte at i announces, equal bounds for none:
// these are where to continue.
func secretAt(s string, i int) (start, end int) {
	rest := s[i:]
	switch s[i] {
	case 'e':
		if strings.HasPrefix(rest, "eyJ") {
			if n := jwtLen(rest); n > 0 {
				return i, i + n
			}
			return past(i, runLen(rest, isBase64URL))
		}
	case 'Z': // the base64 of a token
		if strings.HasPrefix(rest, "ZXlK") {
			if n := runLen(rest, isBase64); n >= 40 {
				return i, i + n
			}
		}
	case '-':
		if strings.HasPrefix(rest, "-----BEGIN ") && strings.Contains(rest[:min(len(rest), 64)], "PRIVATE KEY") {
			return i, i + pemLen(rest)
		}
	case 'L': // the base64 of a PEM block
		if strings.HasPrefix(rest, "LS0tLS1CRUdJTi") {
			n := runLen(rest, isBase64)
			head := strings.TrimRight(rest[:n], "=")
			head = head[:min(len(head), 64)&^3]
			if text, err := base64.RawStdEncoding.DecodeString(head); err != nil || strings.Contains(string(text), "PRIVATE") {
				return i, i + n
			}
			return past(i, n)
		}
	case 'B', 'b':
		if strings.HasPrefix(rest[1:], "earer") || strings.HasPrefix(rest[1:], "EARER") {
			return bearer(s, i)
		}
	case 'a', 'A':
		if len(rest) > 13 && strings.EqualFold(rest[:13], "authorization") {
			return header(s, i+13)
		}
	case '=', ':':
		return assigned(s, i)
	}
	return i, i
}

// jwtLen returns the length of the token a text begins with, 0 if there is none: at least a
// header and the beginning of a payload.
func jwtLen(s string) int {
	n := runLen(s, isBase64URL)
	if n < 10 || n >= len(s) || s[n] != '.' {
		return 0
	}
	if runLen(s[n+1:], isBase64URL) < 4 {
		return 0
	}
	return runLen(s, func(c byte) bool { return c == '.' || c == '=' || isBase64URL(c) })
}

// pemLen returns the length of the PEM block a text begins with; a block without an end extends
// to the end of the text.
func pemLen(s string) int {
	const last = "PRIVATE KEY-----"
	if i := strings.Index(s, "-----END "); i >= 0 {
		if j := strings.Index(s[i:], last); j >= 0 {
			return i + j + len(last)
		}
	}
	return len(s)
}

// bearer returns the bounds of the credential after the word Bearer. Prose ("invalid bearer
// token") is recognised by length and digits.
func bearer(s string, i int) (start, end int) {
	from := i + len("Bearer")
	start = from
	for start < len(s) {
		switch {
		case s[start] == ' ' || s[start] == '+' || s[start] == ':' || s[start] == '=' || s[start] == '\t':
			start++
			continue
		case strings.HasPrefix(s[start:], "%20"):
			start += 3
			continue
		}
		break
	}
	if start == from {
		return i, i
	}
	end = start + runLen(s[start:], func(c byte) bool { return isBase64URL(c) || strings.IndexByte(".~+/=:", c) >= 0 })
	v := s[start:end]
	if len(v) >= 16 || len(v) >= 8 && strings.ContainsAny(v, "0123456789") {
		return start, end
	}
	return i, i
}

// header returns the bounds of the value of an Authorization header, with i after its name: the
// rest of the line or of the quoted text.
func header(s string, i int) (start, end int) {
	start = i
	if start < len(s) && (s[start] == '"' || s[start] == '\'') {
		start++
	}
	for start < len(s) && s[start] == ' ' {
		start++
	}
	if start >= len(s) || s[start] != ':' && s[start] != '=' {
		return i, i
	}
	start++
	for start < len(s) && strings.IndexByte(" \t\"'", s[start]) >= 0 {
		start++
	}
	end = start + runLen(s[start:], func(c byte) bool { return strings.IndexByte("\"'\r\n&", c) < 0 })
	return start, end
}

// assigned returns the bounds of what is assigned at i to a name of a secret. After a colon prose is likely: only what looks random counts.
func assigned(s string, i int) (start, end int) {
	from := i
	for from > 0 && (isBase64URL(s[from-1]) || s[from-1] == '"' && from == i) {
		from--
	}
	if !sensitiveName(strings.Trim(s[from:i], `"`)) {
		return i, i
	}
	start = i + 1
	for start < len(s) && strings.IndexByte(" \"'", s[start]) >= 0 {
		if s[i] == '=' && s[start] == ' ' {
			return i, i
		}
		start++
	}
	end = start + runLen(s[start:], func(c byte) bool { return strings.IndexByte(" \"'\r\n\t,;&)", c) < 0 })
	v := s[start:end]
	if s[i] == '=' && len(v) >= 4 || len(v) >= longRun || len(v) >= 12 && strings.ContainsAny(v, "0123456789") {
		return start, end
	}
	return i, i
}

// echoes replaces the secrets found earlier in the same event.
func (p *pass) echoes(s string) string {
	for _, secret := range p.found {
		if strings.Contains(s, secret) {
			s = strings.ReplaceAll(s, secret, p.token(jsontext.StringBytes(secret)))
		}
		if quoted := strconv.Quote(secret); len(quoted) > len(secret)+2 {
			quoted = quoted[1 : len(quoted)-1]
			if strings.Contains(s, quoted) {
				s = strings.ReplaceAll(s, quoted, p.token(jsontext.StringBytes(secret)))
			}
		}
	}
	return s
}

// quoters are the words after which error messages of the apiserver quote input: a quoted value,
// or input up to the end.
var quoters = [...]string{"nvalid value: ", "nsupported value: ", "uplicate value: ", "...|", "map[", "parsing ", "converting "}

// secretMessage redacts a message about a secret, which may quote the object.
func (p *pass) secretMessage(s string) string {
	s = p.echoes(s)
	var out strings.Builder
	done := 0
	for i := 0; i < len(s); {
		n := quoterAt(s[i:])
		if n == 0 {
			i++
			continue
		}
		start, end := i+n, len(s)
		if start < end && s[start] == '"' {
			if quoted, err := strconv.QuotedPrefix(s[start:]); err == nil {
				end = start + len(quoted) - 1
				start++
			}
		}
		out.WriteString(s[done:start])
		out.WriteString(p.secret(s[start:end]))
		i, done = end, end
	}
	if done > 0 {
		out.WriteString(s[done:])
		s = out.String()
	}
	return p.message(s)
}

// quoterAt returns the length of the quoter a text begins with, 0 for none.
func quoterAt(s string) int {
	switch s[0] {
	case 'n', 'u', '.', 'm', 'p', 'c':
		for _, q := range quoters {
			if strings.HasPrefix(s, q) {
				return len(q)
			}
		}
	}
	return 0
}

// quotes reports whether the text of a status may hold one of the quoters, or members with data.
func quotes(raw []byte) bool {
	s := unsafe.String(unsafe.SliceData(raw), len(raw))
	for i := range len(s) {
		if s[i] == '\\' && strings.HasPrefix(s[i:], `\u`) || quoterAt(s[i:]) > 0 {
			return true
		}
	}
	return strings.Contains(s, `"data"`) || strings.Contains(s, `"stringData"`)
}

// runLen returns the length of the run of bytes a text begins with.
func runLen(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

func isBase64URL(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 25 && c >= 'A' || c == '-' || c == '_'
}

func isBase64(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 25 && c >= 'A' || c == '+' || c == '/' || c == '='
}
