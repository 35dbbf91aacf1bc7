package escalation

import (
	"slices"
)

// ask is what one identity, with what it has bound to itself, may do.
type ask struct {
	g             *graph
	who           who
	held, assumed int32 // vertices its edges leave from; held -1: it cannot impersonate
	own, more     []holding
	bound         []holding
	impersonates  bool    // it is only looked at what it may impersonate
	everywhere    []names // by ability; what own and more hold cluster-wide
	mask, ownMask mask    // of everywhere, and of own's part
	here          []names // the same in the namespace looked at
	touched       []ability
}

// leave links an identity to what it reaches, by rights of which at least one is its own.
// Edges by inherited rights alone leave from where those are inherited from. bound is what of
// own and more it has bound to itself: that is held by whoever impersonates it as well.
func (g *graph) leave(w who, held, assumed int32, own, more, bound []holding) {
	if slices.Contains(w.groups, Masters) {
		g.member(assumed, goalMasters)
	}
	var any mask
	for _, h := range own {
		any.add(g.roles[h.role].mask)
	}
	var all mask
	all.add(any)
	for _, h := range more {
		all.add(g.roles[h.role].mask)
	}
	b := g.book
	changes := all.has(b.bindCluster) || all.has(b.bindRole) || all.has(b.escCluster) || all.has(b.escRole)
	if len(own) == 0 || any.empty() && !changes {
		return
	}
	a := ask{g: g, who: w, held: held, assumed: assumed, own: own, more: more, bound: bound}
	a.all(any, changes)
	if len(bound) > 0 {
		again := ask{g: g, who: w, held: assumed, assumed: assumed, own: bound, impersonates: true}
		again.all(any, false)
	}
}

// all makes the links.
func (a *ask) all(any mask, changes bool) {
	g, own, more := a.g, a.own, a.more
	spaces, mine := map[string]mask{}, map[string]mask{}
	var cluster []int32
	for _, list := range [][]holding{own, more} {
		for _, h := range list {
			r := &g.roles[h.role]
			if h.namespace == "" {
				a.mask.add(r.mask)
				cluster = append(cluster, h.role)
				continue
			}
			m := spaces[h.namespace]
			m.add(r.mask)
			spaces[h.namespace] = m
		}
	}
	a.everywhere = g.together(cluster)
	for _, h := range own {
		if h.namespace == "" {
			a.ownMask.add(g.roles[h.role].mask)
		} else {
			m := mine[h.namespace]
			m.add(g.roles[h.role].mask)
			mine[h.namespace] = m
		}
	}
	a.here = a.everywhere
	a.ways("", a.ownMask, a.mask)
	a.assumeGroups(any, spaces)
	var list []string
	for ns := range spaces {
		list = append(list, ns)
	}
	slices.Sort(list)
	a.here = slices.Clone(a.everywhere)
	for _, ns := range list {
		m := mine[ns]
		m.add(a.ownMask)
		if m.empty() {
			continue
		}
		a.enter(ns)
		a.ways(ns, m, spaces[ns])
		a.leaveSpace()
	}
	if changes {
		a.change(list)
	}
}

// together is what roles allow, by ability. Subjects that a binding names side by side often
// hold the same: the last answer is kept. It is not written to.
func (g *graph) together(roles []int32) []names {
	if g.last.all == nil || !slices.Equal(g.last.roles, roles) {
		all := make([]names, len(g.book.list))
		for _, i := range roles {
			r := &g.roles[i]
			for i := range r.able {
				all[r.able[i].what] = all[r.able[i].what].or(r.able[i].names)
			}
		}
		g.last.roles, g.last.all = roles, all
	}
	return g.last.all
}

// enter adds what RoleBindings of a namespace give.
func (a *ask) enter(ns string) {
	for _, list := range [][]holding{a.own, a.more} {
		for _, h := range list {
			if h.namespace != ns {
				continue
			}
			r := &a.g.roles[h.role]
			for i := range r.able {
				what := r.able[i].what
				a.here[what] = a.here[what].or(r.able[i].names)
				a.touched = append(a.touched, what)
			}
		}
	}
}

func (a *ask) leaveSpace() {
	for _, what := range a.touched {
		a.here[what] = a.everywhere[what]
	}
	a.touched = a.touched[:0]
}

// may is what is allowed of any of the patterns here.
func (a *ask) may(any []ability) names {
	var n names
	for _, what := range any {
		n = n.or(a.here[what])
	}
	return n
}

