package rbacindex

import (
	"strings"
	"sync/atomic"
	"unsafe"
)

// entry is something a Snapshot worked out about a subject, a user name and its groups: what
// it holds cluster-wide, or (a namespace's entry) what it holds in one namespace. Entries are
// immutable but for the marks of the cache.
//
// What every decision reads lies together, one line of memory.
type entry struct {
	spaces []*principal // subject's entry: principals that RoleBindings name

	hash, tag uint64
	size      int64  // bytes, estimated; without merged tables, which entries share
	id        uint64 // unique; namespace entries name their subject's entry by it

	inner bool // a namespace's
	kept  bool // it went into the cache
	gone  bool // and out again; the cache's writers only

	of    uint64 // the stamp of the subject in the snapshots it is true for, or the id of the subject's entry
	key   key    // a subject's
	scope *scope // nil in a namespace where no binding names the subject

	// only is the namespace of all RoleBindings that name the subject, when there is only one,
	// and in what it holds there: service accounts and most people need no second look at the
	// cache. In a namespace's entry, only is its name.
	in   *scope
	only string

	used atomic.Bool
}

// An entry and what it points to are allocated at once: one place in memory to wait for.
type (
	clusterEntry struct {
		entry
		own scope
	}
	homeEntry struct {
		entry
		own, home scope
	}
)

// hashSubject hashes a user and its groups. Of many groups only some are looked at, and of a
// long name its ends: the comparison with the entry found decides, and looks at everything.
// Since the user's hash is keyed and goes in first, nobody can choose groups so that the
// entries of other users collide. name is the hash of the user alone.
func (h *hasher) hashSubject(user string, groups []string) (hash, name uint64) {
	name = h.str(user)
	x := mix(uint64(len(groups)), name)
	step := 1
	if len(groups) > 8 {
		step = len(groups) / 4
	}
	for i := 0; i < len(groups); i += step {
		x = mixEnds(x, groups[i])
	}
	return x & h.keep, name
}

