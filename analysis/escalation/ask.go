package escalation

import (
	"maps"
	"slices"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// ask is what one identity may do, including what it has bound to itself.
type ask struct {
	g             *graph
	e             *effort
	who           who
	held, assumed int32 // vertices its edges leave from; held -1: it cannot impersonate
	own, more     []holding
	bound         []holding
	impersonates  bool // only what it may impersonate is followed
	admin         bool // it is linked to the goal
	spaces        map[string]*scope
	everywhere    []names // by ability; what own and more hold cluster-wide
	mask, ownMask mask    // of everywhere, and of the part of own
	here          []names // the same in the current namespace
	touched       []ability
}

// scope is what is held in one namespace.
type scope struct {
	roles         []int32 // own's first
	mask, ownMask mask
}

// leave links an identity to what it reaches, by rights of which at least one is its own. Edges by
// inherited rights alone leave from where those are inherited from. bound is what of own and more
// it has bound to itself: whoever impersonates it holds that too. If the steps run out some edges
// are missing; none is wrong.
func (g *graph) leave(e *effort, w who, held, assumed int32, own, more, bound []holding) {
	if slices.Contains(w.groups, Masters) {
		g.member(assumed, goalMasters)
	}
	if len(own) == 0 {
		return
	}
	a := ask{g: g, e: e, who: w, held: held, assumed: assumed, own: own, more: more, bound: bound}
	var any mask
	for _, h := range own {
		r := &g.roles[h.role]
		any.add(r.mask)
		e.open = e.open || r.open
		a.admin = a.admin || r.admin && h.namespace == ""
	}
	if a.admin {
		g.member(assumed, goalAdmin)
	}
	if !e.take(len(own) + len(more)) {
		return
	}
	all := any
	for _, h := range more {
		all.add(g.roles[h.role].mask)
	}
	b := g.book
	changes := all.has(b.bindCluster) || all.has(b.bindRole) || all.has(b.escCluster) || all.has(b.escRole)
	if any.empty() && !changes {
		return
	}
	a.all(any, changes)
	if len(bound) > 0 {
		again := ask{g: g, e: e, who: w, held: assumed, assumed: assumed, own: bound, impersonates: true}
		again.all(any, false)
	}
}

// link adds an edge if there are steps left for it.
func (a *ask) link(l link) {
	if a.e.take(linkSteps) {
		a.g.link(l)
	}
}

// all adds the links.
func (a *ask) all(any mask, changes bool) {
	g := a.g
	if !a.e.take(len(a.own) + len(a.more)) {
		return
	}
	a.spaces = map[string]*scope{}
	var cluster []int32
	for i, list := range [][]holding{a.own, a.more} {
		for _, h := range list {
			m := g.roles[h.role].mask
			own := mask{}
			if i == 0 {
				own = m
			}
			if h.namespace == "" {
				a.mask.add(m)
				a.ownMask.add(own)
				cluster = append(cluster, h.role)
				continue
			}
			in := a.spaces[h.namespace]
			if in == nil {
				in = &scope{}
				a.spaces[h.namespace] = in
			}
			in.mask.add(m)
			in.ownMask.add(own)
			in.roles = append(in.roles, h.role)
		}
	}
	a.everywhere = g.together(cluster, a.e)
	a.here = a.everywhere
	a.ways("", a.ownMask, a.mask)
	a.assumeGroups(any)
	list := slices.Sorted(maps.Keys(a.spaces))
	a.here = slices.Clone(a.everywhere)
	for _, ns := range list {
		in := a.spaces[ns]
		m := in.ownMask
		m.add(a.ownMask)
		if m.empty() {
			continue
		}
		a.enter(ns)
		a.ways(ns, m, in.mask)
		a.leaveSpace()
	}
	if changes {
		a.change(list)
	}
}

// together returns what roles allow, by ability. Subjects of one binding often hold the same roles:
// the last answer is cached. It must not be modified.
func (g *graph) together(roles []int32, e *effort) []names {
	if g.last.all != nil && slices.Equal(g.last.roles, roles) {
		return g.last.all
	}
	all := make([]names, len(g.book.list))
	for _, i := range roles {
		r := &g.roles[i]
		if !e.take(len(r.able)) {
			break
		}
		for i := range r.able {
			all[r.able[i].what] = all[r.able[i].what].or(r.able[i].names, e)
		}
	}
	if e.spent() {
		return all
	}
	g.last.roles, g.last.all = roles, all
	return all
}

// enter adds what RoleBindings of a namespace grant.
func (a *ask) enter(ns string) {
	in := a.spaces[ns]
	if in == nil {
		return
	}
	for _, i := range in.roles {
		r := &a.g.roles[i]
		if !a.e.take(len(r.able)) {
			return
		}
		for i := range r.able {
			what := r.able[i].what
			a.here[what] = a.here[what].or(r.able[i].names, a.e)
			a.touched = append(a.touched, what)
		}
	}
}

func (a *ask) leaveSpace() {
	for _, what := range a.touched {
		a.here[what] = a.everywhere[what]
	}
	a.touched = a.touched[:0]
}

// may returns what is allowed of any of the patterns in the current namespace.
func (a *ask) may(any []ability) names {
	var n names
	for _, what := range any {
		n = n.or(a.here[what], a.e)
	}
	return n
}

// ways links by every way for which the identity's own rights contribute a part, and the rights in
// this namespace another: what holds everywhere needs no second edge.
func (a *ask) ways(ns string, own, here mask) {
	if a.here[a.g.book.admin].all && !a.impersonates {
		l := link{from: a.assumed, to: goalAdmin, way: a.g.book.member, role: -1}
		switch {
		case ns != "" && !a.everywhere[a.g.book.admin].all:
			l.to = a.g.space(ns, atSpace)
			a.link(l)
		case ns == "" && !a.admin:
			a.link(l)
		}
	}
	if !a.e.take(len(a.g.book.ways)) {
		return
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
		if slices.ContainsFunc(w.wants[i].any, m.has) {
			return true
		}
	}
	return false
}

// passes reports whether all wants are met, for which targets, and by which chosen name.
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
			if choose = choose.and(n.named(), a.e); choose.none() {
				return reached, "", false
			}
		case target:
			if reached = reached.and(n.named(), a.e); reached.none() {
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
		a.link(l)
	}
	if !a.e.take(len(reached.some)) { // each is looked up
		return
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
					if a.e.spent() {
						return
					}
					to(g.vertexOf(vertex{at: one, a: i}))
				}
			}
		default:
			for _, n := range reached.some {
				if i, ok := g.at[identityKey{kubenames.ServiceAccount(ns, n), false}]; ok && g.ids[i].node.Kind == ServiceAccount {
					to(g.vertexOf(vertex{at: one, a: i}))
				}
			}
		}
	}
}

// assumeGroups links to groups: they are impersonated together with some user or service account,
// so that also takes a right to one.
func (a *ask) assumeGroups(any mask) {
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
		a.link(l)
		return
	}
	if !a.e.take(len(groups.some)) {
		return
	}
	for _, n := range groups.some {
		if i, ok := a.g.at[identityKey{n, true}]; ok {
			l.to = a.g.assumed(i)
			a.link(l)
		} else if n == Masters {
			l.to = goalMasters
			a.link(l)
		}
	}
}

// someAccount returns a service account that may be impersonated, in any namespace; an empty name
// stands for any of them.
func (a *ask) someAccount() (namespace, name string, ok bool) {
	what := a.g.book.impAccounts
	if n := a.everywhere[what].named(); !n.none() {
		return "", n.first(), true
	}
	if !a.e.take(len(a.own) + len(a.more)) {
		return "", "", false
	}
	for _, h := range slices.Concat(a.own, a.more) {
		if n := a.g.roles[h.role].able.of(what).named(); h.namespace != "" && !n.none() {
			return h.namespace, n.first(), true
		}
	}
	return "", "", false
}
