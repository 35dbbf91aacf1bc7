package jsontext

// Skip consumes one value of any kind and checks its grammar. Open containers are bits, so that
// depth costs no calls.
func (s *Scanner) Skip() bool {
	b, i := s.Buf, s.Pos
	var (
		depth   int    // of open containers
		objects uint64 // which of the innermost 64 are objects, lowest bit the innermost
		ok      bool
	)
	s.stack = s.stack[:0]
value:
	for {
		if i >= len(b) || b[i] <= ' ' {
			if i = s.pass(i); i >= len(b) {
				return s.Unexpected(i, "value")
			}
		}
		switch c := b[i]; {
		case c == '"':
			if i, ok = s.skipString(i + 1); !ok {
				return false
			}
		case c == '{' || c == '[':
			if depth == MaxDepth {
				return s.Fail(i, "nested too deeply")
			}
			if depth&63 == 0 && depth > 0 {
				s.stack = append(s.stack, objects)
			}
			depth++
			objects <<= 1
			if i++; i >= len(b) || b[i] <= ' ' {
				i = s.pass(i)
			}
			if c == '{' {
				objects |= 1
			}
			if i < len(b) && b[i] == c+2 {
				break // empty: closed below
			}
			if c == '{' {
				if i, ok = s.skipName(i); !ok {
					return false
				}
			}
			continue value
		default:
			s.Pos = i
			if !s.scalar(c) {
				return false
			}
			i = s.Pos
		}
		for depth > 0 { // after a value: go to the next one, or leave the containers that end here
			if i >= len(b) || b[i] <= ' ' {
				i = s.pass(i)
			}
			object := objects&1 == 1
			switch {
			case i < len(b) && b[i] == ',':
				if i++; object {
					if i, ok = s.skipName(i); !ok {
						return false
					}
				}
				continue value
			case object && (i >= len(b) || b[i] != '}'):
				return s.Unexpected(i, "comma or end of object")
			case !object && (i >= len(b) || b[i] != ']'):
				return s.Unexpected(i, "comma or end of array")
			}
			i++
			depth--
			objects >>= 1
			if depth&63 == 0 && depth > 0 {
				objects = s.stack[len(s.stack)-1]
				s.stack = s.stack[:len(s.stack)-1]
			}
		}
		s.Pos = i
		return true
	}
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
