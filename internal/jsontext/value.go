package jsontext

import (
	"strconv"
	"unsafe"
)

// maxValueDepth bounds how deep Value goes.
const maxValueDepth = 200

// Value returns a JSON value as encoding/json unmarshals it into an any, in a third of the
// time. Strings may alias raw, which must not be written to while they are in use. ok is false
// if raw is not valid, or so unusual that it is better left to encoding/json.
func Value(raw []byte) (v any, ok bool) {
	s := Scanner{Buf: raw, chunk: 256}
	v, ok = s.value(0)
	return v, ok && s.End()
}

func (s *Scanner) value(depth int) (any, bool) {
	c := s.Peek()
	switch {
	case depth == maxValueDepth:
		return nil, false
	case c == '"':
		return s.Str()
	case c == '{':
		s.Pos++
		out := map[string]any{}
		for first := true; ; first = false {
			name, more := s.Member(first)
			if !more {
				return out, s.Err == nil
			}
			v, ok := s.value(depth + 1)
			if !ok {
				return nil, false
			}
			out[name] = v
		}
	case c == '[':
		s.Pos++
		out := []any{}
		for first := true; s.Element(first); first = false {
			v, ok := s.value(depth + 1)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, s.Err == nil
	case c == '-' || c-'0' <= 9:
		start := s.Pos
		if !s.Number() {
			return nil, false
		}
		f, err := strconv.ParseFloat(unsafe.String(&s.Buf[start], s.Pos-start), 64)
		return f, err == nil
	case c == 't' || c == 'f':
		return c == 't', s.literal()
	}
	return nil, s.Null()
}

// Members calls visit for the members of a JSON object in their order, each with its value as written (without white space inside, null as
// nil), until visit returns false. It reports whether the text is an object and valid as far as it was visited. It suits callers that need
// little.
func Members(object []byte, visit func(name string, value []byte) bool) bool {
	s := Scanner{Buf: object}
	if !s.Open('{', "object") {
		return false
	}
	for first := true; ; first = false {
		name, more := s.Member(first)
		if !more {
			return s.Err == nil && s.End()
		}
		value, ok := s.Raw()
		if !ok {
			return false
		}
		if !visit(name, value) {
			return true
		}
	}
}
