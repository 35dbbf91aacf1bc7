package rbacindex

// few is a persistent set that is usually of one: a leaf by itself, a trie from two on. Most
// principals are named by one binding of a scope, and in one namespace.
type few[L leaf] struct {
	one  L // the zero L when many is in use
	many trie[L]
}

func (f few[L]) empty() bool {
	var none L
	return f.one == none && f.many.root == nil
}

func (f few[L]) get(h *hasher, space, name string) (l L, ok bool) {
	var none L
	if f.one == none {
		return f.many.get(h, space, name)
	}
	if same(f.one, space, name) {
		return f.one, true
	}
	return none, false
}

func (f few[L]) with(h *hasher, l L) few[L] {
	var none L
	switch {
	case f.one == none && f.many.root == nil:
		return few[L]{one: l}
	case f.one == none:
		return few[L]{many: f.many.with(h, l)}
	}
	if space, name := l.id(); same(f.one, space, name) {
		return few[L]{one: l}
	}
	return few[L]{many: trie[L]{}.with(h, f.one).with(h, l)}
}

func (f few[L]) without(h *hasher, space, name string) few[L] {
	var none L
	if f.one != none {
		if same(f.one, space, name) {
			return few[L]{}
		}
		return f
	}
	f.many = f.many.without(h, space, name)
	if n := f.many.root; n != nil && len(n.kids) == 0 && len(n.leaves) == 1 {
		return few[L]{one: n.leaves[0]}
	}
	return f
}

// first returns some leaf of a set that is not empty, always the same.
func (f few[L]) first() L {
	var none L
	if f.one != none {
		return f.one
	}
	n := f.many.root
	for len(n.leaves) == 0 {
		n = n.kids[0]
	}
	return n.leaves[0]
}

// appendTo appends every leaf to dst, in no particular order.
func (f few[L]) appendTo(dst []L) []L {
	var none L
	if f.one != none {
		return append(dst, f.one)
	}
	return f.many.root.appendTo(dst)
}

func (n *node[L]) appendTo(dst []L) []L {
	if n == nil {
		return dst
	}
	dst = append(dst, n.leaves...)
	for _, k := range n.kids {
		dst = k.appendTo(dst)
	}
	return dst
}

// all visits every leaf until fn returns false.
func (f few[L]) all(fn func(L) bool) bool {
	var none L
	if f.one != none {
		return fn(f.one)
	}
	return f.many.all(fn)
}

// buildFew makes a set of leaves with distinct keys.
func buildFew[L leaf](h *hasher, leaves []L) few[L] {
	if len(leaves) == 1 {
		return few[L]{one: leaves[0]}
	}
	return few[L]{many: buildTrie(h, leaves)}
}
