package state

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/retrial-io/retrial/rbacindex"
)

// entry is one change of what the RBAC view shows: a step of one object, or of a scope.
type entry struct {
	step       // a copy: a pointer would keep every line there ever was
	seq  int32 // index of the step in the object's line
	key  objectKey
}

// entryLess is the order in which changes are taken to have become effective at the
// latest. It is total, and keeps the steps of one object in order.
func entryLess(a, b *entry) bool {
	if a.na != b.na {
		return a.na < b.na
	}
	if a.key != b.key {
		return a.key.less(b.key)
	}
	return a.seq < b.seq
}

// blockSize is the number of entries in a block: an append copies one block and the table
// of blocks, a lookup searches both.
const blockSize = 128

// block is a stretch of the timeline. Its entries never change; its boxes fill up as
// views are asked for.
type block struct {
	entries []entry
	// pending[i] is the earliest lower bound of entries[i:]: nothing from i on can have
	// been effective before it.
	pending []int64
	boxes   []box // boxes[i] holds the state after entries[i]
}

// box is a place for a view that was worked out.
type box struct{ p atomic.Pointer[cell] }

// cell is the RBAC state after some entry: the view and nothing else. It is immutable.
type cell struct{ views [1]View }

func newBlock(entries []entry) *block {
	b := &block{entries: entries, pending: make([]int64, len(entries)), boxes: make([]box, len(entries))}
	least := noSight
	for i := len(entries) - 1; i >= 0; i-- {
		least = min(least, entries[i].nb)
		b.pending[i] = least
	}
	return b
}

// timeline is the ordered changes of a cluster's RBAC state with the views between them:
// immutable but for views being filled in. Blocks are shared between timelines.
type timeline struct {
	blocks []*block
	// pending[i] is the earliest lower bound of blocks[i:], with one sentinel at the end.
	pending []int64
}

// position is a place between entries: after entries[0:entry] of blocks[block].
type position struct{ block, entry int }

// at returns the place after the last entry that was certainly effective at t.
func (tl *timeline) at(t int64) position {
	lo, hi := 0, len(tl.blocks)
	for lo < hi { // the last block whose first entry is not after t
		mid := (lo + hi) / 2
		if tl.blocks[mid].entries[0].na <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return position{}
	}
	b := tl.blocks[lo-1]
	i, j := 0, len(b.entries)
	for i < j {
		mid := (i + j) / 2
		if b.entries[mid].na <= t {
			i = mid + 1
		} else {
			j = mid
		}
	}
	return position{lo - 1, i}
}

// quiet tells whether no entry from p on can have been effective by t.
func (tl *timeline) quiet(p position, t int64) bool {
	if p.block >= len(tl.blocks) {
		return true
	}
	b := tl.blocks[p.block]
	return (p.entry >= len(b.entries) || b.pending[p.entry] > t) && tl.pending[p.block+1] > t
}

