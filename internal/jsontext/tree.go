package jsontext

import (
	"slices"
	"unsafe"
)

// node is one value or member name of a JSON text, in a flat pre-order list: what follows a
// container, up to next, is inside it.
type node struct {
	kind       byte // '{', '[', '"' or '0' for any other value; 'k' for a member name
	start, end int  // text, with quotes
	next       int  // index of the first node after what is inside this one
}

// Tree is a parsed JSON text, and the edits to make to it.
type Tree struct {
	buf   []byte
	nodes []node
	edits []edit
}

// edit replaces a part of the text with a JSON value.
type edit struct {
	start, end int
	text       string
}

// ParseTree parses a JSON text; it returns false if the text is not valid.
func ParseTree(buf []byte) (*Tree, bool) {
	t := &Tree{buf: buf, nodes: make([]node, 0, len(buf)/16+8)}
	check := Scanner{Buf: buf}
	if !check.Skip() || !check.End() {
		return nil, false
	}
	// The grammar holds; what is left is to find the tokens.
	var open []int
	closeTo := func(end int) {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		t.nodes[n].end, t.nodes[n].next = end, len(t.nodes)
	}
	s := Scanner{Buf: buf}
	for s.Pos < len(buf) {
		start := s.Pos
		switch c := buf[start]; c {
		case '{', '[':
			open = append(open, len(t.nodes))
			t.nodes = append(t.nodes, node{kind: c, start: start})
			s.Pos++
		case '}', ']':
			s.Pos++
			closeTo(s.Pos)
		case '"':
			s.Pos, _ = s.skipString(start + 1)
			end := s.Pos
			kind := byte('"')
			if s.Peek() == ':' {
				kind = 'k'
			}
			t.nodes = append(t.nodes, node{kind: kind, start: start, end: end, next: len(t.nodes) + 1})
		case ',', ':', ' ', '\t', '\r', '\n':
			s.Pos++
		default:
			s.scalar(c)
			t.nodes = append(t.nodes, node{kind: '0', start: start, end: s.Pos, next: len(t.nodes) + 1})
		}
	}
	return t, true
}

// Kind returns what a node is: '{', '[', '"', '0' for any other value, 'k' for a member name.
func (t *Tree) Kind(i int) byte { return t.nodes[i].kind }

// Next returns the first node after this one and all that is inside it.
func (t *Tree) Next(i int) int { return t.nodes[i].next }

// Text returns a node as written.
func (t *Tree) Text(i int) []byte { return t.buf[t.nodes[i].start:t.nodes[i].end] }

// Str returns the text of a string or member name, decoded; "" for other nodes.
func (t *Tree) Str(i int) string {
	n := t.nodes[i]
	if n.kind != '"' && n.kind != 'k' || n.end-n.start == 2 {
		return ""
	}
	s := Scanner{Buf: t.buf[:n.end], Pos: n.start}
	v, _ := s.Str()
	return v
}

// Members calls f for the members of an object.
func (t *Tree) Members(i int, f func(name string, value int)) {
	if t.nodes[i].kind != '{' {
		return
	}
	for j := i + 1; j < t.nodes[i].next; j = t.nodes[j+1].next {
		f(t.Str(j), j+1)
	}
}

// Elements calls f for the elements of an array.
func (t *Tree) Elements(i int, f func(value int)) {
	if t.nodes[i].kind != '[' {
		return
	}
	for j := i + 1; j < t.nodes[i].next; j = t.nodes[j].next {
		f(j)
	}
}

// Get returns a member's value, -1 if the object has none; the last of several.
func (t *Tree) Get(i int, name string) int {
	found := -1
	t.Members(i, func(n string, v int) {
		if n == name {
			found = v
		}
	})
	return found
}

// GetString returns a member's text, "" if it is missing or not a string.
func (t *Tree) GetString(i int, name string) string {
	if v := t.Get(i, name); v >= 0 {
		return t.Str(v)
	}
	return ""
}

// Replace adds an edit that replaces a value with a string.
func (t *Tree) Replace(i int, text string) {
	quoted := AppendString(make([]byte, 0, len(text)+2), text)
	t.edits = append(t.edits, edit{t.nodes[i].start, t.nodes[i].end, unsafe.String(&quoted[0], len(quoted))})
}

// Changed reports whether there are edits.
func (t *Tree) Changed() bool { return len(t.edits) > 0 }

// Edited returns the text with the edits made; without edits it is the text itself.
func (t *Tree) Edited() []byte {
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
