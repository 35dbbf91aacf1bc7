package rbacindex

import (
	"runtime"
	"sync/atomic"
)

// tables counts the entries of the tables that are made once and kept with a role, or with all of
// them, over a family. Policies of any real cluster have room; beyond it rules are evaluated as
// written.
type tables struct {
	room    int64
	entries *atomic.Int64 // by itself, so that a table that is dropped can be counted off
}

func newTables() *tables { return &tables{room: maxEntries, entries: new(atomic.Int64)} }

const (
	// maxEntries bounds the entries of a family's tables, of some 150 bytes each.
	maxEntries = 1 << 19
	// maxRoleEntries bounds those of one role, and with it the time it takes to compile it.
	maxRoleEntries = 1 << 15
	// maxMergedEntries bounds those of a table merged for one subject. It is rebuilt with every
	// change that concerns the subject.
	maxMergedEntries = 1 << 14
)

// make compiles roles within the room there is.
func (f *tables) make(h *hasher, roles []*role, most int) *table {
	entries := f.entries
	room := min(int64(most), f.room-entries.Load())
	t := compile(h, roles, int(max(0, room)))
	n := int64(t.entries)
	entries.Add(n)
	runtime.AddCleanup(t, func(n int64) { entries.Add(-n) }, n)
	return t
}
