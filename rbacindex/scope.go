package rbacindex

import (
	"cmp"
	"slices"
	"strings"
)

// scope is what one subject holds in one scope: through ClusterRoleBindings, or through the
// RoleBindings of one namespace. It is immutable.
type scope struct {
	units []bound // one per role, ordered by role kind and name
	refs  []*ref  // the bindings of all units

	// errs are the evaluation errors of the scope, nil if there are none. In the scope of a
	// namespace those of the cluster scope are included, so that a Result needs no copy.
	errs   *evaluation
	merged *table // made of the roles of all units, in order; nil when their own tables serve
}

// copied makes out a copy of the scope, with short lists in the room that out has.
func (sc *scope) copied(out *scope) {
	units, refs := out.units[:0], out.refs[:0]
	*out = *sc
	if len(sc.units) <= cap(units) {
		out.units = append(units, sc.units...)
	}
	if len(sc.refs) <= cap(refs) {
		out.refs = append(refs, sc.refs...)
	}
}

// evaluation is what could not be evaluated: roles that do not exist and kinds that RBAC does
// not know, each once.
type evaluation struct {
	missing     []Key
	unsupported []string
}

// result returns the answer when the scope is the last that was asked.
func (sc *scope) result(grants []Grant) Result {
	r := Result{Allowed: len(grants) > 0, Grants: grants}
	if sc.errs != nil {
		r.Missing, r.unsupported = sc.errs.missing, sc.errs.unsupported
	}
	return r
}

// bound is one role, by its table, and the subject's bindings to it, refs[from:to] of the scope.
type bound struct {
	table    *table
	from, to int32
}

func (b *bound) role() *role { return b.table.roles[0] }

// maxParts is how many roles of a scope are evaluated one by one, with the tables they share with
// all subjects. A subject with more gets its own table: a decision then costs the same for two
// hundred roles as for one, at the price of compiling the table once.
const maxParts = 4

// gatherer collects the bindings of a subject.
type gatherer struct {
	s     *Snapshot
	steps *Steps
	refs  []*ref
	fresh int // entries of tables made
}

// maxFresh is how many entries of tables are made while one subject is met. Roles beyond it are
// gone through as they are written, for this subject and until a change concerns it.
const maxFresh = 1 << 15

// table returns the table of a role.
func (g *gatherer) table(r *role) *table {
	if t := r.table.Load(); t != nil {
		return t
	}
	if g.fresh >= maxFresh {
		return compile(g.s.family.hasher, []*role{r}, 0)
	}
	t := r.compiled(g.s.family)
	g.fresh += t.entries
	g.steps.take(stepsAnEntry * t.entries)
	return t
}

// Steps it takes to sort a binding of a subject in among its others, and to make an entry of a
// table.
const (
	stepsABinding = 8
	stepsAnEntry  = 4
)

// sorts takes the steps for sorting the bindings gathered, those of crowds only; false if there
// are not as many.
func (g *gatherer) sorts() bool {
	return len(g.refs) <= 64 || g.steps.take(stepsABinding*len(g.refs))
}

// scope fills in out, which may have room for short lists, with the scope of the refs gathered.
// base is the cluster scope if out is that of a namespace.
func (g *gatherer) scope(out, base *scope) {
	var errs, of evaluation // of base
	if base != nil && base.errs != nil {
		of = *base.errs
		out.errs = base.errs
		errs = evaluation{slices.Clip(base.errs.missing), slices.Clip(base.errs.unsupported)}
	}
	if len(g.refs) == 0 {
		return
	}
	sortRefs(g.refs)
	// A binding may name the subject several times, as a user and by groups. The first of
	// its subjects that matches is the one reported.
	refs := slices.CompactFunc(g.refs, func(a, b *ref) bool { return a.b == b.b })
	if len(refs) <= cap(out.refs) {
		refs = append(out.refs[:0], refs...)
	}
	out.refs = refs
	for i := 0; i < len(out.refs); {
		k := out.refs[i].b.roleKey()
		to := i + 1
		for to < len(out.refs) && sameRole(out.refs[i].b, out.refs[to].b) {
			to++
		}
		switch r := g.s.role(k); {
		case r != nil:
			out.units = append(out.units, bound{table: g.table(r), from: int32(i), to: int32(to)})
		case k.Kind == 0:
			errs.unsupported = appendNew(errs.unsupported, out.refs[i].b.roleRef().Kind, of.unsupported, strings.Compare)
		default:
			errs.missing = appendNew(errs.missing, k, of.missing, compareRoleKeys)
		}
		i = to
	}
	if len(errs.missing)+len(errs.unsupported) > 0 {
		out.errs = &evaluation{slices.Clip(errs.missing), slices.Clip(errs.unsupported)}
	}
	out.merge(g)
}

