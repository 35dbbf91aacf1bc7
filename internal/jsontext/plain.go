package jsontext

import (
	"strconv"
	"strings"
)

// Plain reads JSON as nearly every apiserver writes it, several times as fast as encoding/json. It
// never decides what odd input means: at anything out of the ordinary (a member twice, in other
// letters or of another type, null, an escape or a byte beyond ASCII in a string that counts,
// damage) it gives up, and the caller asks encoding/json.
type Plain struct{ Scanner }

// NewPlain returns a reader at the beginning of a text.
func NewPlain(text []byte) Plain { return Plain{Scanner{Buf: text}} }

// eat passes one byte, with white space before it.
func (p *Plain) eat(c byte) bool {
	if p.Peek() != c {
		return false
	}
	p.Pos++
	return true
}

// Bytes reads a string without escapes, of ASCII only. The result is part of the input.
func (p *Plain) Bytes() ([]byte, bool) {
	if !p.eat('"') {
		return nil, false
	}
	b := p.Buf
	for i := p.Pos; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			text := b[p.Pos:i]
			p.Pos = i + 1
			return text, true
		case c == '\\' || c < 0x20 || c >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

// Text reads a string into memory of its own.
func (p *Plain) Text(into *string) bool {
	s, ok := p.Bytes()
	if ok {
		*into = string(s)
	}
	return ok
}

// Texts reads an array of strings into memory of their own.
func (p *Plain) Texts(into *[]string) bool {
	list := []string{}
	if !p.Array(func() bool {
		var s string
		ok := p.Text(&s)
		list = append(list, s)
		return ok
	}) {
		return false
	}
	*into = list
	return true
}

// Integer reads an integer; other numbers are rare.
func (p *Plain) Integer(into *int64) bool {
	c := p.Peek()
	begin := p.Pos
	if c != '-' && (c < '0' || c > '9') || !p.Number() {
		return false
	}
	n, err := strconv.ParseInt(string(p.Buf[begin:p.Pos]), 10, 64)
	*into = n
	return err == nil
}

// Object visits the members of an object. member reads the value of a name it knows, and says
// which by its place in known; known are all of them, so that other spellings, which
// encoding/json takes for the same, are told.
func (p *Plain) Object(known []string, member func(i int) bool) bool {
	if !p.eat('{') {
		return false
	}
	if p.eat('}') {
		return true
	}
	seen := 0
	for {
		name, ok := p.Bytes()
		if !ok || !p.eat(':') {
			return false
		}
		at := -1
		for i, k := range known {
			if string(name) == k {
				at = i
				break
			}
			if len(name) == len(k) && strings.EqualFold(string(name), k) {
				return false
			}
		}
		if at < 0 {
			ok = p.Skip()
		} else {
			ok = seen>>at&1 == 0 && member(at)
			seen |= 1 << at
		}
		switch {
		case !ok:
			return false
		case p.eat(','):
		default:
			return p.eat('}')
		}
	}
}

// Array visits the elements of an array.
func (p *Plain) Array(element func() bool) bool {
	if !p.eat('[') {
		return false
	}
	if p.eat(']') {
		return true
	}
	for {
		switch {
		case !element():
			return false
		case p.eat(','):
		default:
			return p.eat(']')
		}
	}
}

// Done reports whether only white space is left.
func (p *Plain) Done() bool { return p.Peek() == 0 && p.Pos >= len(p.Buf) }