// edit returns a timeline without the removed and with the added entries, both sorted by
// entryLess. Views before the first change are kept.
func (tl *timeline) edit(removed, added []entry) *timeline {
	first := added
	if len(first) == 0 || len(removed) > 0 && entryLess(&removed[0], &added[0]) {
		first = removed
	}
	if len(first) == 0 {
		return tl
	}
	// The first block that can hold or must take the first change.
	k := sort.Search(len(tl.blocks), func(i int) bool {
		return entryLess(&first[0], &tl.blocks[i].entries[0])
	})
	k = max(0, k-1)
	next := &timeline{blocks: slices.Clone(tl.blocks[:k])}
	clean := true // no change yet: views may be carried over
	for ; k < len(tl.blocks); k++ {
		old := tl.blocks[k]
		last := k == len(tl.blocks)-1
		var upper *entry
		if !last {
			upper = &tl.blocks[k+1].entries[0]
		}
		nr := countBefore(removed, upper)
		na := countBefore(added, upper)
		if nr == 0 && na == 0 {
			if clean {
				next.blocks = append(next.blocks, old)
			} else {
				next.blocks = append(next.blocks, &block{entries: old.entries, pending: old.pending, boxes: make([]box, len(old.entries))})
			}
			continue
		}
		entries, kept := mergeEntries(old.entries, removed[:nr], added[:na])
		removed, added = removed[nr:], added[na:]
		size := blockSize
		if n := len(entries); n > blockSize && !(last && kept == len(old.entries)) {
			// Not an append: split evenly, or every late change would leave a tiny block.
			parts := (n + blockSize - 1) / blockSize
			size = (n + parts - 1) / parts
		}
		for from := 0; from < len(entries); from += size {
			b := newBlock(entries[from:min(from+size, len(entries))])
			if clean {
				for i := from; i < min(kept, from+len(b.entries)); i++ {
					b.boxes[i-from].p.Store(old.boxes[i].p.Load())
				}
			}
			next.blocks = append(next.blocks, b)
		}
		clean = false
	}
	for from := 0; from < len(added); from += blockSize {
		next.blocks = append(next.blocks, newBlock(slices.Clone(added[from:min(from+blockSize, len(added))])))
	}
	next.pending = make([]int64, len(next.blocks)+1)
	least := noSight
	next.pending[len(next.blocks)] = least
	for i := len(next.blocks) - 1; i >= 0; i-- {
		least = min(least, next.blocks[i].pending[0])
		next.pending[i] = least
	}
	return next
}

// countBefore returns how many entries of a sorted list stand before upper; all when nil.
func countBefore(list []entry, upper *entry) int {
	if upper == nil {
		return len(list)
	}
	return sort.Search(len(list), func(i int) bool { return !entryLess(&list[i], upper) })
}

// mergeEntries returns old without removed and with added, all sorted, and how many of the
// first entries are old's own, untouched.
func mergeEntries(old, removed, added []entry) (merged []entry, kept int) {
	merged = make([]entry, 0, len(old)-len(removed)+len(added))
	touched := false
	for len(old) > 0 || len(added) > 0 {
		if len(old) > 0 && len(removed) > 0 && !entryLess(&old[0], &removed[0]) && !entryLess(&removed[0], &old[0]) {
			old, removed, touched = old[1:], removed[1:], true
			continue
		}
		if len(old) == 0 || len(added) > 0 && entryLess(&added[0], &old[0]) {
			merged, added, touched = append(merged, added[0]), added[1:], true
			continue
		}
		merged, old = append(merged, old[0]), old[1:]
		if !touched {
			kept++
		}
	}
	return merged, kept
}

// viewLimit is the number of worked-out views a State keeps beside one for every block.
const viewLimit = 2048

// materialiser works out views and bounds how many are kept.
type materialiser struct {
	mu   sync.Mutex
	root *cell // before every change
	ring []*box
	next int
}

// cell returns the state at a position.
func (m *materialiser) cell(tl *timeline, p position) *cell {
	if p.entry == 0 {
		if p.block == 0 {
			return m.root
		}
		p.block--
		p.entry = len(tl.blocks[p.block].entries)
	}
	if c := tl.blocks[p.block].boxes[p.entry-1].p.Load(); c != nil {
		return c
	}
	return m.work(tl, p)
}

// work derives the state at p from the nearest earlier one that is there.
func (m *materialiser) work(tl *timeline, p position) *cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := p
	var c *cell
	for c == nil {
		if from.entry == 0 {
			if from.block == 0 {
				c = m.root
				break
			}
			from.block--
			from.entry = len(tl.blocks[from.block].entries)
		}
		if c = tl.blocks[from.block].boxes[from.entry-1].p.Load(); c == nil {
			from.entry--
		}
	}
	for from != p {
		b := tl.blocks[from.block]
		if from.entry == len(b.entries) {
			from = position{from.block + 1, 0}
			continue
		}
		to := len(b.entries)
		if from.block == p.block {
			to = p.entry
		}
		c = c.advance(b.entries[from.entry:to])
		m.keep(b, to-1, c)
		from.entry = to
	}
	return c
}

