package rbacindex

import (
	"sync/atomic"
	"unsafe"
)

// entry is what a Snapshot computed about a subject, a user name and its groups: what it holds
// cluster-wide, or (a namespace's entry) what it holds in one namespace. Entries are immutable but
// for the marks of the cache.
//
// An entry is laid out in lines of memory of 64 bytes, and what an ordinary subject holds is in it:
// with thousands of subjects in alternation a decision costs the cache misses that follow one
// another. Those for the lines of one entry overlap (approach).
type entry struct {
	of   uint64 // the stamp of the subject in the snapshots it is true for, or the id of the subject's entry
	key  key    // a subject's
	only string // in a namespace's entry, its name; see home
	id   uint64 // unique; namespace entries name their subject's entry by it
	used atomic.Bool
	none bool // a namespace's, where no binding names the subject

	own   scope
	units [4]bound // room for own

	refs     [4]*ref // room for own
	homeUnit [1]bound
	homeRef  [1]*ref
	size     int64 // bytes, estimated; without merged tables, which entries share

	// home is what the subject holds in the namespace only, when all RoleBindings that name it
	// are there: service accounts and most people need no second look at the cache.
	home scope

	text [64]byte // room for key

	spaces    []*principal // subject's entry: principals that RoleBindings name
	hash, tag uint64
	inner     bool // a namespace's
	kept      bool // it went into the cache
	gone      bool // and out again; the cache's writers only
}

func newEntry(hash, tag, of uint64) *entry {
	e := &entry{hash: hash, tag: tag, of: of, size: entryBytes}
	e.own.units, e.own.refs = e.units[:0], e.refs[:0]
	e.home.units, e.home.refs = e.homeUnit[:0], e.homeRef[:0]
	return e
}

// approach makes the processor prefetch the lines of the entry together, rather than each when it
// is first read. It uses atomic loads, which the compiler does not remove.
func (e *entry) approach() {
	atomic.LoadUintptr((*uintptr)(unsafe.Pointer(&e.own)))
	atomic.LoadUintptr((*uintptr)(unsafe.Pointer(&e.units)))
	atomic.LoadUintptr((*uintptr)(unsafe.Pointer(&e.refs)))
	atomic.LoadUintptr((*uintptr)(unsafe.Pointer(&e.home)))
	atomic.LoadUintptr((*uintptr)(unsafe.Pointer(&e.text)))
}

// hashSubject hashes a user and its groups. Of many groups only some are hashed, and of a long name
// its ends: the comparison with the entry found decides, and covers everything. Since the user's
// hash is keyed and goes in first, a client cannot choose groups so that the entries of other users
// collide. name is the hash of the user alone.
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
	return s.subjectWithin(nil, user, groups)
}

// subjectWithin is subject within a number of steps; nil if they do not suffice to work out a
// subject seen for the first time.
func (s *Snapshot) subjectWithin(steps *Steps, user string, groups []string) *entry {
	hash, name := s.family.hasher.hashSubject(user, groups)
	stamp := s.stamps.of(name)
	tag := s.family.hasher.tag(hash, stamp)
	set := s.family.cache.set(hash)
	for w := range set.tags {
		if set.tags[w].Load() != tag {
			continue
		}
		// Stamps and ids come from one sequence, so that of distinguishes the two kinds of entries.
		e := set.entries[w].Load()
		if e == nil {
			continue
		}
		e.approach()
		if e.of == stamp && e.key.is(user, groups) {
			if !e.used.Load() {
				e.used.Store(true)
			}
			return e
		}
	}
	if e := s.adopt(hash, name, user, groups); e != nil {
		return e
	}
	return s.meet(steps, hash, tag, stamp, user, groups)
}

