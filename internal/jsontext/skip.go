package jsontext

// Skip consumes one value of any kind and checks its grammar.
func (s *Scanner) Skip() bool {
	open, i, ok := nesting{outer: s.stack[:0]}, s.Pos, true
value:
	for { // a value begins at i
		if i = s.past(i); i >= len(s.Buf) {
			return s.Unexpected(i, "value")
		}
		switch c := s.Buf[i]; c {
		case '"':
			i, ok = s.skipString(i + 1)
		case '{', '[':
			if open.depth == MaxDepth {
				return s.Fail(i, "nested too deeply")
			}
			open.push(c == '{')
			if i = s.past(i + 1); i >= len(s.Buf) || s.Buf[i] != c+2 { // not empty
				if c == '{' {
					if i, ok = s.skipName(i); !ok {
						return false
					}
				}
				continue
			}
		default:
			s.Pos = i
			ok = s.scalar(c)
			i = s.Pos
		}
		if !ok {
			return false
		}
		for open.depth > 0 { // after a value: the next one, or the end of its container
			switch i = s.past(i); {
			case i < len(s.Buf) && s.Buf[i] == ',':
				if i++; open.object() {
					if i, ok = s.skipName(i); !ok {
						return false
					}
				}
				continue value
			case i >= len(s.Buf) || s.Buf[i] != open.end():
				return s.Unexpected(i, "comma or end of "+open.name())
			}
			i++
			open.pop()
		}
		s.stack, s.Pos = open.outer, i
		return true
	}
}

// nesting is which containers are open: bits, so that depth costs no calls.
type nesting struct {
	depth   int
	objects uint64   // which of the innermost 64 are objects, lowest bit the innermost
	outer   []uint64 // those beyond
}

func (n *nesting) push(object bool) {
	if n.depth&63 == 0 && n.depth > 0 {
		n.outer = append(n.outer, n.objects)
	}
	n.depth++
	if n.objects <<= 1; object {
		n.objects |= 1
	}
}

func (n *nesting) pop() {
	n.depth--
	n.objects >>= 1
	if n.depth&63 == 0 && n.depth > 0 {
		n.objects = n.outer[len(n.outer)-1]
		n.outer = n.outer[:len(n.outer)-1]
	}
}

// object tells whether the innermost container is an object.
func (n *nesting) object() bool { return n.objects&1 == 1 }

// end is what ends the innermost container.
func (n *nesting) end() byte { return ']' + byte(n.objects&1)*('}'-']') }

// name is what the innermost container is called.
func (n *nesting) name() string {
	if n.object() {
		return "object"
	}
	return "array"
}

// past returns the position after the white space at i.
func (s *Scanner) past(i int) int {
	if i < len(s.Buf) && s.Buf[i] > ' ' {
		return i
	}
	return s.pass(i)
}

// skipName checks a member's name and the colon after it, and returns the position after both.
func (s *Scanner) skipName(i int) (int, bool) {
	b := s.Buf
	if i < len(b) && b[i] <= ' ' {
		i = s.pass(i)
	}
	if i >= len(b) || b[i] != '"' {
		return i, s.Unexpected(i, "member name")
	}
	i, ok := s.skipString(i + 1)
	if !ok {
		return i, false
	}
	if i >= len(b) || b[i] <= ' ' {
		i = s.pass(i)
	}
	if i >= len(b) || b[i] != ':' {
		return i, s.Unexpected(i, "colon")
	}
	return i + 1, true
}

// scalar consumes a number or literal that begins with c.
func (s *Scanner) scalar(c byte) bool {
	if c == '-' || c-'0' <= 9 {
		return s.Number()
	}
	return s.literal()
}

// pass moves to i and past the white space there, and returns the position after it.
func (s *Scanner) pass(i int) int {
	s.Pos = i
	s.space()
	return s.Pos
}

// literal consumes true, false or null.
func (s *Scanner) literal() bool {
	rest := s.Buf[min(s.Pos, len(s.Buf)):]
	for _, word := range [...]string{"true", "false", "null"} {
		if len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.Pos += len(word)
			return true
		}
	}
	return s.Unexpected(s.Pos, "value")
}

// Number consumes a number of the JSON grammar.
func (s *Scanner) Number() bool {
	b := s.Buf
	i := s.Pos
	digits := func() bool {
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return s.Fail(i, "malformed number")
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return s.Fail(i, "malformed number")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return s.Fail(i, "malformed number")
		}
	}
	s.Pos = i
	return true
}
