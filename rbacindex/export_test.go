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

// HygieneTaken is Hygiene, with the steps it took and may take at the most.
func HygieneTaken(s *Snapshot) (flaws []Flaw, taken, most int) {
	c := cleaner{s: s, gone: map[*binding]bool{}, left: hygieneSteps}
	c.all()
	n := 0
	s.All(func(Key, any) bool { n++; return true })
	return c.flaws, hygieneSteps - c.left, hygieneSteps + CoverSteps + n*hygieneLeast
}
