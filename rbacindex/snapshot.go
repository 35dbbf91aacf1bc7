package rbacindex

import (
	"fmt"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Snapshot is the RBAC policy of a cluster at one moment: immutable, indexed by subject and
// scope, safe for any number of concurrent readers, none of which ever waits. Apply makes
// the next one, which shares all that did not change.
//
// Objects given to New or Apply are retained, not copied: they must not be modified afterwards.
// Aggregated ClusterRoles count with their stored rules, as the authorizer counts them;
// aggregationRule is not evaluated.
type Snapshot struct {
	family  *family
	version uint64 // unique in the family
	stamps  stamps // which of what the family remembers is true here

	roles, clusterRoles               trie[*role]
	roleBindings, clusterRoleBindings trie[*binding]
	users, groups                     trie[*principal]
	roleUses, clusterRoleUses         trie[*uses]
	counts                            [KindClusterRoleBinding + 1]int
}

// Change is a write to one RBAC object. Object nil deletes it; otherwise it is the new
// content and its kind, namespace and name must be the key's.
type Change struct {
	Key    Key
	Object any
}

// Empty returns a Snapshot of a cluster without any RBAC object. Snapshots that descend from
// one New or Empty by Apply share one bounded cache.
func Empty() *Snapshot {
	return newFamily(defaultCacheBytes).empty()
}

func (f *family) empty() *Snapshot {
	serial := f.next()
	return &Snapshot{family: f, version: serial, stamps: newStamps(serial)}
}

// New builds a Snapshot of *rbacv1.Role, *rbacv1.ClusterRole, *rbacv1.RoleBinding and
// *rbacv1.ClusterRoleBinding objects. Another type, a namespaced object without namespace
// and two objects with one key are errors.
func New(objects ...any) (*Snapshot, error) {
	return newFamily(defaultCacheBytes).build(objects)
}

func (f *family) build(objects []any) (*Snapshot, error) {
	s := f.empty()
	var b bulk
	seen := make(map[Key]struct{}, len(objects))
	for _, o := range objects {
		k, err := KeyOf(o)
		if err != nil {
			return nil, fmt.Errorf("build snapshot: %w", err)
		}
		if _, twice := seen[k]; twice {
			return nil, fmt.Errorf("build snapshot: two objects with key %s", k)
		}
		seen[k] = struct{}{}
		s.counts[k.Kind]++
		b.add(o)
	}
	b.into(s)
	return s, nil
}

// Apply returns the Snapshot after the changes, made in the order given. The receiver stays
// valid. Deleting what is not there changes nothing. The cost is that of the changed objects,
// not of the policy: a binding costs its subjects, a role costs the same whether one binding
// names it or fifty thousand.
func (s *Snapshot) Apply(changes ...Change) (*Snapshot, error) {
	next := *s
	next.version = s.family.next()
	var t touched
	for _, c := range changes {
		if c.Object != nil {
			k, err := KeyOf(c.Object)
			if err != nil {
				return nil, fmt.Errorf("apply %s: %w", c.Key, err)
			}
			if k != c.Key {
				return nil, fmt.Errorf("apply %s: the object's key is %s", c.Key, k)
			}
		} else if c.Key.Kind < KindRole || c.Key.Kind > KindClusterRoleBinding {
			return nil, fmt.Errorf("apply %s: %w", c.Key, ErrUnsupportedObject)
		}
		next.apply(c, &t)
	}
	next.stamps = s.stamps.after(next.version, &t)
	return &next, nil
}

func (s *Snapshot) apply(c Change, t *touched) {
	h, k := s.family.hasher, c.Key
	switch k.Kind {
	case KindRole:
		t.role(s, k)
		s.roles = s.setRole(s.roles, k, c.Object)
	case KindClusterRole:
		t.role(s, k)
		s.clusterRoles = s.setRole(s.clusterRoles, k, c.Object)
	case KindRoleBinding:
		if old, ok := s.roleBindings.get(h, k.Namespace, k.Name); ok {
			s.roleBindings = s.roleBindings.without(h, k.Namespace, k.Name)
			s.unlink(old, t)
		}
		if rb, ok := c.Object.(*rbacv1.RoleBinding); ok {
			b := &binding{rb: rb}
			s.roleBindings = s.roleBindings.with(h, b)
			s.link(b, t)
		}
	case KindClusterRoleBinding:
		if old, ok := s.clusterRoleBindings.get(h, "", k.Name); ok {
			s.clusterRoleBindings = s.clusterRoleBindings.without(h, "", k.Name)
			s.unlink(old, t)
		}
		if crb, ok := c.Object.(*rbacv1.ClusterRoleBinding); ok {
			b := &binding{crb: crb}
			s.clusterRoleBindings = s.clusterRoleBindings.with(h, b)
			s.link(b, t)
		}
	}
}

func (s *Snapshot) setRole(t trie[*role], k Key, object any) trie[*role] {
	h := s.family.hasher
	_, had := t.get(h, k.Namespace, k.Name)
	if had {
		s.counts[k.Kind]--
	}
	switch o := object.(type) {
	case *rbacv1.Role:
		s.counts[k.Kind]++
		return t.with(h, &role{r: o})
	case *rbacv1.ClusterRole:
		s.counts[k.Kind]++
		return t.with(h, &role{cr: o})
	}
	if !had {
		return t
	}
	return t.without(h, k.Namespace, k.Name)
}

// link enters a binding under its subjects and its role.
func (s *Snapshot) link(b *binding, touch *touched) {
	h := s.family.hasher
	s.counts[b.key().Kind]++
	ns, _ := b.id()
	// Backwards, so that of equal subjects the first remains: it is the one reported.
	subjects := b.subjects()
	for i := len(subjects) - 1; i >= 0; i-- {
		name, group, ok := b.principal(&subjects[i])
		if !ok {
			continue
		}
		touch.principal(h, name, group)
		t := s.principals(group)
		p, found := t.get(h, "", name)
		if !found {
			p = &principal{name: name}
		}
		*t = t.with(h, p.with(h, ns, &ref{b: b, subject: int32(i)}))
	}
	if t := s.uses(b.roleKey().Kind); t != nil {
		k := b.roleKey()
		u, ok := t.get(h, k.Namespace, k.Name)
		if !ok {
			u = &uses{ns: k.Namespace, name: k.Name}
		}
		*t = t.with(h, u.with(h, b))
	}
}

// unlink undoes link.
func (s *Snapshot) unlink(b *binding, touch *touched) {
	h := s.family.hasher
	s.counts[b.key().Kind]--
	ns, bname := b.id()
	subjects := b.subjects()
	for i := range subjects {
		name, group, ok := b.principal(&subjects[i])
		if !ok {
			continue
		}
		touch.principal(h, name, group)
		t := s.principals(group)
		p, found := t.get(h, "", name)
		if !found {
			continue // an equal subject of the binding took it out
		}
		if p = p.without(h, ns, bname); p != nil {
			*t = t.with(h, p)
		} else {
			*t = t.without(h, "", name)
		}
	}
	k := b.roleKey()
	t := s.uses(k.Kind)
	if t == nil {
		return
	}
	if old, ok := t.get(h, k.Namespace, k.Name); ok {
		if u := old.without(h, b); u != nil {
			*t = t.with(h, u)
		} else {
			*t = t.without(h, k.Namespace, k.Name)
		}
	}
}

func (s *Snapshot) principals(group bool) *trie[*principal] {
	if group {
		return &s.groups
	}
	return &s.users
}

// uses returns the reverse index of a role kind, nil for kinds that RBAC does not know.
func (s *Snapshot) uses(kind Kind) *trie[*uses] {
	switch kind {
	case KindRole:
		return &s.roleUses
	case KindClusterRole:
		return &s.clusterRoleUses
	}
	return nil
}

// role returns the role of that key, nil if there is none.
func (s *Snapshot) role(k Key) *role {
	var r *role
	switch k.Kind {
	case KindRole:
		r, _ = s.roles.get(s.family.hasher, k.Namespace, k.Name)
	case KindClusterRole:
		r, _ = s.clusterRoles.get(s.family.hasher, "", k.Name)
	}
	return r
}

// Get returns the object of that key as it was given. The caller must not modify it.
func (s *Snapshot) Get(k Key) (any, bool) {
	h := s.family.hasher
	switch k.Kind {
	case KindRole, KindClusterRole:
		if r := s.role(k); r != nil {
			return r.object(), true
		}
	case KindRoleBinding:
		if b, ok := s.roleBindings.get(h, k.Namespace, k.Name); ok {
			return b.object(), true
		}
	case KindClusterRoleBinding:
		if b, ok := s.clusterRoleBindings.get(h, "", k.Name); ok {
			return b.object(), true
		}
	}
	return nil, false
}

// Len returns the number of objects by kind.
func (s *Snapshot) Len() (roles, clusterRoles, roleBindings, clusterRoleBindings int) {
	return s.counts[KindRole], s.counts[KindClusterRole], s.counts[KindRoleBinding], s.counts[KindClusterRoleBinding]
}

// All visits every object, in no particular order, until fn returns false.
func (s *Snapshot) All(fn func(k Key, object any) bool) {
	roles := func(kind Kind) func(*role) bool {
		return func(r *role) bool {
			ns, name := r.id()
			return fn(Key{Kind: kind, Namespace: ns, Name: name}, r.object())
		}
	}
	bindings := func(b *binding) bool { return fn(b.key(), b.object()) }
	_ = s.clusterRoles.all(roles(KindClusterRole)) &&
		s.roles.all(roles(KindRole)) &&
		s.clusterRoleBindings.all(bindings) &&
		s.roleBindings.all(bindings)
}

// ReferencingRole visits every binding whose roleRef names that role, whether the role
// exists or not, in no particular order, until fn returns false.
func (s *Snapshot) ReferencingRole(k Key, fn func(binding Key) bool) {
	t := s.uses(k.Kind)
	if t == nil {
		return
	}
	if k.Kind == KindClusterRole {
		k.Namespace = ""
	}
	if u, ok := t.get(s.family.hasher, k.Namespace, k.Name); ok {
		u.all(func(b *binding) bool { return fn(b.key()) })
	}
}

// Dangling visits every binding whose roleRef names a Role or ClusterRole that does not exist,
// in no particular order, until fn returns false.
func (s *Snapshot) Dangling(fn func(role, binding Key) bool) {
	visit := func(kind Kind) func(*uses) bool {
		return func(u *uses) bool {
			k := Key{Kind: kind, Namespace: u.ns, Name: u.name}
			return s.role(k) != nil || u.all(func(b *binding) bool { return fn(k, b.key()) })
		}
	}
	_ = s.clusterRoleUses.all(visit(KindClusterRole)) && s.roleUses.all(visit(KindRole))
}

// Names reports whether any binding names the user, or the group. A ServiceAccount is given by the
// user name its tokens carry.
func (s *Snapshot) Names(name string, group bool) bool {
	_, ok := s.principals(group).get(s.family.hasher, "", name)
	return ok
}

// family is what a lineage of snapshots shares: the hash seed, the cache of subjects and the
// inverted index of roles.
type family struct {
	hasher *hasher
	cache  cache
	serial atomic.Uint64
	tables *tables

	grantors atomic.Pointer[grantors] // the last that were made; nil before the first
}

// defaultCacheBytes bounds what a family remembers of subjects: about a hundred thousand
// ordinary ones.
const defaultCacheBytes = 64 << 20

func newFamily(cacheBytes int64) *family {
	f := &family{hasher: newHasher(), tables: newTables()}
	f.cache.init(cacheBytes)
	return f
}

// next returns a number that the family never returns again.
func (f *family) next() uint64 { return f.serial.Add(1) }
