package state

import (
	"cmp"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/retrial-io/retrial/replay/state/kept"
)

// entry is one change of what the RBAC view shows: a step of one object, or of a scope.
type entry struct {
	step       // a copy: a pointer would keep every line there ever was
	seq  int32 // index of the step in the object's line
	key  kept.Key
}

// before is the order in which changes are taken to have become effective at the latest. It is total,
// and keeps the steps of one object in order.
func (e *entry) before(f *entry) bool { return e.compare(f) < 0 }

func (e *entry) compare(f *entry) int {
	return cmp.Or(cmp.Compare(e.na, f.na), kept.CompareKeys(e.key, f.key), cmp.Compare(e.seq, f.seq))
}

// blockSize is the number of entries in a block: an append copies one block and the table of blocks, a lookup searches both.
const blockSize = 128

// block is a stretch of the timeline. Its entries never change; its views are filled in on demand.
type block struct {
	entries []entry
	// pending[i] is the earliest lower bound of entries[i:]: nothing from i on can have been effective before it.
	pending []int64
	views   *views // after each entry; shared with the block that this one was appended to
}

// views has the derived states of a block; most blocks never have any.
type views struct {
	slots atomic.Pointer[[blockSize]slot]
}

// slot holds the state after one entry, nil if it was not derived.
type slot = atomic.Pointer[cell]

// get returns the state after entry i.
func (v *views) get(i int) *cell {
	if slots := v.slots.Load(); slots != nil {
		return slots[i].Load()
	}
	return nil
}

// slot returns the slot of the state after entry i.
func (v *views) slot(i int) *slot {
	slots := v.slots.Load()
	for slots == nil {
		v.slots.CompareAndSwap(nil, new([blockSize]slot))
		slots = v.slots.Load()
	}
	return &slots[i]
}

// cell is the RBAC state after some entry: the view and nothing else. It is immutable.
type cell struct{ views [1]View }

func newBlock(entries []entry) *block {
	b := &block{entries: entries, pending: make([]int64, len(entries)), views: &views{}}
	least := noSight
	for i := len(entries) - 1; i >= 0; i-- {
		least = min(least, entries[i].nb)
		b.pending[i] = least
	}
	return b
}

// timeline has the ordered changes of a cluster's RBAC state and the views between them. It is immutable, except that views are filled in.
// Timelines share blocks and slices: the newest appends behind what older ones see.
type timeline struct {
	full []*block // all blocks but the last
	last *block   // nil when there is no change at all
	// pending[i] is the earliest lower bound of full[i:]; it never decreases.
	pending []int64
}

func (tl *timeline) len() int {
	if tl.last == nil {
		return 0
	}
	return len(tl.full) + 1
}

func (tl *timeline) block(i int) *block {
	if i == len(tl.full) {
		return tl.last
	}
	return tl.full[i]
}

// pendingFrom returns the earliest lower bound of all blocks from i on.
func (tl *timeline) pendingFrom(i int) int64 {
	least := noSight
	if i < len(tl.full) {
		least = tl.pending[i]
	}
	if i < tl.len() {
		least = min(least, tl.last.pending[0])
	}
	return least
}

// newTimeline makes a timeline of blocks, of which none is empty.
func newTimeline(blocks []*block) *timeline {
	if len(blocks) == 0 {
		return &timeline{}
	}
	n := len(blocks) - 1
	tl := &timeline{full: blocks[:n:n], last: blocks[n], pending: make([]int64, n)}
	least := noSight
	for i := n - 1; i >= 0; i-- {
		least = min(least, blocks[i].pending[0])
		tl.pending[i] = least
	}
	return tl
}

// blocks returns a copy of the table of blocks.
func (tl *timeline) blocks() []*block {
	if tl.last == nil {
		return nil
	}
	return append(slices.Clone(tl.full), tl.last)
}

