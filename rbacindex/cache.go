package rbacindex

import (
	"slices"
	"sync"
	"sync/atomic"
)

// cache remembers entries within a bound of bytes. Readers load pointers and compare, they never
// wait and never write shared memory but to mark an entry used for the first time since the sweep
// passed it. Writers, which have just compiled something, hold a lock; one that would have to wait
// does not store its entry.
//
// It is set-associative: an entry can only be in the set its hash selects, in any of the ways. A
// full set makes the number of sets grow, up to their share of the bytes, unless most ways are
// empty: then it is full of versions of one subject, which stay together in any number of sets.
// Entries that were not used lately are evicted when the bytes are used up, so that a flood of
// one-time subjects does not drive out the regular ones.
//
// The tables made for scopes of many roles are shared by all entries that hold the same roles.
// Each counts once, as long as an entry in the cache holds it, and can be found that long.
type cache struct {
	sets   atomic.Pointer[[]cacheSet]
	tables [cacheTables]atomic.Pointer[table] // by hash; a hint, some may be missing

	mu    sync.Mutex // guards the rest, and writes to sets
	limit int64
	bytes int64
	queue []*entry // in the order the sweep will look at them; may hold entries already gone
	live  int      // entries that are not gone
}

const (
	cacheWays   = 8
	cacheTables = 256
)

// cacheSet keeps the tags of all ways in one cache line. A tag only saves reading the entry; the
// entry decides.
type cacheSet struct {
	tags    [cacheWays]atomic.Uint64
	entries [cacheWays]atomic.Pointer[entry]
}

const cacheSetBytes = 2 * 8 * cacheWays

func (c *cache) init(limit int64) {
	c.limit = limit
	sets := make([]cacheSet, 4)
	c.sets.Store(&sets)
	c.bytes = int64(len(sets)) * cacheSetBytes
}

// set returns the set of a hash.
func (c *cache) set(hash uint64) *cacheSet {
	sets := *c.sets.Load()
	return &sets[hash>>32&uint64(len(sets)-1)]
}

// merged returns the place of a table of roles with that hash.
func (c *cache) merged(hash uint64) *atomic.Pointer[table] {
	return &c.tables[hash>>32%cacheTables]
}

// put enters e, which must not be changed afterwards, unless another writer is busy or e is
// out of proportion to the cache. It reports whether e went in.
func (c *cache) put(e *entry) bool {
	size := e.size
	e.tables(func(t *table) { size += t.bytes })
	if size > c.limit/4 || !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	set := c.set(e.hash)
	way := set.free()
	for way < 0 && c.grow() {
		set = c.set(e.hash)
		way = set.free()
	}
	if way < 0 {
		way = set.victim(e)
		c.drop(set, way)
	}
	e.kept = true
	set.place(way, e)
	c.bytes += e.size
	e.tables(c.hold)
	c.live++
	for c.bytes > c.limit {
		c.shrink()
	}
	if len(c.queue) > 2*c.live+64 {
		c.queue = slices.DeleteFunc(c.queue, func(e *entry) bool { return e.gone })
	}
	c.queue = append(c.queue, e)
	return true
}

// drop takes the entry of a way out.
func (c *cache) drop(set *cacheSet, way int) {
	e := set.entries[way].Load()
	set.tags[way].Store(0)
	set.entries[way].Store(nil)
	e.gone = true
	c.bytes -= e.size
	e.tables(c.release)
	c.live--
}

// hold counts a table for one more entry.
func (c *cache) hold(t *table) {
	if t.uses++; t.uses == 1 {
		c.bytes += t.bytes
		c.merged(t.merged).Store(t)
	}
}

// release undoes hold.
func (c *cache) release(t *table) {
	if t.uses--; t.uses == 0 {
		c.bytes -= t.bytes
		c.merged(t.merged).CompareAndSwap(t, nil)
	}
}

// cacheSetShare is the part of the bytes that sets may take: an eighth. Then there are ways
// for twice as many of the smallest entries as fit into the rest. It does not depend on what
// the entries take now: large ones may be followed by many small ones.
const cacheSetShare = 8

// cacheSparse is how many ways there are for an entry when sets do not fill up by chance.
const cacheSparse = 4

// grow doubles the number of sets; false if that would be more than their share, or would
// not make room.
func (c *cache) grow() bool {
	old := *c.sets.Load()
	more := int64(len(old)) * cacheSetBytes
	if 2*more > c.limit/cacheSetShare || c.live*cacheSparse < len(old)*cacheWays {
		return false
	}
	sets := make([]cacheSet, 2*len(old))
	for i := range old {
		for w := range old[i].entries {
			if e := old[i].entries[w].Load(); e != nil {
				s := &sets[e.hash>>32&uint64(len(sets)-1)]
				s.place(s.free(), e)
			}
		}
	}
	c.bytes += more
	c.sets.Store(&sets)
	return true
}

// shrink examines the entry that has waited longest: if it was used meanwhile it loses the mark and
// waits again; otherwise it is evicted.
func (c *cache) shrink() {
	e := c.queue[0]
	c.queue[0], c.queue = nil, c.queue[1:]
	switch {
	case e.gone:
	case e.used.Load():
		e.used.Store(false)
		c.queue = append(c.queue, e)
	default:
		set := c.set(e.hash)
		for w := range set.entries {
			if set.entries[w].Load() == e {
				c.drop(set, w)
				break
			}
		}
	}
}

// free returns an empty way, −1 when there is none.
func (s *cacheSet) free() int {
	for w := range s.entries {
		if s.entries[w].Load() == nil {
			return w
		}
	}
	return -1
}

// victim chooses the way that gives place to e: one not used lately, an earlier version of
// the same subject first.
func (s *cacheSet) victim(e *entry) int {
	found := -1
	for w := range s.entries {
		o := s.entries[w].Load()
		if o.used.Load() {
			continue
		}
		if found < 0 {
			found = w
		}
		if o.hash == e.hash && o.of < e.of {
			return w
		}
	}
	if found >= 0 {
		return found
	}
	for w := range s.entries {
		s.entries[w].Load().used.Store(false)
	}
	return int(e.tag % cacheWays)
}

func (s *cacheSet) place(way int, e *entry) {
	s.entries[way].Store(e)
	s.tags[way].Store(e.tag)
}
