package event

import (
	"strconv"
	"unsafe"
)

// maxValueDepth bounds how deep Value goes.
const maxValueDepth = 200

// Value returns a JSON value as encoding/json unmarshals it into an any, in a third of the
// time. Strings may alias raw, which must not be written to while they are in use. ok is false
// when it is not valid, or so unusual that it is better left to encoding/json.
func Value(raw []byte) (v any, ok bool) {
	s := scanner{buf: raw, chunk: 256}
	v, ok = s.value(0)
	return v, ok && s.end()
}

// value consumes a value.
func (s *scanner) value(depth int) (any, bool) {
	c := s.peek()
	switch {
	case depth == maxValueDepth:
		return nil, false
	case c == '"':
		return s.str()
	case c == '{':
		s.pos++
		out := map[string]any{}
		for first := true; ; first = false {
			name, more := s.member(first)
			if !more {
				return out, s.err == nil
			}
			v, ok := s.value(depth + 1)
			if !ok {
				return nil, false
			}
			out[name] = v
		}
	case c == '[':
		s.pos++
		out := []any{}
		for first := true; s.element(first); first = false {
			v, ok := s.value(depth + 1)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, s.err == nil
	case c == '-' || c-'0' <= 9:
		start := s.pos
		if !s.number() {
			return nil, false
		}
		f, err := strconv.ParseFloat(unsafe.String(&s.buf[start], s.pos-start), 64)
		return f, err == nil
	case c == 't' || c == 'f':
		return c == 't', s.literal()
	}
	return nil, s.null()
}
