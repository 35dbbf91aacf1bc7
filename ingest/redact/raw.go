package redact

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/jsontext"
)

// RedactBytes redacts bytes that could not be decoded: truncated, malformed, of another kind. It reads them as JSON as far as possible, and
// keeps only what is known to be public by its place in an event or an event list; everything else, bare words and member names included,
// becomes an HMAC. So a body that escaped from its place in a malformed text is not kept. The result is for people; it need not be JSON.
func (r *Redactor) RedactBytes(raw []byte) []byte {
	p := r.begin()
	defer r.end(p)
	w := rawRedactor{pass: p, in: raw}
	for w.pos < len(w.in) {
		w.value(scopeList, 0)
		// What closes nothing, or follows the end, is read as if it were in a list.
		if w.pos < len(w.in) && strings.IndexByte("}],:", w.in[w.pos]) >= 0 {
			w.keep()
		}
	}
	return w.out
}

// scope is what may be kept of an object's members.
type scope uint8

const (
	scopeNone scope = iota // nothing: the value is replaced whole
	scopeList              // an event list or an event
	scopeUser
	scopeRef
	scopeStatus
	scopeAnnotations
	scopePlain   // a text that is public except for recognisable secrets
	scopeURI     // a request URI
	scopeWord    // a word of an event's vocabulary: letters, digits, some punctuation
	scopeMessage // text that may assign values to sensitive names
)

// shown is what may be kept of the members of an object, by their names.
var shown = [...]struct {
	in, as scope
	names  []string
}{
	{scopeList, scopeWord, []string{"kind", "apiVersion", "level", "stage", "verb", "auditID", "requestReceivedTimestamp",
		"stageTimestamp", "sourceIPs"}},
	{scopeList, scopeURI, []string{"requestURI"}},
	{scopeList, scopeMessage, []string{"userAgent"}},
	{scopeList, scopeUser, []string{"user", "impersonatedUser"}},
	{scopeList, scopeRef, []string{"objectRef"}},
	{scopeList, scopeStatus, []string{"responseStatus"}},
	{scopeList, scopeAnnotations, []string{"annotations"}},
	{scopeList, scopeList, []string{"items"}},
	{scopeUser, scopePlain, []string{"username", "uid", "groups"}},
	{scopeRef, scopePlain, []string{"resource", "namespace", "name", "uid", "apiGroup", "apiVersion", "resourceVersion", "subresource"}},
	{scopeStatus, scopeWord, []string{"status", "reason", "code"}},
	{scopeAnnotations, scopePlain, []string{event.AnnotationDecision, event.AnnotationReason}},
}

// showing returns what may be kept of a member, by its name and place.
func showing(in scope, name string) scope {
	for _, s := range shown {
		if s.in == in && slices.Contains(s.names, name) {
			return s.as
		}
	}
	return scopeNone
}

// rawRedactor reads JSON-like text and writes what may be kept.
type rawRedactor struct {
	*pass
	in  []byte
	pos int
	out []byte
}

// keep copies one byte of structure.
func (w *rawRedactor) keep() {
	w.out = append(w.out, w.in[w.pos])
	w.pos++
}

func (w *rawRedactor) space() {
	for w.pos < len(w.in) && strings.IndexByte(" \t\r\n", w.in[w.pos]) >= 0 {
		w.pos++
	}
}

func (w *rawRedactor) value(in scope, depth int) {
	w.space()
	if w.pos >= len(w.in) {
		return
	}
	if in == scopeNone || depth > 16 {
		w.hide()
		return
	}
	switch w.in[w.pos] {
	case '{':
		if in >= scopePlain {
			w.hide()
		} else {
			w.object(in, depth)
		}
	case '[':
		w.keep()
		for w.space(); w.pos < len(w.in); w.space() {
			switch w.in[w.pos] {
			case '}', ':':
				return
			case ']':
				w.keep()
				return
			case ',':
				w.keep()
			default:
				w.value(in, depth+1)
			}
		}
	case '"':
		s, whole := w.text()
		w.out = jsontext.AppendString(w.out, w.show(in, s, whole))
	case '}', ']', ',', ':':
		return
	default:
		w.bare()
	}
}