// mixEnds folds the length and the first and last eight bytes of s into x.
func mixEnds(x uint64, s string) uint64 {
	n := len(s)
	p := unsafe.Pointer(unsafe.StringData(s))
	switch {
	case n >= 8:
		return mix(x^load8(p, 0), load8(p, n-8)+uint64(n))
	case n >= 4:
		return mix(x, uint64(load4(p, 0))|uint64(load4(p, n-4))<<32+uint64(n))
	}
	for i := range n {
		x = mix(x, uint64(load1(p, i)))
	}
	return mix(x, uint64(n))
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
		// Stamps and ids come from one series, so that of tells the two sorts of entries apart.
		e := set.entries[w].Load()
		if e != nil && e.of == stamp && e.key.is(user, groups) {
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
	h := s.family.hasher
	g := gatherer{s: s}
	var spaces []*principal
	add := func(p *principal) {
		g.refs = p.cluster.appendTo(g.refs)
		if !p.spaces.empty() {
			spaces = append(spaces, p)
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
	var e *entry
	only := onlySpace(spaces)
	if only == "" {
		c := &clusterEntry{}
		e = &c.entry
		e.scope, e.size = &c.own, clusterEntryBytes
		g.scope(e.scope, nil)
	} else {
		c := &homeEntry{}
		e = &c.entry
		e.scope, e.in, e.size = &c.own, &c.home, homeEntryBytes
		g.scope(e.scope, nil)
		home := gatherer{s: s}
		for _, p := range spaces {
			home.refs = p.spaces.one.refs.appendTo(home.refs)
		}
		home.scope(e.in, e.scope)
		e.size += e.in.extra()
	}
	e.hash, e.tag, e.of, e.id, e.spaces = hash, tag, stamp, s.family.next(), spaces
	e.key, e.only = newKey(user, groups, only)
	e.size += e.key.size() + e.scope.extra() + int64(len(spaces))*8
	s.family.cache.put(e)
	return e
}

// onlySpace returns the namespace of all RoleBindings of the principals, "" when they are of
// several or there are none.
func onlySpace(spaces []*principal) string {
	ns := ""
	for _, p := range spaces {
		if p.spaces.one == nil || ns != "" && p.spaces.one.ns != ns {
			return ""
		}
		ns = p.spaces.one.ns
	}
	return ns
}

// adopt takes over what an earlier version knew of the subject when no change since concerns
// it; nil when there is no such thing. The namespaces remembered of it go with it.
func (s *Snapshot) adopt(hash, name uint64, user string, groups []string) *entry {
	set := s.family.cache.set(hash)
	for w := range set.entries {
		o := set.entries[w].Load()
		if o == nil || o.hash != hash || o.inner || !o.key.is(user, groups) || !s.stamps.holds(o, name) {
			continue
		}
		stamp := s.stamps.of(name)
		e := &entry{
			hash: hash, tag: s.family.hasher.tag(hash, stamp), of: stamp, size: o.size, id: o.id,
			key: o.key, scope: o.scope, only: o.only, in: o.in, spaces: o.spaces,
		}
		s.family.cache.put(e)
		return e
	}
	return nil
}

// namespaced returns the scope of a subject in a namespace, which is not ""; nil when no
// binding there names it.
func (s *Snapshot) namespaced(sub *entry, ns string) *scope {
	if sub.only != "" {
		if sub.only == ns {
			return sub.in
		}
		return nil
	}
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
		if e != nil && e.of == sub.id && e.only == ns {
			if !e.used.Load() {
				e.used.Store(true)
			}
			return e.scope
		}
	}
	return s.meetIn(hash, tag, sub, ns)
}

// fewSpaces is how many principals of a subject are looked up each time a namespace turns out
// to hold nothing for it. Nothing is remembered then: a controller that goes through all
// namespaces of a cluster would fill the cache with what is no slower to find out again.
const fewSpaces = 2

// meetIn works out a subject seen in a namespace for the first time.
func (s *Snapshot) meetIn(hash, tag uint64, sub *entry, ns string) *scope {
	g := gatherer{s: s}
	for _, p := range sub.spaces {
		if sp, ok := p.spaces.get(s.family.hasher, "", ns); ok {
			g.refs = sp.refs.appendTo(g.refs)
		}
	}
	var e *entry
	if len(g.refs) > 0 {
		c := &clusterEntry{}
		e = &c.entry
		e.scope, e.size = &c.own, clusterEntryBytes
		g.scope(e.scope, sub.scope)
		e.size += e.scope.extra()
	} else if len(sub.spaces) <= fewSpaces {
		return nil
	} else {
		e = &entry{size: entryBytes}
	}
	if sub.kept {
		e.hash, e.tag, e.of, e.inner, e.only = hash, tag, sub.id, true, strings.Clone(ns)
		e.size += int64(len(ns))
		s.family.cache.put(e)
	}
	return e.scope
}

const (
	entryBytes        = int64(unsafe.Sizeof(entry{}))
	clusterEntryBytes = int64(unsafe.Sizeof(clusterEntry{}))
	homeEntryBytes    = int64(unsafe.Sizeof(homeEntry{}))
)

// extra estimates the bytes a scope keeps alive beside itself, the snapshot's own and the
// merged table.
func (sc *scope) extra() int64 {
	n := int64(cap(sc.units))*16 + int64(cap(sc.refs))*8
	if sc.errs != nil {
		n += 48 + int64(len(sc.errs.missing))*40 + int64(len(sc.errs.unsupported))*16
	}
	return n
}

// tables visits the merged tables an entry keeps alive.
func (e *entry) tables(fn func(*table)) {
	for _, sc := range [...]*scope{e.scope, e.in} {
		if sc != nil && sc.merged != nil {
			fn(sc.merged)
		}
	}
}

func (t *table) size() int64 {
	n := int64(len(t.cells))*96 + int64(len(t.slots))*8 + int64(len(t.roles))*8 + 160
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