// meet computes a subject seen for the first time.
func (s *Snapshot) meet(steps *Steps, hash, tag, stamp uint64, user string, groups []string) *entry {
	h := s.family.hasher
	g := gatherer{s: s, steps: steps}
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
	if !g.sorts() {
		return nil
	}
	e := newEntry(hash, tag, stamp)
	e.id, e.spaces = s.family.next(), spaces
	g.scope(&e.own, nil)
	e.size += e.own.extra(e.units[:]) + int64(len(spaces))*8
	only := onlySpace(spaces)
	if only != "" {
		g.refs = nil
		for _, p := range spaces {
			g.refs = p.spaces.one.refs.appendTo(g.refs)
		}
		if !g.sorts() {
			return nil
		}
		g.scope(&e.home, &e.own)
		e.size += e.home.extra(e.homeUnit[:])
	}
	e.key, e.only = newKey(e.text[:], user, groups, only)
	e.size += e.key.size()
	s.family.cache.put(e)
	return e
}

// onlySpace returns the namespace of all RoleBindings of the principals, "" if they are of
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
// it; nil if there is no such thing. The namespaces remembered of it go with it.
func (s *Snapshot) adopt(hash, name uint64, user string, groups []string) *entry {
	set := s.family.cache.set(hash)
	for w := range set.entries {
		o := set.entries[w].Load()
		if o == nil || o.hash != hash || o.inner || !o.key.is(user, groups) || !s.stamps.holds(o, name) {
			continue
		}
		stamp := s.stamps.of(name)
		e := newEntry(hash, s.family.hasher.tag(hash, stamp), stamp)
		e.id, e.spaces, e.size = o.id, o.spaces, o.size
		o.own.copied(&e.own)
		o.home.copied(&e.home)
		e.key = o.key.copied(e.text[:])
		e.only = e.key.text[len(e.key.text)-len(o.only):]
		s.family.cache.put(e)
		return e
	}
	return nil
}

// namespaced returns the scope of a subject in a namespace, which is not ""; nil if no
// binding there names it, or when the steps do not suffice.
func (s *Snapshot) namespaced(steps *Steps, sub *entry, ns string) *scope {
	if sub.only != "" {
		if sub.only == ns {
			return &sub.home
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
		if e == nil {
			continue
		}
		e.approach()
		if e.of == sub.id && e.only == ns {
			if !e.used.Load() {
				e.used.Store(true)
			}
			if e.none {
				return nil
			}
			return &e.own
		}
	}
	return s.meetIn(steps, hash, tag, sub, ns)
}

// fewSpaces is how many principals of a subject are looked up each time a namespace turns out to
// hold nothing for it. Nothing is cached then: a controller that visits all namespaces of a cluster
// would fill the cache with what is as fast to compute again.
const fewSpaces = 2

// meetIn computes a subject seen in a namespace for the first time.
func (s *Snapshot) meetIn(steps *Steps, hash, tag uint64, sub *entry, ns string) *scope {
	g := gatherer{s: s, steps: steps}
	for _, p := range sub.spaces {
		if sp, ok := p.spaces.get(s.family.hasher, "", ns); ok {
			g.refs = sp.refs.appendTo(g.refs)
		}
	}
	if len(g.refs) == 0 && len(sub.spaces) <= fewSpaces {
		return nil
	}
	if !g.sorts() {
		return nil
	}
	e := newEntry(hash, tag, sub.id)
	e.inner, e.none = true, len(g.refs) == 0
	_, e.only = newKey(e.text[:], "", nil, ns)
	g.scope(&e.own, &sub.own)
	e.size += e.own.extra(e.units[:]) + int64(len(ns))
	if sub.kept {
		s.family.cache.put(e)
	}
	if e.none {
		return nil
	}
	return &e.own
}

const entryBytes = int64(unsafe.Sizeof(entry{}))

// extra estimates the bytes a scope keeps alive besides itself, its room for short lists, the
// snapshot's own and the merged table.
func (sc *scope) extra(room []bound) int64 {
	n := int64(0)
	if cap(sc.units) > len(room) {
		n += int64(cap(sc.units)) * 16
	}
	if cap(sc.refs) > len(room) {
		n += int64(cap(sc.refs)) * 8
	}
	if sc.errs != nil {
		n += 48 + int64(len(sc.errs.missing))*40 + int64(len(sc.errs.unsupported))*16
	}
	return n
}

// tables visits the merged tables an entry keeps alive.
func (e *entry) tables(fn func(*table)) {
	for _, sc := range [...]*scope{&e.own, &e.home} {
		if sc.merged != nil {
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
