package rbacindex

import (
	"cmp"
	"slices"
	"strings"
)

// scope is what one subject holds in one scope: through ClusterRoleBindings, or through the
// RoleBindings of one namespace. It is immutable.
type scope struct {
	units []unit // one per role, ordered by role kind and name
	refs  []*ref // the bindings of all units
	parts []part // the tables to ask

	merged *table // the table made for this scope, nil when those of the roles serve

	// missing and unsupported are the evaluation errors of the scope. In the scope of a
	// namespace those of the cluster scope are included, so that a Result needs no copy.
	missing     []Key
	unsupported []string

	// Room for the ordinary subject: with thousands of subjects taking turns a decision is as
	// quick as it has few places in memory to wait for.
	room struct {
		units [1]unit
		refs  [1]*ref
		parts [2]part
	}
}

// unit is one role and the subject's bindings to it, refs[from:to] of the scope.
type unit struct {
	role     *role
	from, to int32
}

// part is a table over the units from first on, in order.
type part struct {
	table *table
	first int32
}

// maxParts is how many roles of a scope are asked one by one, with the tables they share with
// everybody else. A subject with more gets a table of its own: asking costs the same for two
// hundred roles as for one, at the price of compiling it once.
const maxParts = 4

// gatherer collects the bindings of a subject.
type gatherer struct {
	s     *Snapshot
	refs  []*ref
	older *scope // of the same subject in an earlier version, may be nil
}

// scope makes out the scope of the refs gathered. base is the cluster scope when out is that
// of a namespace.
func (g *gatherer) scope(out, base *scope) {
	if base != nil {
		out.missing, out.unsupported = slices.Clip(base.missing), slices.Clip(base.unsupported)
	}
	if len(g.refs) == 0 {
		return
	}
	slices.SortFunc(g.refs, compareRefs)
	// A binding may name the subject several times, as a user and by groups. The first of
	// its subjects that matches is the one reported.
	out.refs = slices.CompactFunc(g.refs, func(a, b *ref) bool { return a.b == b.b })
	if len(out.refs) == 1 {
		out.room.refs[0] = out.refs[0]
		out.refs = out.room.refs[:]
	}
	out.units = out.room.units[:0]
	for i := 0; i < len(out.refs); {
		k := out.refs[i].b.roleKey()
		to := i + 1
		for to < len(out.refs) && sameRole(out.refs[i].b, out.refs[to].b) {
			to++
		}
		switch r := g.s.role(k); {
		case r != nil:
			out.units = append(out.units, unit{role: r, from: int32(i), to: int32(to)})
		case k.Kind == 0:
			out.unsupported = appendNew(out.unsupported, out.refs[i].b.roleRef().Kind)
		default:
			out.missing = appendNew(out.missing, k)
		}
		i = to
	}
	out.missing, out.unsupported = slices.Clip(out.missing), slices.Clip(out.unsupported)
	out.compile(g.s.family.hasher, g.older)
}

func appendNew[T comparable](s []T, v T) []T {
	if slices.Contains(s, v) {
		return s
	}
	return append(s, v)
}

// compile chooses the tables. older is a scope whose table may be taken over if it was made
// of the same roles.
func (sc *scope) compile(h *hasher, older *scope) {
	sc.parts = sc.room.parts[:0]
	resources, paths := 0, 0
	for i, u := range sc.units {
		t := u.role.compiled(h)
		if t.has == 0 {
			continue
		}
		if t.has&shapesOfResources != 0 {
			resources++
		}
		if t.has&shapesOfPaths != 0 {
			paths++
		}
		sc.parts = append(sc.parts, part{table: t, first: int32(i)})
	}
	if max(resources, paths) <= maxParts {
		return
	}
	if older != nil && older.merged != nil && slices.EqualFunc(older.merged.roles, sc.units,
		func(r *role, u unit) bool { return r == u.role }) {
		sc.merged = older.merged
	} else {
		roles := make([]*role, len(sc.units))
		for i, u := range sc.units {
			roles[i] = u.role
		}
		sc.merged = compile(h, roles)
	}
	sc.parts = []part{{table: sc.merged}}
}

// compareRefs orders by role kind, role name, binding name, subject. Bindings of one scope
// have distinct names, and a Role is one of the binding's namespace.
func compareRefs(a, b *ref) int {
	ra, rb := a.b.roleRef(), b.b.roleRef()
	if c := strings.Compare(ra.Kind, rb.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(ra.Name, rb.Name); c != 0 {
		return c
	}
	_, na := a.b.id()
	_, nb := b.b.id()
	if c := strings.Compare(na, nb); c != 0 {
		return c
	}
	return cmp.Compare(a.subject, b.subject)
}

func sameRole(a, b *binding) bool {
	ra, rb := a.roleRef(), b.roleRef()
	return ra.Kind == rb.Kind && ra.Name == rb.Name
}

// grants appends a grant for every binding of the scope that allows the request.
func (sc *scope) grants(q *query, dst []Grant) []Grant {
	for i := range sc.parts {
		p := &sc.parts[i]
		if p.table.has&q.shapes == 0 {
			continue
		}
		q.match(p.table, func(role, rule int32) {
			u := &sc.units[p.first+role]
			for _, r := range sc.refs[u.from:u.to] {
				dst = append(dst, Grant{ref: r, rule: rule})
			}
		})
	}
	return dst
}
