package rbacindex

// profile is what a Snapshot knows of one subject: a user name and its groups.
type profile struct {
	principals []*principal // those that any binding names
	cluster    *scope
}

// subject returns the profile of a subject.
func (s *Snapshot) subject(user string, groups []string) *profile {
	h := s.family.hasher
	p := &profile{}
	if u, ok := s.users.get(h, "", user); ok {
		p.principals = append(p.principals, u)
	}
	for _, name := range groups {
		if g, ok := s.groups.get(h, "", name); ok {
			p.principals = append(p.principals, g)
		}
	}
	g := gatherer{s: s}
	for _, pr := range p.principals {
		g.refs = pr.cluster.appendTo(g.refs)
	}
	p.cluster = g.scope(nil)
	return p
}

// namespaced returns the scope of a subject in a namespace.
func (s *Snapshot) namespaced(p *profile, ns string) *scope {
	g := gatherer{s: s}
	for _, pr := range p.principals {
		if sp, ok := pr.spaces.get(s.family.hasher, "", ns); ok {
			g.refs = sp.refs.appendTo(g.refs)
		}
	}
	return g.scope(p.cluster)
}
