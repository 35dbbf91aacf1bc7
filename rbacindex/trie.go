package rbacindex

import "math/bits"

// leaf is what a trie holds: a pointer to something that knows its own key. Keys are not stored
// next to the leaves, which halves the memory of an entry.
type leaf interface {
	comparable
	id() (space, name string)
}

// trie is a persistent hash array mapped trie. A change copies the path to the changed
// leaf, at most a dozen small nodes, and shares everything else with the trie it came from;
// both stay valid. The zero value is empty. Iteration order is unspecified.
type trie[L leaf] struct{ root *node[L] }

const (
	trieBits  = 5
	trieWidth = 1 << trieBits
	trieDeep  = 60 // from this shift on the hash is used up: nodes are plain lists
)

// node has a leaf or a child for every bit set in leafMap and kidMap; a bit is never set in
// both. At trieDeep both maps are unused and leaves is a list of colliding keys.
type node[L leaf] struct {
	leafMap, kidMap uint32
	leaves          []L
	kids            []*node[L]
}

func same[L leaf](l L, space, name string) bool {
	s, n := l.id()
	return n == name && s == space
}

// get returns the leaf with the given key.
func (t trie[L]) get(h *hasher, space, name string) (l L, ok bool) {
	hash := h.pair(space, name)
	n := t.root
	for shift := 0; n != nil; shift += trieBits {
		if shift >= trieDeep {
			for _, c := range n.leaves {
				if same(c, space, name) {
					return c, true
				}
			}
			return l, false
		}
		bit := uint32(1) << (hash >> shift % trieWidth)
		if n.leafMap&bit != 0 {
			c := n.leaves[rank(n.leafMap, bit)]
			if same(c, space, name) {
				return c, true
			}
			return l, false
		}
		if n.kidMap&bit == 0 {
			return l, false
		}
		n = n.kids[rank(n.kidMap, bit)]
	}
	return l, false
}

// with returns a trie that holds l in place of a leaf with the same key, if there was one.
func (t trie[L]) with(h *hasher, l L) trie[L] {
	space, name := l.id()
	return trie[L]{root: t.root.with(h, h.pair(space, name), 0, l)}
}

func (n *node[L]) with(h *hasher, hash uint64, shift int, l L) *node[L] {
	if n == nil {
		n = &node[L]{}
	}
	space, name := l.id()
	if shift >= trieDeep {
		for i, c := range n.leaves {
			if same(c, space, name) {
				return &node[L]{leaves: replaced(n.leaves, i, l)}
			}
		}
		return &node[L]{leaves: inserted(n.leaves, len(n.leaves), l)}
	}
	bit := uint32(1) << (hash >> shift % trieWidth)
	c := *n
	switch {
	case n.kidMap&bit != 0:
		i := rank(n.kidMap, bit)
		c.kids = replaced(n.kids, i, n.kids[i].with(h, hash, shift+trieBits, l))
	case n.leafMap&bit != 0:
		i := rank(n.leafMap, bit)
		old := n.leaves[i]
		if same(old, space, name) {
			c.leaves = replaced(n.leaves, i, l)
			break
		}
		os, on := old.id()
		var kid *node[L]
		kid = kid.with(h, h.pair(os, on), shift+trieBits, old)
		kid = kid.with(h, hash, shift+trieBits, l)
		c.leafMap &^= bit
		c.leaves = removed(n.leaves, i)
		c.kidMap |= bit
		c.kids = inserted(n.kids, rank(c.kidMap, bit), kid)
	default:
		c.leafMap |= bit
		c.leaves = inserted(n.leaves, rank(c.leafMap, bit), l)
	}
	return &c
}

// without returns a trie without the given key.
func (t trie[L]) without(h *hasher, space, name string) trie[L] {
	return trie[L]{root: t.root.without(h.pair(space, name), 0, space, name)}
}

// without keeps the trie canonical: a child left with a single leaf is folded into its
// parent, so that a trie's shape depends on its keys alone.
func (n *node[L]) without(hash uint64, shift int, space, name string) *node[L] {
	if n == nil {
		return nil
	}
	if shift >= trieDeep {
		for i, c := range n.leaves {
			if same(c, space, name) {
				return &node[L]{leaves: removed(n.leaves, i)}
			}
		}
		return n
	}
	bit := uint32(1) << (hash >> shift % trieWidth)
	c := *n
	switch {
	case n.leafMap&bit != 0:
		i := rank(n.leafMap, bit)
		if !same(n.leaves[i], space, name) {
			return n
		}
		c.leafMap &^= bit
		c.leaves = removed(n.leaves, i)
	case n.kidMap&bit != 0:
		i := rank(n.kidMap, bit)
		kid := n.kids[i].without(hash, shift+trieBits, space, name)
		if kid == n.kids[i] {
			return n
		}
		if kid == nil || len(kid.kids) == 0 && len(kid.leaves) <= 1 {
			c.kidMap &^= bit
			c.kids = removed(n.kids, i)
			if kid != nil && len(kid.leaves) == 1 {
				c.leafMap |= bit
				c.leaves = inserted(n.leaves, rank(c.leafMap, bit), kid.leaves[0])
			}
		} else {
			c.kids = replaced(n.kids, i, kid)
		}
	default:
		return n
	}
	if len(c.leaves) == 0 && len(c.kids) == 0 {
		return nil
	}
	return &c
}