func (w *rawRedactor) object(in scope, depth int) {
	w.keep()
	for w.space(); w.pos < len(w.in); w.space() {
		switch w.in[w.pos] {
		case '}':
			w.keep()
			return
		case ',', ':', ']':
			w.keep()
			continue
		case '"':
		default:
			// A member name is missing: the structure is lost.
			w.value(scopeNone, depth)
			continue
		}
		name, whole := w.text()
		w.space()
		shows := showing(in, name)
		if !whole || w.pos >= len(w.in) || w.in[w.pos] != ':' {
			shows = scopeNone
			w.out = jsontext.AppendString(w.out, w.hidden(name))
			continue
		}
		if shows == scopeNone && !vocabulary(name) {
			name = w.hidden(name)
		}
		w.out = append(jsontext.AppendString(w.out, name), ':')
		w.pos++
		w.value(shows, depth+1)
	}
}

// vocabulary reports whether a member name may be kept although its value may not.
func vocabulary(name string) bool {
	switch name {
	case "requestObject", "responseObject", "metadata", "extra", "message", "details", "authenticationMetadata", "impersonationConstraint":
		return true
	}
	return false
}

// show returns what may be kept of a string.
func (w *rawRedactor) show(in scope, s string, whole bool) string {
	switch {
	case in == scopeURI:
		if !whole {
			// Truncated inside: the last parameter may be half a secret under half a name.
			path, _, has := strings.Cut(s, "?")
			switch {
			case !strings.HasPrefix(path, "/"):
				return w.hidden(s)
			case !has:
				return w.uri(path, false)
			}
			return w.uri(path, false) + "?" + w.hidden(s[len(path):])
		}
		return w.uri(s, targetOfPath(strings.SplitN(s, "?", 2)[0]) == targetExec)
	case !whole:
		return w.hidden(s)
	case in == scopePlain:
		return w.pass.text(s)
	case in == scopeMessage:
		return w.message(s)
	case in == scopeWord && len(s) <= 64 && runLen(s, wordByte) == len(s):
		return w.pass.text(s)
	}
	return w.hidden(s)
}

// wordByte returns what audit IDs, timestamps, addresses and names of kinds consist of.
func wordByte(c byte) bool { return isBase64URL(c) || c == '.' || c == ':' || c == '/' || c == '%' }

func (w *rawRedactor) hidden(s string) string {
	if s == "" || isToken(s) {
		return s
	}
	return w.token(jsontext.StringBytes(s))
}

// text reads a string, decoded as far as its escapes are valid; whole is false if it has no end.
func (w *rawRedactor) text() (s string, whole bool) {
	start := w.pos + 1
	end := start
	for end < len(w.in) && w.in[end] != '"' {
		if w.in[end] == '\\' {
			end++
		}
		end++
	}
	whole = end < len(w.in)
	end = min(end, len(w.in))
	w.pos = min(end+1, len(w.in))
	check := jsontext.Scanner{Buf: w.in[start-1 : w.pos]}
	if v, ok := check.Str(); ok {
		return v, whole
	}
	return string(w.in[start:end]), false
}

// bare reads what is neither string nor structure. Numbers of the size of a status code and
// literals are kept; other words may be anything.
func (w *rawRedactor) bare() {
	start := w.pos
	for w.pos < len(w.in) && strings.IndexByte("{}[],:\" \t\r\n", w.in[w.pos]) < 0 {
		w.pos++
	}
	word := string(w.in[start:w.pos])
	switch {
	case word == "true", word == "false", word == "null", len(word) <= 3 &&
		runLen(word, func(c byte) bool { return c-'0' <= 9 }) == len(word):
		w.out = append(w.out, word...)
	default:
		w.out = jsontext.AppendString(w.out, w.hidden(word))
	}
}

// hide replaces one value with everything inside it.
func (w *rawRedactor) hide() {
	start := w.pos
	depth := 0
	for w.pos < len(w.in) {
		switch c := w.in[w.pos]; c {
		case '"':
			w.text()
		case '{', '[':
			depth++
			w.pos++
		case '}', ']':
			if depth == 0 {
				break // closes the enclosing container
			}
			depth--
			w.pos++
		case ' ', '\t', '\r', '\n', ':':
			w.pos++
			continue
		case ',':
			if depth == 0 {
				break
			}
			w.pos++
			continue
		default:
			for w.pos < len(w.in) && strings.IndexByte("{}[],:\" \t\r\n", w.in[w.pos]) < 0 {
				w.pos++
			}
		}
		if depth == 0 {
			break
		}
	}
	if w.pos == start {
		return
	}
	word := string(w.in[start:w.pos])
	switch strings.TrimSpace(word) {
	case "":
	case "null", "true", "false":
		w.out = append(w.out, strings.TrimSpace(word)...)
	default:
		w.out = jsontext.AppendString(w.out, w.hidden(strings.TrimSuffix(strings.TrimPrefix(word, `"`), `"`)))
	}
}
