package rbacindex

// NewCramped is New with room for no more than so many entries of tables: what there is no room
// for is gone through as it is written.
func NewCramped(room int64, objects ...any) (*Snapshot, error) {
	f := newFamily(defaultCacheBytes)
	f.tables.room = room
	return f.build(objects)
}

// TableEntries returns how many entries the tables kept with roles have.
func (s *Snapshot) TableEntries() int64 { return s.family.tables.entries.Load() }

// HygieneTaken is Hygiene, with the steps it took and may take at the most.
func HygieneTaken(s *Snapshot) (flaws []Flaw, taken, most int) {
	c := cleaner{s: s, gone: map[*binding]bool{}, left: hygieneSteps}
	c.all()
	n := 0
	s.All(func(Key, any) bool { n++; return true })
	return c.flaws, hygieneSteps - c.left, hygieneSteps + CoverSteps + n*hygieneLeast
}

// DifferencesTaken is Differences, with the steps it took and those all together may take.
func DifferencesTaken(s, old *Snapshot, changed []Key, visit func([]Difference) bool) (taken, most int) {
	c := newComparison(old, s)
	c.visit(changed, visit)
	return compareSteps - c.left, compareSteps + compareMost + len(c.known)*compareLeast
}