// ways links by every way of which the identity's own rights give a part, and those that hold
// here another: what holds everywhere needs no second edge.
func (a *ask) ways(ns string, own, here mask) {
	if a.here[a.g.book.admin].all && !a.impersonates {
		if ns == "" {
			a.g.member(a.assumed, goalAdmin)
		} else if !a.everywhere[a.g.book.admin].all {
			a.g.member(a.assumed, a.g.space(ns, atSpace))
		}
	}
	for i := range a.g.book.ways {
		w := &a.g.book.ways[i]
		if a.impersonates && w.edge != Impersonate || w.to == toOther || ns != "" && w.wide || !w.touches(own) || !w.touches(here) {
			continue
		}
		reached, name, ok := a.passes(w)
		if ok {
			a.lead(int16(i), ns, reached, name)
		}
	}
}

func (w *way) touches(m mask) bool {
	for i := range w.wants {
		for _, what := range w.wants[i].any {
			if m.has(what) {
				return true
			}
		}
	}
	return false
}

// passes tells whether all wants are met, for which targets, and by which chosen name.
func (a *ask) passes(w *way) (reached names, name string, ok bool) {
	reached = names{all: true}
	choose := names{all: true}
	for i := range w.wants {
		n := a.may(w.wants[i].any)
		switch w.wants[i].name {
		case free:
			if !n.has("") {
				return reached, "", false
			}
		case chosen:
			if choose = choose.and(n.named()); choose.none() {
				return reached, "", false
			}
		case target:
			if reached = reached.and(n.named()); reached.none() {
				return reached, "", false
			}
		case signer:
			if !n.has(signerClient) && !n.has(signerDomain) {
				return reached, "", false
			}
		}
	}
	return reached, choose.first(), true
}

// lead links to what a way reaches.
func (a *ask) lead(w int16, ns string, reached names, name string) {
	g := a.g
	l := link{from: a.assumed, way: w, ns: ns, name: name, role: -1}
	to := func(v int32) {
		l.to = v
		g.link(l)
	}
	of := g.book.ways[w].to
	if of == toUsersAssumed || of == toAccountsAssumed {
		if a.held < 0 {
			return
		}
		l.from = a.held
	}
	switch of {
	case toAllAccounts:
		to(g.vertexOf(vertex{at: atAllAccounts}))
	case toAnybody:
		to(g.vertexOf(vertex{at: atAnybody}))
	case toUsersAssumed:
		if reached.all {
			to(g.vertexOf(vertex{at: atAnyUser}))
			return
		}
		for _, n := range reached.some {
			if i, ok := g.at[identityKey{n, false}]; ok && g.ids[i].node.Kind == User {
				to(g.assumed(i))
			}
		}
	case toAccounts, toAccountsAssumed:
		every, space, one := atAllAccounts, atAccounts, atHeld
		if of == toAccountsAssumed {
			every, space, one = atAllAccountsTaken, atAccountsTaken, atAssumed
		}
		switch {
		case reached.all && ns == "":
			to(g.vertexOf(vertex{at: every}))
		case reached.all:
			to(g.space(ns, space))
		case ns == "":
			for _, n := range reached.some {
				for _, i := range g.called[n] {
					to(g.vertexOf(vertex{at: one, a: i}))
				}
			}
		default:
			for _, n := range reached.some {
				if i, ok := g.at[identityKey{accountPrefix + ns + ":" + n, false}]; ok && g.ids[i].node.Kind == ServiceAccount {
					to(g.vertexOf(vertex{at: one, a: i}))
				}
			}
		}
	}
}

// assumeGroups links to groups: they are impersonated together with some user or service
// account, so that takes a right to one as well.
func (a *ask) assumeGroups(any mask, spaces map[string]mask) {
	b := a.g.book
	groups := a.everywhere[b.impGroups].named()
	if a.held < 0 || groups.none() || !(any.has(b.impGroups) || any.has(b.impUsers) || any.has(b.impAccounts)) {
		return
	}
	l := link{from: a.held, way: b.assumeGroup, role: -1}
	if n := a.everywhere[b.impUsers].named(); !n.none() {
		l.name = n.first()
	} else if ns, n, ok := a.someAccount(); ok {
		l.ns, l.name = ns, n
	} else {
		return
	}
	if groups.all {
		l.to = a.g.vertexOf(vertex{at: atAnyGroup})
		a.g.link(l)
		return
	}
	for _, n := range groups.some {
		if i, ok := a.g.at[identityKey{n, true}]; ok {
			l.to = a.g.assumed(i)
			a.g.link(l)
		} else if n == Masters {
			l.to = goalMasters
			a.g.link(l)
		}
	}
}

// someAccount is a service account that may be impersonated, in any namespace; an empty name
// stands for any of them.
func (a *ask) someAccount() (namespace, name string, ok bool) {
	what := a.g.book.impAccounts
	if n := a.everywhere[what].named(); !n.none() {
		return "", n.first(), true
	}
	for _, list := range [][]holding{a.own, a.more} {
		for _, h := range list {
			if n := a.g.roles[h.role].able.of(what).named(); h.namespace != "" && !n.none() {
				return h.namespace, n.first(), true
			}
		}
	}
	return "", "", false
}
