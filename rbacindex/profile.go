package rbacindex

import (
	"strings"
	"sync/atomic"
)

// entry is something a Snapshot worked out about a subject, a user name and its groups: what
// it holds cluster-wide, or (ns set) what it holds in one namespace. Entries are immutable
// but for the marks of the cache.
type entry struct {
	hash, tag uint64
	version   uint64 // the stamp of the subject in the snapshots it is true for
	size      int64  // bytes, estimated
	id        uint64 // unique; namespace entries name their subject's entry by it
	subject   uint64 // id of the subject's entry, 0 in a subject's entry itself

	user   string
	groups []string
	ns     string

	scope  *scope       // own; nil in a namespace where no binding names the subject
	spaces []*principal // subject's entry: principals that RoleBindings name

	kept bool // it went into the cache
	gone bool // and out again; the cache's writers only
	used atomic.Bool

	own scope
}

// hashSubject hashes a user and its groups. Of many groups only some are looked at: the
// comparison with the entry found decides, and looks at all of them. name is the hash of the
// user alone.
func (h *hasher) hashSubject(user string, groups []string) (hash, name uint64) {
	name = h.str(user)
	x := mix(uint64(len(groups)), name)
	step := 1
	if len(groups) > 8 {
		step = len(groups) / 8
	}
	for i := 0; i < len(groups); i += step {
		x = mix(x, h.str(groups[i]))
	}
	return x & h.keep, name
}

// sameGroups compares eight bytes at a time, in place: with two hundred groups of a dozen
// bytes the calls to the runtime's comparison would be the larger part of a decision.
func sameGroups(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i, x := range a {
		y := b[i]
		n := len(x)
		if n != len(y) {
			return false
		}
		if n < 8 {
			if x != y {
				return false
			}
			continue
		}
		if word(x[n-8:]) != word(y[n-8:]) { // first: names differ at the end
			return false
		}
		for ; n > 8; n -= 8 {
			if word(x) != word(y) {
				return false
			}
			x, y = x[8:], y[8:]
		}
	}
	return true
}

// word returns the first eight bytes of s, which the compiler makes one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// tag makes a tag of a hash and the version; not 0, which marks an empty way.
func (h *hasher) tag(hash, version uint64) uint64 { return mix(hash, version)&h.keep | 1 }

// subject returns what the subject holds cluster-wide.
func (s *Snapshot) subject(user string, groups []string) *entry {
	hash, name := s.family.hasher.hashSubject(user, groups)
	stamp := s.stamps.of(name)
	tag := s.family.hasher.tag(hash, stamp)
	set := s.family.cache.set(hash)
	for w := range set.tags {
		if set.tags[w].Load() != tag {
			continue
		}
		e := set.entries[w].Load()
		if e != nil && e.subject == 0 && e.version == stamp && e.user == user && sameGroups(e.groups, groups) {
			if !e.used.Load() {
				e.used.Store(true)
			}
			return e
		}
	}
	if e := s.adopt(hash, name, user, groups); e != nil {
		return e
	}
	return s.meet(hash, tag, stamp, user, groups)
}

// meet works out a subject seen for the first time.
func (s *Snapshot) meet(hash, tag, stamp uint64, user string, groups []string) *entry {
	e := &entry{hash: hash, tag: tag, version: stamp, id: s.family.next()}
	g := gatherer{s: s, older: s.older(hash, user, groups)}
	h := s.family.hasher
	add := func(p *principal) {
		g.refs = p.cluster.appendTo(g.refs)
		if !p.spaces.empty() {
			e.spaces = append(e.spaces, p)
		}
	}
	if p, ok := s.users.get(h, "", user); ok {
		add(p)
	}
	for _, name := range groups {
		if p, ok := s.groups.get(h, "", name); ok {
			add(p)
		}
	}
	e.scope = &e.own
	g.scope(e.scope, nil)
	e.keep(user, groups)
	e.size += e.scope.extra() + int64(len(e.spaces))*8
	s.family.cache.put(e)
	return e
}