// appendNew appends what is neither the last nor in the known ones. Bindings come ordered by role
// kind and name, and so does what is found with them: thousands that name nothing must not be
// compared with each other.
func appendNew[T comparable](s []T, v T, known []T, compare func(a, b T) int) []T {
	if len(s) > 0 && s[len(s)-1] == v {
		return s
	}
	if _, found := slices.BinarySearchFunc(known, v, compare); found {
		return s
	}
	return append(s, v)
}

// compareRoleKeys orders the keys of one scope's roles as compareRefs orders bindings to them.
func compareRoleKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Kind.String(), b.Kind.String()), strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace,
		b.Namespace))
}

// merge builds the table of a scope that needs one. If it would be large the roles' own tables are
// used one after the other.
func (sc *scope) merge(g *gatherer) {
	resources, paths, entries := 0, 0, 0
	for i := range sc.units {
		has := sc.units[i].table.has
		entries += sc.units[i].table.entries
		if has&shapesOfResources != 0 {
			resources++
		}
		if has&shapesOfPaths != 0 {
			paths++
		}
	}
	if entries > maxMergedEntries {
		return
	}
	if max(resources, paths) > maxParts || len(sc.units) > 4*maxParts {
		sc.merged = g.s.family.merge(sc.units)
		g.steps.take(stepsAnEntry * entries)
	}
}

// merge returns a table of the roles of the units: an existing one of a subject with the same
// roles, or a new one.
func (f *family) merge(units []bound) *table {
	hash := uint64(0)
	for _, u := range units {
		_, name := u.role().id()
		hash = mix(hash, f.hasher.str(name))
	}
	if t := f.cache.merged(hash).Load(); t != nil && slices.EqualFunc(t.roles, units, func(r *role, u bound) bool {
		return r == u.role()
	}) {
		return t
	}
	roles := make([]*role, len(units))
	for i, u := range units {
		roles[i] = u.role()
	}
	t := compile(f.hasher, roles, int(min(2*maxMergedEntries, f.tables.room)))
	t.merged, t.bytes = hash, t.size()
	return t
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

// sortRefs sorts as compareRefs does. What long lists are sorted by lies all over the memory, and is gathered first.
func sortRefs(refs []*ref) {
	if len(refs) <= 256 {
		slices.SortFunc(refs, compareRefs)
		return
	}
	type sorted struct {
		kind, role, name string
		*ref
	}
	list := make([]sorted, len(refs))
	for i, r := range refs {
		rr := r.b.roleRef()
		_, name := r.b.id()
		list[i] = sorted{rr.Kind, rr.Name, name, r}
	}
	slices.SortFunc(list, func(a, b sorted) int {
		if c := strings.Compare(a.kind, b.kind); c != 0 {
			return c
		}
		if c := strings.Compare(a.role, b.role); c != 0 {
			return c
		}
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return cmp.Compare(a.subject, b.subject)
	})
	for i := range list {
		refs[i] = list[i].ref
	}
}

func sameRole(a, b *binding) bool {
	ra, rb := a.roleRef(), b.roleRef()
	return ra.Kind == rb.Kind && ra.Name == rb.Name
}

// grants appends a grant for every binding of the scope that allows the request.
func (sc *scope) grants(q *query, dst []Grant) []Grant {
	if t := sc.merged; t != nil {
		if t.has&q.shapes != 0 {
			q.match(t, func(role, rule int32) {
				u := &sc.units[role]
				if !q.takes(int(u.to - u.from)) {
					return
				}
				for _, r := range sc.refs[u.from:u.to] {
					dst = append(dst, Grant{ref: r, rule: rule})
				}
			})
		}
		return dst
	}
	for i := range sc.units {
		u := &sc.units[i]
		if u.table.has&q.shapes == 0 {
			continue
		}
		if q.costly {
			break
		}
		q.match(u.table, func(_, rule int32) {
			if !q.takes(int(u.to - u.from)) {
				return
			}
			for _, r := range sc.refs[u.from:u.to] {
				dst = append(dst, Grant{ref: r, rule: rule})
			}
		})
	}
	return dst
}