// keep stores a view in its box. The last of a full block stays, so that no view is ever
// much more than a block away; of the others the oldest gives way.
func (m *materialiser) keep(b *block, i int, c *cell) {
	bx := &b.boxes[i]
	bx.p.Store(c)
	if i == blockSize-1 {
		return
	}
	if len(m.ring) < viewLimit {
		m.ring = append(m.ring, bx)
		return
	}
	m.ring[m.next].p.Store(nil)
	m.ring[m.next] = bx
	m.next = (m.next + 1) % viewLimit
}

// advance returns the state after some more changes.
func (c *cell) advance(entries []entry) *cell {
	v := c.views[0]
	v.Changed = nil
	changes := make([]rbacindex.Change, 0, len(entries))
	var unknown map[rbacindex.Key]bool
	for i := range entries {
		e := &entries[i]
		if e.na > noTime {
			v.At = timeOf(e.na)
		}
		key := rbacindex.Key{Kind: e.key.res.kind(), Namespace: e.key.namespace, Name: e.key.name}
		isUnknown := e.phase == phaseUnknown
		if key.Name == "" && key.Namespace == "" {
			v.UnknownKinds = setKind(v.UnknownKinds, key.Kind, isUnknown)
			continue
		}
		if unknown == nil {
			unknown = make(map[rbacindex.Key]bool)
		}
		unknown[key] = isUnknown
		if key.Name == "" {
			continue
		}
		ch := rbacindex.Change{Key: key}
		if e.phase == phasePresent {
			ch.Object = e.content.object
		}
		changes = append(changes, ch)
	}
	v.Unknown = setKeys(v.Unknown, unknown)
	v.RBAC = applyChanges(v.RBAC, changes)
	return &cell{views: [1]View{v}}
}

// applyChanges applies changes to the index. A change the index refuses (it cannot hold
// the object) is left out; the State checks objects before they become steps.
func applyChanges(s *rbacindex.Snapshot, changes []rbacindex.Change) *rbacindex.Snapshot {
	if len(changes) == 0 {
		return s
	}
	if next, err := s.Apply(changes...); err == nil {
		return next
	}
	for _, c := range changes {
		if next, err := s.Apply(c); err == nil {
			s = next
		}
	}
	return s
}

// setKind returns the sorted list with or without the kind; the list itself is not changed.
func setKind(list []rbacindex.Kind, k rbacindex.Kind, in bool) []rbacindex.Kind {
	i, found := slices.BinarySearch(list, k)
	switch {
	case found == in:
		return list
	case in:
		return slices.Insert(slices.Clone(list), i, k)
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// setKeys returns the sorted list with the keys put in or taken out; the list itself is
// not changed.
func setKeys(list []rbacindex.Key, set map[rbacindex.Key]bool) []rbacindex.Key {
	changed := false
	out := make([]rbacindex.Key, 0, len(list))
	for _, k := range list {
		if in, ok := set[k]; ok && !in {
			changed = true
			continue
		}
		out = append(out, k)
	}
	for k, in := range set {
		if !in {
			continue
		}
		if _, found := slices.BinarySearchFunc(list, k, compareKeys); !found {
			out, changed = append(out, k), true
		}
	}
	if !changed {
		return list
	}
	if len(out) == 0 {
		return nil
	}
	slices.SortFunc(out, compareKeys)
	return out
}

// compareKeys is the order of View.Unknown.
func compareKeys(a, b rbacindex.Key) int {
	x := objectKey{resourceOfRBAC(a.Kind), a.Namespace, a.Name}
	y := objectKey{resourceOfRBAC(b.Kind), b.Namespace, b.Name}
	switch {
	case x == y:
		return 0
	case x.less(y):
		return -1
	}
	return 1
}