// adopt takes over what an earlier version knew of the subject when no change since concerns
// it; nil when there is no such thing. The namespaces remembered of it go with it.
func (s *Snapshot) adopt(hash, name uint64, user string, groups []string) *entry {
	set := s.family.cache.set(hash)
	for w := range set.entries {
		o := set.entries[w].Load()
		if o == nil || o.hash != hash || o.subject != 0 || o.user != user || !sameGroups(o.groups, groups) || !s.stamps.holds(o, name) {
			continue
		}
		stamp := s.stamps.of(name)
		e := &entry{
			hash: hash, tag: s.family.hasher.tag(hash, stamp), version: stamp, size: o.size, id: o.id,
			user: o.user, groups: o.groups, scope: o.scope, spaces: o.spaces,
		}
		s.family.cache.put(e)
		return e
	}
	return nil
}

// keep copies the key: the caller's strings may be windows on something large or reused. One
// piece of memory holds all of them, which is also quicker to compare with.
func (e *entry) keep(user string, groups []string) {
	n := len(user)
	for _, g := range groups {
		n += len(g)
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteString(user)
	for _, g := range groups {
		b.WriteString(g)
	}
	all := b.String()
	e.user, all = all[:len(user)], all[len(user):]
	if len(groups) > 0 {
		e.groups = make([]string, len(groups))
		for i, g := range groups {
			e.groups[i], all = all[:len(g)], all[len(g):]
		}
	}
	e.size = entryBytes + int64(n+16*len(groups))
}

// older returns what an earlier version knew of the subject, to take over what is still
// true; nil when nothing is remembered.
func (s *Snapshot) older(hash uint64, user string, groups []string) *scope {
	set := s.family.cache.set(hash)
	for w := range set.entries {
		e := set.entries[w].Load()
		if e != nil && e.hash == hash && e.subject == 0 && e.user == user && sameGroups(e.groups, groups) {
			return e.scope
		}
	}
	return nil
}

// namespaced returns the scope of a subject in a namespace, which is not ""; nil when no
// binding there names it.
func (s *Snapshot) namespaced(sub *entry, ns string) *scope {
	if len(sub.spaces) == 0 {
		return nil
	}
	h := s.family.hasher
	hash := mix(sub.id, h.str(ns)) & h.keep
	tag := h.tag(hash, sub.id)
	set := s.family.cache.set(hash)
	for w := range set.tags {
		if set.tags[w].Load() != tag {
			continue
		}
		e := set.entries[w].Load()
		if e != nil && e.subject == sub.id && e.ns == ns {
			if !e.used.Load() {
				e.used.Store(true)
			}
			return e.scope
		}
	}
	return s.meetIn(hash, tag, sub, ns)
}

// meetIn works out a subject seen in a namespace for the first time.
func (s *Snapshot) meetIn(hash, tag uint64, sub *entry, ns string) *scope {
	g := gatherer{s: s}
	for _, p := range sub.spaces {
		if sp, ok := p.spaces.get(s.family.hasher, "", ns); ok {
			g.refs = sp.refs.appendTo(g.refs)
		}
	}
	e := &entry{hash: hash, tag: tag, version: sub.version, subject: sub.id, size: entryBytes + int64(len(ns))}
	if len(g.refs) > 0 {
		e.scope = &e.own
		g.scope(e.scope, sub.scope)
		e.size += e.scope.extra()
	}
	if sub.kept {
		e.ns = strings.Clone(ns)
		s.family.cache.put(e)
	}
	return e.scope
}

const entryBytes = 352 // with the scope in it

// extra estimates the bytes a scope keeps alive beside itself and the snapshot's own.
func (sc *scope) extra() int64 {
	n := int64(len(sc.units))*16 + int64(len(sc.refs))*8 + int64(len(sc.parts))*16 +
		int64(len(sc.missing))*40 + int64(len(sc.unsupported))*16
	if sc.merged != nil {
		n += sc.merged.size()
	}
	return n
}

func (t *table) size() int64 {
	n := int64(len(t.cells))*80 + int64(len(t.slots))*4 + int64(len(t.roles))*8 + 128
	for _, set := range t.names {
		n += int64(len(set)) * 32
	}
	for i := range t.cells {
		c := &t.cells[i]
		n += int64(cap(c.open)) * 12
		for _, hits := range c.named {
			n += int64(48 + cap(hits)*12)
		}
	}
	return n
}
