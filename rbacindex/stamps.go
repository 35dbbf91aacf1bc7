package rbacindex

// stamps version a snapshot's subjects by the last change that could concern them, so that what is
// cached of one stays valid for every later version that left it alone.
//
// A change to what a user is bound to, or to a role of few, marks the bucket its name hashes to. A
// change that concerns a group, or a role of many, marks all; the last of those are kept, so that a
// subject they leave alone is recognized by checking them and need not be computed again
// (Snapshot.adopt).
//
// Stamps are serial numbers of the family: unique, and growing along every line of descent.
// So two snapshots with the same stamp for a name both descend from the one in which it was
// set, and nothing since could have concerned the name in either.
type stamps struct {
	all    uint64  // the last change that may concern anybody
	base   uint64  // what all was before the first of recent
	recent []broad // the last changes that set all, newest last; shared, never changed
	pages  *pages  // by user name
}

// broad is a change that may concern anybody: to the bindings of a group or to a role.
type broad struct {
	serial uint64
	group  string // its name, when role.Kind is 0
	role   Key
}

const (
	stampPages  = 32
	stampBits   = 5
	recentBroad = 16
	// fewUsers is how many users a role may be bound to for a change to it to mark their
	// buckets and not all.
	fewUsers = 64
	// fewRefs is how many RoleBindings of a subject are checked to find out that a changed role is
	// not among theirs.
	fewRefs = 256
)

type (
	page  [stampPages]uint64
	pages [stampPages]*page
)

func newStamps(serial uint64) stamps {
	empty := &page{}
	s := stamps{all: serial, base: serial, pages: &pages{}}
	for i := range s.pages {
		s.pages[i] = empty
	}
	return s
}

// of returns the stamp of the user name with that hash.
func (s *stamps) of(name uint64) uint64 {
	return max(s.all, s.pages[name>>stampBits%stampPages][name%stampPages])
}

// touched gathers what one Apply concerns.
type touched struct {
	users [stampPages]uint32 // bits, by bucket
	any   bool               // one is set
	broad []broad
}

func (t *touched) user(name uint64) {
	t.users[name>>stampBits%stampPages] |= 1 << (name % stampPages)
	t.any = true
}

// principal marks a subject of a binding that comes or goes.
func (t *touched) principal(h *hasher, name string, group bool) {
	if group {
		t.broad = append(t.broad, broad{group: name})
		return
	}
	t.user(h.str(name))
}

// role marks whom a role is bound to.
func (t *touched) role(s *Snapshot, k Key) {
	u, ok := s.uses(k.Kind).get(s.family.hasher, k.Namespace, k.Name)
	if !ok {
		return
	}
	var names []uint64
	few := u.all(func(b *binding) bool {
		subjects := b.subjects()
		for i := range subjects {
			name, group, ok := b.principal(&subjects[i])
			if !ok {
				continue
			}
			if group || len(names) == fewUsers {
				return false
			}
			names = append(names, s.family.hasher.str(name))
		}
		return true
	})
	if !few {
		t.broad = append(t.broad, broad{role: k})
		return
	}
	for _, name := range names {
		t.user(name)
	}
}

// after returns the stamps of the snapshot with that serial number.
func (s stamps) after(serial uint64, t *touched) stamps {
	if t.any {
		next := *s.pages
		for i, bits := range t.users {
			if bits == 0 {
				continue
			}
			p := *next[i]
			for j := range p {
				if bits>>j&1 != 0 {
					p[j] = serial
				}
			}
			next[i] = &p
		}
		s.pages = &next
	}
	if len(t.broad) == 0 {
		return s
	}
	s.recent = append(append(make([]broad, 0, len(s.recent)+len(t.broad)), s.recent...), t.broad...)
	for i := len(s.recent) - len(t.broad); i < len(s.recent); i++ {
		s.recent[i].serial = serial
	}
	if n := len(s.recent) - recentBroad; n > 0 {
		s.base = s.recent[n-1].serial
		s.recent = append(make([]broad, 0, recentBroad), s.recent[n:]...)
	}
	s.all = serial
	return s
}

// holds reports whether what e says of its subject, whose user name has that hash, is true
// here as well: e was true in an ancestor, and none of the changes since concerns it.
func (s *stamps) holds(e *entry, name uint64) bool {
	own := s.pages[name>>stampBits%stampPages][name%stampPages]
	for i := len(s.recent) - 1; i >= 0; i-- {
		b := &s.recent[i]
		if own >= b.serial || b.concerns(e) {
			return false
		}
		before := s.base
		if i > 0 {
			before = s.recent[i-1].serial
		}
		if e.of == max(own, before) {
			return before < b.serial
		}
	}
	return false
}

// concerns reports whether the change may matter to the entry's subject.
func (b *broad) concerns(e *entry) bool {
	if b.role.Kind == 0 {
		return e.key.has(b.group)
	}
	for _, r := range e.own.refs {
		if r.b.roleKey() == b.role {
			return true
		}
	}
	seen := 0
	for _, p := range e.spaces {
		if !p.spaces.all(func(sp *space) bool {
			return sp.refs.all(func(r *ref) bool {
				seen++
				return seen <= fewRefs && r.b.roleKey() != b.role
			})
		}) {
			return true
		}
	}
	return false
}
