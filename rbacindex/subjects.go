package rbacindex

// principal is what the bindings of one user name or one group name are found under.
type principal struct {
	name    string
	cluster few[*ref]   // ClusterRoleBindings, by name
	spaces  few[*space] // RoleBindings, by namespace
}

func (p *principal) id() (string, string) { return "", p.name }

// space holds a principal's RoleBindings of one namespace, by name.
type space struct {
	ns   string
	refs few[*ref]
}

func (s *space) id() (string, string) { return "", s.ns }

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
		c.cluster = p.cluster.without(h, "", name)
	} else if old, ok := p.spaces.get(h, "", ns); ok {
		if refs := old.refs.without(h, "", name); refs.empty() {
			c.spaces = p.spaces.without(h, "", ns)
		} else {
			c.spaces = p.spaces.with(h, &space{ns: ns, refs: refs})
		}
	}
	if c.cluster.empty() && c.spaces.empty() {
		return nil
	}
	return &c
}

// uses are the bindings that name one role, whether it exists or not.
type uses struct {
	ns, name string          // of the role
	cluster  few[*binding]   // ClusterRoleBindings, by name
	spaces   few[*usesSpace] // RoleBindings, by namespace
}

func (u *uses) id() (string, string) { return u.ns, u.name }

// usesSpace are the RoleBindings of one namespace that name one role; never empty. They know
// their namespace, which is not kept a second time.
type usesSpace struct{ bindings few[*binding] }

func (u *usesSpace) id() (string, string) {
	ns, _ := u.bindings.first().id()
	return "", ns
}

// with returns the uses with b among them.
func (u *uses) with(h *hasher, b *binding) *uses {
	c := *u
	ns, _ := b.id()
	if ns == "" {
		c.cluster = u.cluster.with(h, b)
		return &c
	}
	in := &usesSpace{}
	if old, ok := u.spaces.get(h, "", ns); ok {
		in.bindings = old.bindings
	}
	in.bindings = in.bindings.with(h, b)
	c.spaces = u.spaces.with(h, in)
	return &c
}

// without returns the uses without b, nil if nothing is left.
func (u *uses) without(h *hasher, b *binding) *uses {
	c := *u
	ns, name := b.id()
	if ns == "" {
		c.cluster = u.cluster.without(h, "", name)
	} else if old, ok := u.spaces.get(h, "", ns); ok {
		if left := old.bindings.without(h, ns, name); left.empty() {
			c.spaces = u.spaces.without(h, "", ns)
		} else {
			c.spaces = u.spaces.with(h, &usesSpace{bindings: left})
		}
	}
	if c.cluster.empty() && c.spaces.empty() {
		return nil
	}
	return &c
}

// all visits every binding until fn returns false.
func (u *uses) all(fn func(*binding) bool) bool {
	return u.cluster.all(fn) && u.spaces.all(func(in *usesSpace) bool { return in.bindings.all(fn) })
}
