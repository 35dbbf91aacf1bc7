package escalation

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// manner is how an object is written.
type manner uint8

const (
	byCreate manner = iota // POST, without a name in the URL
	byApply                // a PATCH or PUT that creates the object: takes create by that name too
	byChange               // a PATCH or PUT of an existing object
	byFresh                // escalate: a new role, and a new binding to it
)

// writes are the verbs on one kind of object.
type writes struct{ create, update, patch ability }

func (a *ask) writing(w writes) writable {
	return writable{create: a.here[w.create], change: a.here[w.update].or(a.here[w.patch], a.e).named(), e: a.e}
}

// writable is what may be written of one kind of object.
type writable struct {
	create, change names
	e              *effort
}

// make reports whether a new object can be created, under any name or under one.
func (w *writable) make(name string) (manner, names, bool) {
	if w.create.has("") {
		return byCreate, names{all: true}, true
	}
	n := w.create.named().and(w.change, w.e)
	if name != "" && !n.has(name) {
		return 0, n, false
	}
	return byApply, n, !n.none()
}

func (b *rulebook) clusterBindings() writes { return writes{b.crbCreate, b.crbUpdate, b.crbPatch} }
func (b *rulebook) roleBindings() writes    { return writes{b.rbCreate, b.rbUpdate, b.rbPatch} }
func (b *rulebook) clusterRoles() writes    { return writes{b.crCreate, b.crUpdate, b.crPatch} }
func (b *rulebook) plainRoles() writes      { return writes{b.roleCreate, b.roleUpdate, b.rolePatch} }

// change links by the ways that change the policy: binding a role to oneself, and rewriting a role
// one has. For rights that the subject already holds the apiserver allows both without further
// rights; that leads nowhere.
func (a *ask) change(spaces []string) {
	if a.everywhere[a.g.book.admin].all {
		return // there is nothing more
	}
	a.here = slices.Clone(a.everywhere)
	f := finder{seen: map[holding]bool{}, escalates: a.escalates()}
	a.bindable("", &f)
	a.rewrite("")
	switch every, some := a.everySpace(); {
	case every:
		spaces = nil
	case some:
		spaces = a.g.spaces
	}
	for _, ns := range spaces {
		if !a.e.take(linkSteps) {
			break
		}
		a.enter(ns)
		a.bindable(ns, &f)
		a.rewrite(ns)
		a.leaveSpace()
	}
	roles := f.roles
	if len(roles) == 0 || !a.e.take(4*(len(a.own)+len(a.more)+len(a.bound)+2*len(roles))) {
		return
	}
	g := a.g
	var own []holding
	for _, r := range roles {
		own = append(own, r.holding)
	}
	n := g.newStack(stack{roles: roles})
	held, assumed := int32(-1), g.vertexOf(vertex{at: atBoundAssumed, a: n})
	g.link(link{from: a.assumed, to: assumed, way: g.book.bind, role: -1})
	if a.held >= 0 {
		held = g.vertexOf(vertex{at: atBound, a: n})
		g.link(link{from: a.held, to: held, way: g.book.bind, role: -1})
		g.member(held, assumed)
	}
	g.leave(a.e, a.who, held, assumed, own, slices.Concat(a.own, a.more), slices.Concat(a.bound, own))
}

// finder collects the roles that may be bound.
type finder struct {
	roles     []boundRole
	seen      map[holding]bool // roles, and what is held when the first is found
	escalates bool             // rewriting a role may be allowed somewhere
}

// gather adds a role that is of use and not held yet.
func (a *ask) gather(f *finder, r boundRole) {
	of := &a.g.roles[r.role]
	if of.mask.empty() && !of.open && !f.escalates {
		return
	}
	if len(f.seen) == 0 {
		if !a.e.take(len(a.own) + len(a.more)) {
			return
		}
		for _, h := range slices.Concat(a.own, a.more) {
			f.seen[h] = true
		}
	}
	if !f.seen[r.holding] && a.e.take(roleSteps) {
		f.seen[r.holding] = true
		f.roles = append(f.roles, r)
	}
}

// end returns the vertex of an identity with all rights in a scope.
func (g *graph) end(ns string) int32 {
	if ns == "" {
		return goalAdmin
	}
	return g.space(ns, atSpace)
}