// all visits every leaf until fn returns false; it reports whether it reached the end.
func (t trie[L]) all(fn func(L) bool) bool { return t.root.all(fn) }

func (n *node[L]) all(fn func(L) bool) bool {
	if n == nil {
		return true
	}
	for _, l := range n.leaves {
		if !fn(l) {
			return false
		}
	}
	for _, k := range n.kids {
		if !k.all(fn) {
			return false
		}
	}
	return true
}

// beside visits every leaf that o does not hold, until fn returns false; it reports whether
// it reached the end. What both share is passed over, so that the cost is that of the
// difference.
func (t trie[L]) beside(h *hasher, o trie[L], fn func(L) bool) bool {
	return t.root.beside(h, o, o.root, fn)
}

// beside visits the leaves of n that o does not hold; at is the node of o where n's keys
// would be, nil if there is none.
func (n *node[L]) beside(h *hasher, o trie[L], at *node[L], fn func(L) bool) bool {
	if n == at || n == nil {
		return true
	}
	for _, l := range n.leaves {
		space, name := l.id()
		if old, ok := o.get(h, space, name); (!ok || old != l) && !fn(l) {
			return false
		}
	}
	for i, kids := 0, n.kidMap; kids != 0; i, kids = i+1, kids&(kids-1) {
		bit := kids & -kids
		var under *node[L]
		if at != nil && at.kidMap&bit != 0 {
			under = at.kids[rank(at.kidMap, bit)]
		}
		if !n.kids[i].beside(h, o, under, fn) {
			return false
		}
	}
	return true
}

// buildTrie makes a trie of leaves with distinct keys, with slices of exact size.
func buildTrie[L leaf](h *hasher, leaves []L) trie[L] {
	if len(leaves) == 0 {
		return trie[L]{}
	}
	items := make([]hashed[L], len(leaves))
	for i, l := range leaves {
		items[i] = hashed[L]{hash: h.pair(l.id()), leaf: l}
	}
	return trie[L]{root: buildNode(items, make([]hashed[L], len(items)), 0)}
}

type hashed[L leaf] struct {
	hash uint64
	leaf L
}

// buildNode distributes items over the slots of one node by counting sort; spare is scratch
// space of the same length.
func buildNode[L leaf](items, spare []hashed[L], shift int) *node[L] {
	n := &node[L]{}
	if shift >= trieDeep {
		for _, it := range items {
			n.leaves = append(n.leaves, it.leaf)
		}
		return n
	}
	var ends [trieWidth + 1]int
	for _, it := range items {
		ends[it.hash>>shift%trieWidth+1]++
	}
	nl, nk := 0, 0
	for i := range trieWidth {
		switch c := ends[i+1]; {
		case c == 1:
			nl++
		case c > 1:
			nk++
		}
		ends[i+1] += ends[i]
	}
	next := ends
	for _, it := range items {
		slot := it.hash >> shift % trieWidth
		spare[next[slot]] = it
		next[slot]++
	}
	if nl > 0 {
		n.leaves = make([]L, 0, nl)
	}
	if nk > 0 {
		n.kids = make([]*node[L], 0, nk)
	}
	for i := range trieWidth {
		lo, hi := ends[i], ends[i+1]
		switch {
		case hi-lo == 1:
			n.leafMap |= 1 << i
			n.leaves = append(n.leaves, spare[lo].leaf)
		case hi-lo > 1:
			n.kidMap |= 1 << i
			n.kids = append(n.kids, buildNode(spare[lo:hi], items[lo:hi], shift+trieBits))
		}
	}
	return n
}

func rank(bitmap, bit uint32) int { return bits.OnesCount32(bitmap & (bit - 1)) }

func replaced[T any](s []T, i int, v T) []T {
	out := make([]T, len(s))
	copy(out, s)
	out[i] = v
	return out
}

func inserted[T any](s []T, i int, v T) []T {
	out := make([]T, len(s)+1)
	copy(out, s[:i])
	out[i] = v
	copy(out[i+1:], s[i:])
	return out
}

func removed[T any](s []T, i int) []T {
	if len(s) == 1 {
		return nil
	}
	out := make([]T, len(s)-1)
	copy(out, s[:i])
	copy(out[i:], s[i+1:])
	return out
}
