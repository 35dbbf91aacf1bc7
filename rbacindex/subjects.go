package rbacindex

// principal is what the bindings of one user name or one group name are found under.
type principal struct {
	name    string
	cluster refset       // ClusterRoleBindings
	spaces  trie[*space] // RoleBindings by namespace
}

func (p *principal) id() (string, string) { return "", p.name }

// space holds a principal's RoleBindings of one namespace.
type space struct {
	ns   string
	refs refset
}

func (s *space) id() (string, string) { return "", s.ns }

// refset is a persistent set of refs by binding name. Most principals are named by one
// binding of a scope, which needs no trie.
type refset struct {
	one  *ref
	many trie[*ref]
}

func (s refset) empty() bool { return s.one == nil && s.many.root == nil }

func (s refset) with(h *hasher, r *ref) refset {
	if s.one != nil {
		if _, name := r.id(); same(s.one, "", name) {
			return refset{one: r}
		}
		return refset{many: trie[*ref]{}.with(h, s.one).with(h, r)}
	}
	if s.many.root == nil {
		return refset{one: r}
	}
	return refset{many: s.many.with(h, r)}
}

func (s refset) without(h *hasher, name string) refset {
	if s.one != nil {
		if same(s.one, "", name) {
			return refset{}
		}
		return s
	}
	s.many = s.many.without(h, "", name)
	if n := s.many.root; n != nil && len(n.kids) == 0 && len(n.leaves) == 1 {
		return refset{one: n.leaves[0]}
	}
	return s
}

// appendTo appends every ref to dst, in no particular order.
func (s refset) appendTo(dst []*ref) []*ref {
	if s.one != nil {
		return append(dst, s.one)
	}
	return s.many.root.appendTo(dst)
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

func buildRefset(h *hasher, refs []*ref) refset {
	switch len(refs) {
	case 0:
		return refset{}
	case 1:
		return refset{one: refs[0]}
	}
	return refset{many: buildTrie(h, refs)}
}

// with returns the principal with r added to the scope ns ("" = cluster bindings).
func (p *principal) with(h *hasher, ns string, r *ref) *principal {
	c := *p
	if ns == "" {
		c.cluster = p.cluster.with(h, r)
		return &c
	}
	s := &space{ns: ns}
	if old, ok := p.spaces.get(h, "", ns); ok {
		s.refs = old.refs
	}
	s.refs = s.refs.with(h, r)
	c.spaces = p.spaces.with(h, s)
	return &c
}

// without returns the principal without the binding of that name in scope ns, nil when
// nothing is left.
func (p *principal) without(h *hasher, ns, name string) *principal {
	c := *p
	if ns == "" {
		c.cluster = p.cluster.without(h, name)
	} else if old, ok := p.spaces.get(h, "", ns); ok {
		if refs := old.refs.without(h, name); refs.empty() {
			c.spaces = p.spaces.without(h, "", ns)
		} else {
			c.spaces = p.spaces.with(h, &space{ns: ns, refs: refs})
		}
	}
	if c.cluster.empty() && c.spaces.root == nil {
		return nil
	}
	return &c
}

// uses are the bindings that name one role, whether it exists or not.
type uses struct {
	ns, name string // of the role
	bindings trie[*binding]
}

func (u *uses) id() (string, string) { return u.ns, u.name }