// everySpace examines what may be bound in every namespace by rights that hold everywhere. If that
// includes a role with all rights it links to all rights in all of them at once, otherwise it
// reports whether each has to be examined.
func (a *ask) everySpace() (every, some bool) {
	g, b := a.g, a.g.book
	w := a.writing(b.roleBindings())
	clusterRoles, roles := a.here[b.bindCluster].named(), a.here[b.bindRole].named()
	if w.create.none() && w.change.none() || clusterRoles.none() && roles.none() {
		return false, false
	}
	by, under, makes := w.make("")
	l := link{from: a.assumed, to: g.vertexOf(vertex{at: atEverySpace}), ns: everySpace, name: under.first(), role: -1, by: by}
	if !a.e.take(len(g.admins)) {
		return false, false
	}
	for _, i := range g.admins {
		if makes && clusterRoles.has(g.roles[i].key.Name) {
			l.way, l.role = b.bind, i
			a.link(l)
			return true, true
		}
	}
	rw := a.writing(b.plainRoles())
	if makes && roles.all && rw.create.has("") && a.here[b.escRole].has("") {
		l.way, l.by = b.escalate, byFresh
		a.link(l)
		return true, true
	}
	return false, true
}

// bindable links to all rights in a scope if a role with all of them may be bound there, and
// collects the other roles that may be bound and are not held yet.
func (a *ask) bindable(ns string, f *finder) {
	g, b := a.g, a.g.book
	w := a.writing(b.clusterBindings())
	if ns != "" {
		w = a.writing(b.roleBindings())
	}
	clusterRoles, roles := a.here[b.bindCluster].named(), names{}
	if ns != "" {
		roles = a.here[b.bindRole].named()
	}
	if clusterRoles.none() && roles.none() || w.create.none() && w.change.none() {
		return
	}
	by, fresh, makes := w.make("")
	var may []boundRole
	add := func(i int32, by manner, name string) { may = append(may, boundRole{holding{ns, i}, by, name}) }
	if makes {
		each := func(n names, kind rbacindex.Kind, space string) {
			switch {
			case n.all && space == "" && g.admin >= 0:
				add(g.admin, by, fresh.first())
			case n.all && a.e.take(len(g.in[space])):
				for _, i := range g.in[space] {
					add(i, by, fresh.first())
				}
			}
			for _, name := range n.some {
				if !a.e.take(1) {
					return
				}
				k := rbacindex.Key{Kind: kind, Namespace: space, Name: name}
				i, ok := g.known[k]
				if !ok && f.escalates {
					i, ok = a.role(k)
				}
				if ok {
					add(i, by, fresh.first())
				}
			}
		}
		each(clusterRoles, rbacindex.KindClusterRole, "")
		if ns != "" {
			each(roles, rbacindex.KindRole, ns)
		}
	} else {
		for _, r := range a.taken(ns, w.change) {
			n := clusterRoles
			k := g.roles[r.role].key
			if k.Kind == rbacindex.KindRole {
				n = roles
			}
			if n.has(k.Name) {
				may = append(may, r)
			}
		}
	}
	for _, r := range may {
		if g.roles[r.role].admin {
			a.link(link{from: a.assumed, to: g.end(ns), way: b.bind, ns: ns, name: r.name, role: r.role, by: r.by})
			return // all rights there: the others add nothing
		}
	}
	for _, r := range may {
		a.gather(f, r)
	}
}

// escalates reports whether rewriting roles may be allowed anywhere.
func (a *ask) escalates() bool {
	b := a.g.book
	if !a.e.take(len(a.own) + len(a.more)) {
		return false
	}
	return slices.ContainsFunc(slices.Concat(a.own, a.more), func(h holding) bool {
		m := a.g.roles[h.role].mask
		return m.has(b.escCluster) || m.has(b.escRole)
	})
}

// role returns a role's number; a new one gets one while the graph is built.
func (a *ask) role(k rbacindex.Key) (int32, bool) {
	if i, ok := a.g.known[k]; ok {
		return i, true
	}
	if len(a.g.base.vertices) > 0 || !a.e.take(roleSteps) {
		return 0, false
	}
	return a.g.roleOf(k), true
}

