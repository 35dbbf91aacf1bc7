package rbacindex

import rbacv1 "k8s.io/api/rbac/v1"

// bulk gathers objects for a whole Snapshot, so that every trie is built once, bottom up.
type bulk struct {
	roles, clusterRoles               []*role
	roleBindings, clusterRoleBindings []*binding
	users, groups                     map[string]*gathered
	roleUses                          map[Key][]*binding
}

// gathered is what a principal is built from.
type gathered struct {
	cluster []*ref
	spaces  map[string][]*ref
}

func (b *bulk) add(object any) {
	switch o := object.(type) {
	case *rbacv1.Role:
		b.roles = append(b.roles, &role{r: o})
	case *rbacv1.ClusterRole:
		b.clusterRoles = append(b.clusterRoles, &role{cr: o})
	case *rbacv1.RoleBinding:
		n := &binding{rb: o}
		b.roleBindings = append(b.roleBindings, n)
		b.link(n)
	case *rbacv1.ClusterRoleBinding:
		n := &binding{crb: o}
		b.clusterRoleBindings = append(b.clusterRoleBindings, n)
		b.link(n)
	}
}

func (b *bulk) link(n *binding) {
	if b.users == nil {
		b.users, b.groups = make(map[string]*gathered), make(map[string]*gathered)
		b.roleUses = make(map[Key][]*binding)
	}
	ns, _ := n.id()
	subjects := n.subjects()
	for i := range subjects {
		name, group, ok := n.principal(&subjects[i])
		if !ok {
			continue
		}
		m := b.users
		if group {
			m = b.groups
		}
		g := m[name]
		if g == nil {
			g = &gathered{}
			m[name] = g
		}
		if ns == "" {
			g.cluster = appendFirst(g.cluster, n, i)
			continue
		}
		if g.spaces == nil {
			g.spaces = make(map[string][]*ref, 1)
		}
		g.spaces[ns] = appendFirst(g.spaces[ns], n, i)
	}
	if k := n.roleKey(); k.Kind != 0 {
		b.roleUses[k] = append(b.roleUses[k], n)
	}
}

// appendFirst appends subject i of b unless an earlier subject of the same binding is there:
// bindings come one after the other, so that it would be the last.
func appendFirst(refs []*ref, b *binding, i int) []*ref {
	if n := len(refs); n > 0 && refs[n-1].b == b {
		return refs
	}
	return append(refs, &ref{b: b, subject: int32(i)})
}

func (b *bulk) into(s *Snapshot) {
	h := s.family.hasher
	s.roles = buildTrie(h, b.roles)
	s.clusterRoles = buildTrie(h, b.clusterRoles)
	s.roleBindings = buildTrie(h, b.roleBindings)
	s.clusterRoleBindings = buildTrie(h, b.clusterRoleBindings)
	s.users = buildPrincipals(h, b.users)
	s.groups = buildPrincipals(h, b.groups)
	var ru, cu []*uses
	for k, bindings := range b.roleUses {
		u := buildUses(h, k, bindings)
		if k.Kind == KindRole {
			ru = append(ru, u)
		} else {
			cu = append(cu, u)
		}
	}
	s.roleUses, s.clusterRoleUses = buildTrie(h, ru), buildTrie(h, cu)
}

func buildUses(h *hasher, role Key, bindings []*binding) *uses {
	u := &uses{ns: role.Namespace, name: role.Name}
	var cluster []*binding
	var spaces map[string][]*binding
	for _, b := range bindings {
		ns, _ := b.id()
		if ns == "" {
			cluster = append(cluster, b)
			continue
		}
		if spaces == nil {
			spaces = make(map[string][]*binding, 1)
		}
		spaces[ns] = append(spaces[ns], b)
	}
	u.cluster = buildFew(h, cluster)
	in := make([]*usesSpace, 0, len(spaces))
	for _, list := range spaces {
		in = append(in, &usesSpace{bindings: buildFew(h, list)})
	}
	u.spaces = buildFew(h, in)
	return u
}

func buildPrincipals(h *hasher, m map[string]*gathered) trie[*principal] {
	out := make([]*principal, 0, len(m))
	for name, g := range m {
		p := &principal{name: name, cluster: buildFew(h, g.cluster)}
		if len(g.spaces) > 0 {
			spaces := make([]*space, 0, len(g.spaces))
			for ns, refs := range g.spaces {
				spaces = append(spaces, &space{ns: ns, refs: buildFew(h, refs)})
			}
			p.spaces = buildFew(h, spaces)
		}
		out = append(out, p)
	}
	return buildTrie(h, out)
}