// push returns a timeline with one more entry, after all others. Nearly every write does this; it copies only the timeline itself.
func (tl *timeline) push(e entry) *timeline {
	next := *tl
	last := tl.last
	if last == nil || len(last.entries) == blockSize {
		if last != nil {
			least := last.pending[0]
			n := len(tl.pending)
			for n > 0 && tl.pending[n-1] > least {
				n--
			}
			if n < len(tl.pending) {
				// It may have been effective before some that were done earlier. Rare.
				next.pending = slices.Clone(tl.pending)
				for i := n; i < len(tl.pending); i++ {
					next.pending[i] = least
				}
			}
			next.full, next.pending = append(tl.full, last), append(next.pending, least)
		}
		next.last = &block{
			entries: append(make([]entry, 0, 8), e), pending: append(make([]int64, 0, 8), e.nb), views: &views{},
		}
		return &next
	}
	b := &block{entries: append(last.entries, e), views: last.views}
	if n := len(last.pending); last.pending[n-1] <= e.nb {
		b.pending = append(last.pending, e.nb)
	} else {
		b.pending = append(slices.Clone(last.pending), e.nb)
		for i := n - 1; i >= 0 && b.pending[i] > e.nb; i-- {
			b.pending[i] = e.nb
		}
	}
	next.last = b
	return &next
}

// position is a place between entries: after entries[0:entry] of blocks[block].
type position struct{ block, entry int }

// at returns the position after the last entry that was certainly effective at t.
func (tl *timeline) at(t int64) position {
	after := sort.Search(tl.len(), func(i int) bool { return tl.block(i).entries[0].na > t })
	if after == 0 {
		return position{}
	}
	entries := tl.block(after - 1).entries
	return position{after - 1, sort.Search(len(entries), func(i int) bool { return entries[i].na > t })}
}

// quiet reports whether no entry from p on can have been effective by t.
func (tl *timeline) quiet(p position, t int64) bool {
	if p.block >= tl.len() {
		return true
	}
	b := tl.block(p.block)
	return (p.entry >= len(b.entries) || b.pending[p.entry] > t) && tl.pendingFrom(p.block+1) > t
}

// edit returns a timeline without the removed and with the added entries, both in their order. Views of blocks before the first change are
// kept; in its block carry is called to store the last one before it.
func (tl *timeline) edit(removed, added []entry, carry func(*slot, *cell)) *timeline {
	first := added
	if len(first) == 0 || len(removed) > 0 && removed[0].before(&added[0]) {
		first = removed
	}
	if len(first) == 0 {
		return tl
	}
	if len(removed) == 0 && (tl.last == nil || tl.last.entries[len(tl.last.entries)-1].before(&added[0])) {
		for _, e := range added {
			tl = tl.push(e)
		}
		return tl
	}
	blocks := tl.blocks()
	// The first block that can hold or must take the first change.
	k := sort.Search(len(blocks), func(i int) bool { return first[0].before(&blocks[i].entries[0]) })
	k = max(0, k-1)
	next := slices.Clone(blocks[:k])
	clean := true // no change yet: views may be carried over
	for ; k < len(blocks); k++ {
		old := blocks[k]
		last := k == len(blocks)-1
		var upper *entry
		if !last {
			upper = &blocks[k+1].entries[0]
		}
		nr := countBefore(removed, upper)
		na := countBefore(added, upper)
		if nr == 0 && na == 0 {
			if clean {
				next = append(next, old)
			} else {
				next = append(next, &block{entries: old.entries, pending: old.pending, views: &views{}})
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
			b := newBlock(slices.Clone(entries[from:min(from+size, len(entries))]))
			if clean {
				// The last view before the change, to go on from.
				for i := min(kept, from+len(b.entries)) - 1; i >= from; i-- {
					if c := old.views.get(i); c != nil {
						carry(b.views.slot(i-from), c)
						break
					}
				}
			}
			next = append(next, b)
		}
		clean = false
	}
	for from := 0; from < len(added); from += blockSize {
		next = append(next, newBlock(slices.Clone(added[from:min(from+blockSize, len(added))])))
	}
	return newTimeline(next)
}

// countBefore returns how many entries of a sorted list stand before upper; all when nil.
func countBefore(list []entry, upper *entry) int {
	if upper == nil {
		return len(list)
	}
	return sort.Search(len(list), func(i int) bool { return !list[i].before(upper) })
}

// mergeEntries returns old without removed and with added, all sorted, and how many of the first entries are old's own, untouched.
func mergeEntries(old, removed, added []entry) (merged []entry, kept int) {
	merged = make([]entry, 0, len(old)-len(removed)+len(added))
	touched := false
	for len(old) > 0 || len(added) > 0 {
		if len(old) > 0 && len(removed) > 0 && old[0].compare(&removed[0]) == 0 {
			old, removed, touched = old[1:], removed[1:], true
			continue
		}
		if len(old) == 0 || len(added) > 0 && added[0].before(&old[0]) {
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