// taken returns the roles of existing bindings that may be changed: their subjects can be, the role
// they name cannot.
func (a *ask) taken(ns string, change names) []boundRole {
	g := a.g
	var out []boundRole
	if change.all {
		if !a.e.take(4 * len(g.bound[ns])) { // they are sorted
			return nil
		}
		for i := range g.bound[ns] {
			out = append(out, boundRole{holding{ns, i}, byChange, ""})
		}
		slices.SortFunc(out, func(x, y boundRole) int { return g.roles[x.role].key.Compare(g.roles[y.role].key) })
		return out
	}
	for _, name := range change.some {
		if !a.e.take(1) {
			break
		}
		k := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: name}
		if ns != "" {
			k = rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: ns, Name: name}
		}
		o, ok := g.rbac.Get(k)
		if !ok {
			continue
		}
		_, ref, _ := rbacindex.BindingOf(o)
		if of, ok := roleOfBinding(&ref, ns); ok {
			if i, known := g.known[of]; known {
				out = append(out, boundRole{holding{ns, i}, byChange, name})
			}
		}
	}
	return out
}

// roleOfBinding returns the role a binding in a namespace names; ok is false for an unknown kind.
func roleOfBinding(ref *rbacv1.RoleRef, ns string) (k rbacindex.Key, ok bool) {
	k = rbacindex.RoleKey(ref, ns)
	return k, k.Kind == rbacindex.KindClusterRole || k.Kind == rbacindex.KindRole && ns != ""
}

// rewrite links to all rights where a role that is held may be given them: ClusterRoles by rights
// that hold everywhere, Roles by those of their namespace.
func (a *ask) rewrite(ns string) {
	g, b := a.g, a.g.book
	w, may, kind := a.writing(b.clusterRoles()), a.here[b.escCluster], rbacindex.KindClusterRole
	if ns != "" {
		w, may, kind = a.writing(b.plainRoles()), a.here[b.escRole], rbacindex.KindRole
	}
	if may.none() || w.create.none() && w.change.none() {
		return
	}
	done := map[int32]bool{}
	try := func(h holding) {
		r := &g.roles[h.role]
		to := g.end(h.namespace)
		if r.key.Kind != kind || r.key.Namespace != ns || done[to] {
			return
		}
		name := r.key.Name
		l := link{from: a.assumed, to: to, way: b.escalate, ns: ns, role: h.role, by: byChange}
		switch {
		case r.exists && w.change.has(name) && may.named().has(name):
		case r.exists:
			return
		case w.create.has("") && may.has(""):
			l.by = byCreate
		case w.create.has(name) && w.change.has(name) && may.named().has(name):
			l.by = byApply
		default:
			return
		}
		done[to] = true
		a.link(l)
	}
	if ns != "" { // only RoleBindings there name Roles of a namespace
		if in := a.spaces[ns]; in != nil && a.e.take(len(in.roles)) {
			for _, i := range in.roles {
				try(holding{ns, i})
			}
		}
	} else if a.e.take(len(a.own) + len(a.more)) {
		for _, h := range slices.Concat(a.own, a.more) {
			try(h)
		}
	}
	a.renew(ns, w, may)
}

// renew links where a new role with all rights may be created and then bound.
func (a *ask) renew(ns string, w writable, may names) {
	b, kind := a.g.book, rbacindex.KindClusterRole
	bindings, bind := a.writing(b.clusterBindings()), a.here[b.bindCluster]
	if ns != "" {
		bindings, bind, kind = a.writing(b.roleBindings()), a.here[b.bindRole], rbacindex.KindRole
	}
	_, under, makes := bindings.make("")
	if !makes {
		return
	}
	l := link{from: a.assumed, to: a.g.end(ns), way: b.escalate, ns: ns, name: under.first(), role: -1, by: byFresh}
	fresh := w.create.named().and(w.change, a.e).and(may.named(), a.e)
	if w.create.has("") && may.has("") {
		fresh = names{all: true}
	}
	if fresh = fresh.and(bind.named(), a.e); fresh.all {
		a.link(l)
		return
	}
	for _, name := range fresh.some {
		if !a.e.take(1) {
			return
		}
		i, ok := a.role(rbacindex.Key{Kind: kind, Namespace: ns, Name: name})
		if ok && !a.g.roles[i].exists {
			l.role = i
			a.link(l)
			return
		}
	}
}
