package jsontext

import "strings"

// Shape names the members of a JSON object to keep, each as far as its own shape goes, whole if that is nil; an array's is its elements'.
type Shape struct {
	members map[string]*Shape
	longest int
}

// ShapeOf returns the shape of these members.
func ShapeOf(members map[string]*Shape) *Shape {
	s := &Shape{members: members}
	for name := range members {
		s.longest = max(s.longest, len(name))
	}
	return s
}

// find reports whether a member is kept, and how far. Names are compared as encoding/json does, ignoring case; what is not ASCII is kept.
func (s *Shape) find(name []byte) (sub *Shape, read bool) {
	if sub, read = s.members[string(name)]; read {
		return sub, true
	}
	for _, c := range name {
		if c >= 0x80 || c == '\\' {
			return nil, true
		}
	}
	if len(name) > s.longest {
		return nil, false
	}
	for known := range s.members {
		if len(known) == len(name) && known[len(known)-1]|0x20 == name[len(name)-1]|0x20 && strings.EqualFold(known, string(name)) {
			return nil, true
		}
	}
	return nil, false
}

// Prune appends a JSON object without the members that are not in the shape, and without white
// space outside of what it keeps whole: what encoding/json reads of the rest is unchanged.
// An object that is not valid is appended as it is.
func Prune(dst, object []byte, shape *Shape) []byte {
	s := Scanner{Buf: object}
	from := len(dst)
	if dst, ok := s.prune(dst, shape, 0); ok && s.End() {
		return dst
	}
	return append(dst[:from], object...)
}

// maxPruneDepth bounds the recursion; shapes are less deep.
const maxPruneDepth = 32

// prune appends the value at the position as far as the shape goes.
func (s *Scanner) prune(dst []byte, shape *Shape, depth int) ([]byte, bool) {
	c := s.Peek()
	if shape == nil || depth == maxPruneDepth || c != '{' && c != '[' {
		start := s.Pos
		if !s.Skip() {
			return dst, false
		}
		return append(dst, s.Buf[start:s.Pos]...), true
	}
	s.Pos++
	dst = append(dst, c)
	first := true
	if c == '[' {
		for ; s.Element(first); first = false {
			if !first {
				dst = append(dst, ',')
			}
			var ok bool
			if dst, ok = s.prune(dst, shape, depth+1); !ok {
				return dst, false
			}
		}
		return append(dst, ']'), s.Err == nil
	}
	kept := 0
	for ; s.Peek() != '}'; first = false {
		if !first {
			if s.Peek() != ',' {
				return dst, false
			}
			s.Pos++
		}
		if s.Peek() != '"' {
			return dst, false
		}
		start := s.Pos
		end, ok := s.skipString(start + 1)
		if s.Pos = end; !ok || s.Peek() != ':' {
			return dst, false
		}
		s.Pos++
		sub, read := shape.find(s.Buf[start+1 : end-1])
		if !read {
			if !s.Skip() {
				return dst, false
			}
			continue
		}
		if kept++; kept > 1 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, s.Buf[start:end]...), ':')
		if dst, ok = s.prune(dst, sub, depth+1); !ok {
			return dst, false
		}
	}
	s.Pos++
	return append(dst, '}'), true
}
