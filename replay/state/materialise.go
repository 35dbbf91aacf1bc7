package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

const (
	// landmark is how many blocks lie between views that stay once derived: other views are derived from the last of them before. Together
	// they hold each change about once, a kilobyte or less.
	landmark = 4
	// viewLimit bounds the other views a State keeps, by what they do not share with the one before: about a kilobyte for each unit of
	// weight.
	viewLimit = 32 << 10
	// viewWeight is what a view weighs beside the changes in it.
	viewWeight = 3
)

// materialiser derives views and bounds how many are kept.
type materialiser struct {
	mu    sync.Mutex
	root  *cell // before every change
	views shelf // but for those at landmarks
}

// shelf is a queue of kept views; the oldest are dropped.
type shelf struct {
	queue  []shelved
	weight int
}

type shelved struct {
	slot   *slot
	weight int
}

func (s *shelf) keep(to *slot, c *cell, changes int) {
	to.Store(c)
	s.queue = append(s.queue, shelved{to, changes + viewWeight})
	s.weight += changes + viewWeight
	for s.weight > viewLimit && len(s.queue) > 1 {
		s.queue[0].slot.Store(nil)
		s.weight -= s.queue[0].weight
		s.queue[0] = shelved{}
		s.queue = s.queue[1:]
	}
}

// Rest drops the views that were worked out, except those at landmarks. Call it while nobody asks: what somebody asks for later is worked
// out again, from the landmark before it.
func (s *State) Rest() { s.views.forget() }

// forget drops the kept views, except those at landmarks, and with them what they hold that the State has forgotten.
func (m *materialiser) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.views.queue {
		v.slot.Store(nil)
	}
	m.views = shelf{}
}

// cell returns the state at a position.
func (m *materialiser) cell(tl *timeline, p position) *cell {
	if p.entry == 0 {
		if p.block == 0 {
			return m.root
		}
		p.block--
		p.entry = len(tl.block(p.block).entries)
	}
	if c := tl.block(p.block).views.get(p.entry - 1); c != nil {
		return c
	}
	return m.work(tl, p)
}

// work derives the state at p from the nearest earlier one kept. Over a long distance it first makes the state of the last landmark, from
// the net of all changes up to it.
func (m *materialiser) work(tl *timeline, p position) *cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, c := m.nearest(tl, p)
	if mark := p.block / landmark * landmark; from.block < mark && mark > 0 {
		to := position{mark - 1, len(tl.block(mark - 1).entries)}
		if from != to {
			c, _ = c.advance(tl, from, to)
			tl.block(mark - 1).views.slot(to.entry - 1).Store(c)
			from = to
		}
	}
	for from != p { // by blocks, so that what is asked for next has less to do, and shares it
		to := p
		if from.block < p.block && from.entry == len(tl.block(from.block).entries) {
			from = position{from.block + 1, 0}
		}
		if from.block < p.block {
			to = position{from.block, len(tl.block(from.block).entries)}
		}
		var n int
		c, n = c.advance(tl, from, to)
		m.views.keep(tl.block(to.block).views.slot(to.entry-1), c, n)
		from = to
	}
	return c
}

// nearest returns the last kept state at or before p.
func (m *materialiser) nearest(tl *timeline, p position) (position, *cell) {
	for {
		if p.block < tl.len() && tl.block(p.block).views.slots.Load() == nil {
			p.entry = 0
		}
		for ; p.entry > 0; p.entry-- {
			if c := tl.block(p.block).views.get(p.entry - 1); c != nil {
				return p, c
			}
		}
		if p.block == 0 {
			return p, m.root
		}
		p.block--
		p.entry = len(tl.block(p.block).entries)
	}
}

// carry keeps a view for the writer.
func (m *materialiser) carry(to *slot, c *cell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views.keep(to, c, 0)
}

// advance returns the state at a later position, from the net of all changes between, and how many objects they are of.
func (c *cell) advance(tl *timeline, from, to position) (*cell, int) {
	v := c.views[0]
	v.Changed = nil
	var net map[kept.Key]*entry
	var single *entry
	for at := from; at != to; {
		b := tl.block(at.block)
		end := len(b.entries)
		if at.block == to.block {
			end = to.entry
		}
		for ; at.entry < end; at.entry++ {
			e := &b.entries[at.entry]
			if e.na > instant.None {
				v.At = instant.Time(e.na)
			}
			switch {
			case single == nil && net == nil:
				single = e
			case net == nil:
				net = map[kept.Key]*entry{single.key: single}
				fallthrough
			default:
				net[e.key] = e
			}
		}
		if at != to {
			at = position{at.block + 1, 0}
		}
	}
	if net == nil {
		return c.with(v, func(yield func(*entry) bool) { _ = single != nil && yield(single) }, 1), 1
	}
	return c.with(v, maps.Values(net), len(net)), len(net)
}

// with returns v with the changes, no two of which are of one object.
func (c *cell) with(v View, entries iter.Seq[*entry], n int) *cell {
	changes := make([]rbacindex.Change, 0, n)
	unknown, doubted, parts := make(map[rbacindex.Key]bool), make(map[rbacindex.Key]bool), make(map[rbacindex.Key]bool)
	var most []rbacindex.Change
	for e := range entries {
		key := e.key.RBAC()
		isUnknown := e.phase == phaseUnknown && e.Most == nil
		if key.Name == "" && key.Namespace == "" {
			v.UnknownKinds = setKind(v.UnknownKinds, key.Kind, isUnknown)
			continue
		}
		if _, was := slices.BinarySearchFunc(v.Unknown, key, compareKeys); was != isUnknown {
			unknown[key] = isUnknown
		}
		if key.Name == "" {
			continue
		}
		isDoubted := e.phase == phaseUnknown && e.Most != nil
		_, was := slices.BinarySearchFunc(v.Doubted, key, compareKeys)
		if was != isDoubted {
			doubted[key] = isDoubted
		}
		isPart := isDoubted && e.Most.IsPart()
		if _, was := slices.BinarySearchFunc(v.parts, key, compareKeys); was != isPart {
			parts[key] = isPart
		}
		ch := rbacindex.Change{Key: key}
		if e.phase == phasePresent {
			ch.Object = e.content.Object
		} else if e.Least != nil {
			ch.Object = e.Least.Object
		}
		changes = append(changes, ch)
		if isDoubted {
			ch.Object = e.Most.Object
		}
		most = append(most, ch)
		if was || isDoubted {
			most = append(most, e.Most.Alternatives(v.Most, key)...)
		}
	}
	v.Unknown, v.parts = setKeys(v.Unknown, unknown), setKeys(v.parts, parts)
	if v.Doubted = setKeys(v.Doubted, doubted); len(v.Doubted) == 0 {
		v.Most = nil
	} else {
		v.Most = applyChanges(cmp.Or(v.Most, v.RBAC), most)
	}
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

// setKeys returns the sorted list with the keys put in or taken out; the list itself is not changed.
func setKeys(list []rbacindex.Key, set map[rbacindex.Key]bool) []rbacindex.Key {
	if len(set) == 0 {
		return list
	}
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
func compareKeys(a, b rbacindex.Key) int { return kept.CompareKeys(kept.KeyOf(a), kept.KeyOf(b)) }
