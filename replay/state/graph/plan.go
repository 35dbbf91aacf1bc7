package graph

import "strings"

// planned is a stay to make.
type planned struct {
	span    span
	node    string
	anyNode bool
	refs    Refs
	anyRefs bool
}

// spanOf returns how long a step of a life was in force.
func spanOf(life []Step, i int) span {
	s := span{life[i].NotBefore, life[i].NotAfter, never, never}
	if i+1 < len(life) {
		s.endNB, s.endNA = life[i+1].NotBefore, life[i+1].NotAfter
	}
	return s
}

// planOf derives the stays of an object from its life. Steps that lead to the same things are one stay, and changes for which the apiserver
// does not refresh its graph are ignored.
func planOf(kind Kind, life []Step) []planned {
	if len(life) == 0 {
		return nil
	}
	plan := make([]planned, 0, 2)
	var last *Step // the one the stay going on was made of
	var firm Refs  // the references every apiserver has taken by then
	for i := range life {
		st := &life[i]
		p := planned{span: spanOf(life, i)}
		if p.span.empty() {
			continue
		}
		switch {
		case st.Known == Absent:
			last = nil
			continue
		case st.Known == Unknown || st.Content == nil:
			p.anyNode, p.anyRefs = kind != Volume, true
			last = nil
		case kind == Pod && last != nil && st.UID == last.UID && !st.refreshes(last):
			p = plan[len(plan)-1].at(p.span)
			last = st
		default:
			c, before := st.Content, last
			last = nil
			switch {
			case c.counts(kind):
				if kind == Pod && before != nil && st.UID == before.UID && !st.renews(before) {
					p.refs = c.Refs.since(firm)
				} else {
					p.refs, firm = c.Refs, c.Refs
				}
				p.anyRefs = c.AnyRefs
				if p.anyNode = c.AnyNode && kind != Volume; !p.anyNode && kind != Volume {
					p.node = c.Node
				}
				last = st
			case kind == Pod:
				continue // there are many, each for a moment
			}
		}
		if n := len(plan); n > 0 && plan[n-1].span.endNA == p.span.na && plan[n-1].span.endNB == p.span.nb && plan[n-1].at(p.span) == p {
			plan[n-1].span.endNB, plan[n-1].span.endNA = p.span.endNB, p.span.endNA
			continue
		}
		plan = append(plan, p)
	}
	return plan
}

// at returns the same stay at another time.
func (p planned) at(s span) planned {
	p.span = s
	return p
}

// counts reports whether an object of this content leads to anything.
func (c *Content) counts(kind Kind) bool {
	if kind == Volume {
		return c.AnyRefs || strings.HasPrefix(string(c.Refs), string(refVolumeClaim)) // claims come first
	}
	return c.AnyNode || c.Node != ""
}

// refreshes reports whether a current apiserver refreshes a pod's references when it sees this step after that one.
func (s *Step) refreshes(before *Step) bool {
	return s.renews(before) || s.Content.Ephemeral > before.Content.Ephemeral
}

// renews reports whether apiservers of all releases do.
func (s *Step) renews(before *Step) bool {
	c, b := s.Content, before.Content
	return c.Node != b.Node || c.AnyNode != b.AnyNode || c.AnyRefs != b.AnyRefs || c.Statuses != b.Statuses
}

// same reports whether a stay is the planned one.
func (g *Graph) same(s *stay, p *planned) bool {
	node := id(0)
	switch {
	case p.anyNode:
		node = anyName
	case p.node != "":
		node = g.names.ids[p.node]
		if node == 0 {
			return false
		}
	}
	return s.node == node && s.refs == p.refs && s.anyRefs == p.anyRefs && *g.spans.get(s.span) == p.span
}

// replace replaces an object's stays with the planned ones, and leaves unchanged ones alone.
func (g *Graph) replace(o Object, obj *object, plan []planned) {
	kept := 0
	for kept < len(obj.stays) && kept < len(plan) && g.same(&obj.stays[kept], &plan[kept]) {
		kept++
	}
	for i := kept; i < len(obj.stays); i++ {
		s := &obj.stays[i]
		g.link(o, s, false)
		g.names.done(s.node)
		g.spans.remove(s.span)
	}
	if kept == len(obj.stays) && kept == len(plan) {
		return
	}
	stays := make([]stay, kept, len(plan))
	copy(stays, obj.stays)
	for i := kept; i < len(plan); i++ {
		p := &plan[i]
		s := stay{span: g.spans.add(p.span), refs: p.refs, anyRefs: p.anyRefs}
		switch {
		case p.anyNode:
			s.node = anyName
		case p.node != "":
			s.node = g.names.use(p.node)
		}
		stays = append(stays, s)
		g.link(o, &s, true)
	}
	obj.stays = stays
}
