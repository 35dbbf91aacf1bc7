package rbacindex

// NewCramped is New with room for no more than so many entries of tables: what there is no room
// for is gone through as it is written.
func NewCramped(room int64, objects ...any) (*Snapshot, error) {
	f := newFamily(defaultCacheBytes)
	f.tables.room = room
	return f.build(objects)
}

// TableEntries is how many entries the tables kept with roles have.
func (s *Snapshot) TableEntries() int64 { return s.family.tables.entries.Load() }
