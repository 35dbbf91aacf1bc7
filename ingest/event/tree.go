package event

import (
	"slices"
	"unsafe"
)

// node is one value or member name of a JSON text, in a flat pre-order list: what follows a
// container, up to next, is inside it.
type node struct {
	kind       byte // '{', '[', '"' or '0' for any other value; 'k' for a member name
	start, end int  // text, with quotes
	next       int  // index of the first node behind this one's inside
}

// tree is a JSON text taken apart, and the edits to make of it.
type tree struct {
	buf   []byte
	nodes []node
	edits []edit
}

// edit replaces a part of the text by a JSON value.
type edit struct {
	start, end int
	text       string
}

// parseTree takes a JSON text apart; false if it is none.
func parseTree(buf []byte) (*tree, bool) {
	t := &tree{buf: buf, nodes: make([]node, 0, len(buf)/16+8)}
	check := scanner{buf: buf}
	if !check.skip() || !check.end() {
		return nil, false
	}
	// The grammar holds; what is left is to find the tokens.
	var open []int
	closeTo := func(end int) {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		t.nodes[n].end, t.nodes[n].next = end, len(t.nodes)
	}
	s := scanner{buf: buf}
	for s.pos < len(buf) {
		start := s.pos
		switch c := buf[start]; c {
		case '{', '[':
			open = append(open, len(t.nodes))
			t.nodes = append(t.nodes, node{kind: c, start: start})
			s.pos++
		case '}', ']':
			s.pos++
			closeTo(s.pos)
		case '"':
			s.pos, _ = s.skipString(start + 1)
			end := s.pos
			kind := byte('"')
			if s.peek() == ':' {
				kind = 'k'
			}
			t.nodes = append(t.nodes, node{kind: kind, start: start, end: end, next: len(t.nodes) + 1})
		case ',', ':', ' ', '\t', '\r', '\n':
			s.pos++
		default:
			if c == '-' || c-'0' <= 9 {
				s.number()
			} else {
				s.literal()
			}
			t.nodes = append(t.nodes, node{kind: '0', start: start, end: s.pos, next: len(t.nodes) + 1})
		}
	}
	return t, true
}

// text returns a node as it is written.
func (t *tree) text(i int) []byte { return t.buf[t.nodes[i].start:t.nodes[i].end] }

// str returns the text of a string or member name, decoded; "" for other nodes.
func (t *tree) str(i int) string {
	n := t.nodes[i]
	if n.kind != '"' && n.kind != 'k' || n.end-n.start == 2 {
		return ""
	}
	s := scanner{buf: t.buf[:n.end], pos: n.start}
	v, _ := s.str()
	return v
}

// members calls f for the members of an object.
func (t *tree) members(i int, f func(name string, value int)) {
	if t.nodes[i].kind != '{' {
		return
	}
	for j := i + 1; j < t.nodes[i].next; j = t.nodes[j+1].next {
		f(t.str(j), j+1)
	}
}

// elements calls f for the elements of an array.
func (t *tree) elements(i int, f func(value int)) {
	if t.nodes[i].kind != '[' {
		return
	}
	for j := i + 1; j < t.nodes[i].next; j = t.nodes[j].next {
		f(j)
	}
}

// get returns a member's value, -1 if the object has none; the last of several.
func (t *tree) get(i int, name string) int {
	found := -1
	t.members(i, func(n string, v int) {
		if n == name {
			found = v
		}
	})
	return found
}

// getString returns a member's text, "" if it is missing or no string.
func (t *tree) getString(i int, name string) string {
	if v := t.get(i, name); v >= 0 {
		return t.str(v)
	}
	return ""
}

// replace plans to write a string in place of a value.
func (t *tree) replace(i int, text string) {
	quoted := appendString(make([]byte, 0, len(text)+2), text)
	t.edits = append(t.edits, edit{t.nodes[i].start, t.nodes[i].end, unsafe.String(&quoted[0], len(quoted))})
}

// edited returns the text with the edits made, the text itself when there are none.
func (t *tree) edited() []byte {
	if len(t.edits) == 0 {
		return t.buf
	}
	slices.SortStableFunc(t.edits, func(a, b edit) int { return a.start - b.start })
	out := make([]byte, 0, len(t.buf))
	done := 0
	for _, e := range t.edits {
		if e.start < done {
			continue // inside of what was replaced
		}
		out = append(out, t.buf[done:e.start]...)
		out = append(out, e.text...)
		done = e.end
	}
	return append(out, t.buf[done:]...)
}
