package graph

import (
	"slices"
	"strconv"
	"strings"
)

// Refs is a set of references from one object to others, in order and without duplicates: equal sets are equal strings. It is text without
// surprises (kind letter, length, colon, name), so that it can be kept, interned and stored as it is.
type Refs string

// refKind is what a reference leads to: the letter before it in a Refs.
type refKind byte

const (
	refServiceAccount refKind = 'a'
	refConfigMap      refKind = 'c'
	refClaim          refKind = 'p' // persistentvolumeclaim
	refResourceClaim  refKind = 'r'
	refSecret         refKind = 's'
	// What a pod refers to since it got an ephemeral container, and did not before.
	refLateConfigMap refKind = 'd'
	refLateSecret    refKind = 't'
	// A volume's references carry a namespace.
	refVolumeClaim  refKind = 'P'
	refVolumeSecret refKind = 'S'
)

// namespaced reports whether a reference of this kind names its namespace itself. The others
// are in the namespace of the object that refers.
func (k refKind) namespaced() bool { return k == refVolumeClaim || k == refVolumeSecret }

// late returns the kind of a reference that came with an ephemeral container, 0 for kinds that none can bring.
func (k refKind) late() refKind {
	switch k {
	case refConfigMap:
		return refLateConfigMap
	case refSecret:
		return refLateSecret
	}
	return 0
}

// ref is one reference.
type ref struct {
	kind            refKind
	namespace, name string
}

// compare is the order of references in a Refs.
func (r ref) compare(o ref) int {
	if r.kind != o.kind {
		return int(r.kind) - int(o.kind)
	}
	if c := strings.Compare(r.namespace, o.namespace); c != 0 {
		return c
	}
	return strings.Compare(r.name, o.name)
}

// refsOf returns the Refs of references in any order. It sorts rs.
func refsOf(rs []ref) Refs {
	slices.SortFunc(rs, ref.compare)
	rs = slices.Compact(rs)
	text := make([]byte, 0, 24*len(rs))
	for _, r := range rs {
		text = appendRef(text, r)
	}
	return Refs(text)
}

// since returns rs with references marked late that it did not have before and that an ephemeral container can have brought.
func (rs Refs) since(before Refs) Refs {
	if rs == before {
		return rs
	}
	had := map[ref]bool{}
	for r, rest, ok := before.cut(); ok; r, rest, ok = rest.cut() {
		had[r] = true
	}
	var list []ref
	for r, rest, ok := rs.cut(); ok; r, rest, ok = rest.cut() {
		if k := r.kind.late(); k != 0 && !had[r] {
			r.kind = k
		}
		list = append(list, r)
	}
	return refsOf(list)
}

// appendRef appends a reference to the text of a Refs.
func appendRef(dst []byte, r ref) []byte {
	dst = append(dst, byte(r.kind))
	if r.kind.namespaced() {
		dst = appendText(dst, r.namespace)
	}
	return appendText(dst, r.name)
}

func appendText(dst []byte, s string) []byte {
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	dst = append(dst, ':')
	return append(dst, s...)
}

// cut returns the first reference and what follows it; ok is false at the end, and if rs does not begin with one.
func (rs Refs) cut() (r ref, rest Refs, ok bool) {
	if rs == "" {
		return ref{}, "", false
	}
	r.kind = refKind(rs[0])
	text := string(rs[1:])
	if r.kind.namespaced() {
		if r.namespace, text, ok = cutText(text); !ok {
			return ref{}, "", false
		}
	}
	if r.name, text, ok = cutText(text); !ok {
		return ref{}, "", false
	}
	return r, Refs(text), true
}

func cutText(s string) (text, rest string, ok bool) {
	n := 0
	for i := 0; i < len(s) && i < 8; i++ {
		c := s[i]
		if c == ':' {
			s = s[i+1:]
			if i == 0 || n > len(s) {
				return "", "", false
			}
			return s[:n], s[n:], true
		}
		if c < '0' || c > '9' {
			return "", "", false
		}
		n = n*10 + int(c-'0')
	}
	return "", "", false
}
