package rbacindex

import "sync/atomic"

// grantors is the inverted index of the policy's roles: from the attributes of a request to the
// roles that allow it. It is built by the first query that needs it and kept by the family: one for
// all versions whose roles are nearly the same.
//
// A version whose roles differ in a few is answered from the tables of another: roles that are gone
// or were replaced are recognized by looking up the ones found, and newer ones are evaluated one by
// one. So bindings may change forever, and roles now and then, without rebuilding any table.
type grantors struct {
	of roleSet // the roles this answers for

	cluster *several            // ClusterRoles
	spaces  map[string]*several // Roles, by namespace
	roles   *several            // Roles of all namespaces
	made    roleSet             // the roles the tables were made of
	size    int                 // how many
	newer   []*role             // in of and not in made
}

// roleSet is the roles of a version. Versions that share all roles share the tries.
type roleSet struct{ roles, clusterRoles trie[*role] }

// several is roles with one table for all of them, compiled on first use.
type several struct {
	list  []*role
	table atomic.Pointer[table]
}

// compiled returns the table. Two readers may compile at the same time; either table stays.
func (s *several) compiled(f *family) *table {
	if t := s.table.Load(); t != nil {
		return t
	}
	t := f.tables.make(f.hasher, s.list, maxEntries/2)
	s.table.Store(t)
	return t
}

// newerRoles bounds the roles that are evaluated one by one, besides a share of all.
const newerRoles = 64

// grantors returns the snapshot's.
func (s *Snapshot) grantors() *grantors {
	of := roleSet{s.roles, s.clusterRoles}
	g := s.family.grantors.Load()
	if g != nil && g.of == of {
		return g
	}
	if g != nil {
		limit := newerRoles + g.size/64
		var newer []*role
		add := func(r *role) bool {
			newer = append(newer, r)
			return len(newer) <= limit
		}
		h := s.family.hasher
		if of.clusterRoles.beside(h, g.made.clusterRoles, add) && of.roles.beside(h, g.made.roles, add) {
			c := *g
			c.of, c.newer = of, newer
			s.family.grantors.Store(&c)
			return &c
		}
	}
	g = &grantors{of: of, made: of, cluster: &several{}, roles: &several{}, spaces: map[string]*several{}}
	of.clusterRoles.all(func(r *role) bool {
		g.cluster.list = append(g.cluster.list, r)
		return true
	})
	of.roles.all(func(r *role) bool {
		g.roles.list = append(g.roles.list, r)
		ns, _ := r.id()
		in := g.spaces[ns]
		if in == nil {
			in = &several{}
			g.spaces[ns] = in
		}
		in.list = append(in.list, r)
		return true
	})
	g.size = len(g.cluster.list) + len(g.roles.list)
	s.family.grantors.Store(g)
	return g
}

// allowing visits every role that allows the request and the first of its rules that does:
// ClusterRoles, and the Roles of the namespace or of all of them.
func (s *Snapshot) allowing(q *query, namespace string, everywhere bool, visit func(r *role, rule int32)) {
	h := s.family.hasher
	g := s.grantors()
	ask := func(from *several, current func(*role) bool) {
		t := from.compiled(s.family)
		if t.has&q.shapes == 0 {
			return
		}
		q.match(t, func(i, rule int32) {
			if r := t.roles[i]; current(r) {
				visit(r, rule)
			}
		})
	}
	ask(g.cluster, func(r *role) bool {
		now, _ := s.clusterRoles.get(h, "", r.cr.Name)
		return now == r
	})
	if from := g.roles; everywhere || namespace != "" {
		if !everywhere {
			from = g.spaces[namespace]
		}
		if from != nil {
			ask(from, func(r *role) bool {
				now, _ := s.roles.get(h, r.r.Namespace, r.r.Name)
				return now == r
			})
		}
	}
	for _, r := range g.newer {
		if r.r != nil && !everywhere && (namespace == "" || r.r.Namespace != namespace) {
			continue
		}
		q.match(r.compiled(s.family), func(_, rule int32) { visit(r, rule) })
	}
}
