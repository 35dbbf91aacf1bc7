package state

import (
	"cmp"
	"math"
	"slices"

	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// span is a closed stretch of time in unix nanoseconds: not before nb, not after na.
type span struct{ nb, na int64 }

// noSpan is that of what never was, or always; anytime that of what nothing bounds.
var noSpan, anytime = span{instant.None, instant.None}, span{instant.None, noSight}

// compareSpans orders spans by their ends.
func compareSpans(a, b span) int { return cmp.Or(cmp.Compare(a.na, b.na), cmp.Compare(a.nb, b.nb)) }

// overlaps reports whether two spans share more than an end point.
func (s span) overlaps(t span) bool { return s.nb < t.na && t.nb < s.na }

// narrow makes a span that of what both bound.
func (s *span) narrow(t span) { s.nb, s.na = max(s.nb, t.nb), min(s.na, t.na) }

// tighter reports whether a span ends before another, or with it and begins after it.
func (s span) tighter(t span) bool { return s.na < t.na || s.na == t.na && s.nb > t.nb }

// sightings sums up all observations of one version (or one end). Merging is commutative, associative and idempotent, in constant memory: a
// controller that re-applies the same object all day leaves nothing else.
type sightings struct {
	audit, watch int64 // earliest NotBefore of such sightings, noSight when none
	na           int64 // earliest NotAfter of all
	last         span  // the latest sighting, by its NotBefore
	snapshot     bool  // seen in a listing
}

// noSight is the lower bound of a kind of sighting that did not occur; it sorts last.
const noSight int64 = math.MaxInt64

func newSightings() sightings {
	return sightings{audit: noSight, watch: noSight, na: noSight, last: anytime}
}

// add merges one sighting.
func (s *sightings) add(src observe.Source, at span) {
	switch src {
	case observe.SourceAudit:
		s.audit = min(s.audit, at.nb)
	case observe.SourceWatch:
		s.watch = min(s.watch, at.nb)
	case observe.SourceSnapshot:
		s.snapshot = true
	}
	s.na = min(s.na, at.na)
	if at.nb > s.last.nb || at.nb == s.last.nb && at.na < s.last.na {
		s.last = at
	}
}

// produced returns the bounds of the write behind the sightings. A write that began after the version had been seen cannot have produced
// it: it changed nothing and was answered with the existing version. ok is false when no observed write produced it.
func (s *sightings) produced() (at span, ok bool) {
	switch {
	case s.audit <= s.na && s.audit != noSight:
		return span{s.audit, s.na}, true
	case s.watch <= s.na && s.watch != noSight && s.watch != instant.None:
		return span{s.watch, s.na}, true
	}
	return span{instant.None, s.na}, false
}

// version is one (uid, resourceVersion) of an object.
type version struct {
	rv        uint64
	uid       string
	content   *content.Content // nil when not recorded
	unchanged bool             // content is of the metadata alone; what else it holds is as before
	made      bool             // a write that made the object was answered with it,
	updated   bool             // and one that did not
	// perhaps says that the answer to a deletion that put on nothing to hold the object back showed it
	// held: by what another write put on after the object was read, it went all the same.
	perhaps   bool
	forgotten bool // what it held was known, see trimHistory
	seen      sightings
}

// tells orders what sightings of one version say: what it holds, that it was written, and that a write left it unchanged, which says only
// that it existed.
func (v *version) tells() int {
	switch {
	case v.unchanged:
		return 0
	case v.content == nil:
		return 1
	case v.content.Cut:
		return 2
	}
	return 3
}

// end is the deletion of one uid.
type end struct {
	uid  string
	rv   uint64 // the last that the object had, if its versions have been forgotten, else 0
	seen sightings
	// perhaps says that it is known only from the deletion of a collection, whose answer shows the object as it was read: a finalizer that
	// another write added meanwhile may hold it back.
	perhaps bool
}

// blind is a write whose resourceVersion is not known.
type blind struct {
	span
	content   *content.Content // nil when not recorded
	absent    bool             // the write removed the object, whichever uid it had
	ending    bool             // the write asked for its deletion; what became of it is not known
	unchanged bool             // as of a version
	created   bool             // the write made the object
	maybe     bool             // the write may not have been done
	update    bool             // it ended the object if that was being deleted and nothing else held it
	digest    uint64           // of the content, so that repetitions are recognised
}

// form tells the kinds of blinds apart.
func (b *blind) form() int {
	f := 0
	for i, is := range [...]bool{b.created, b.unchanged, b.update, b.ending, b.absent, b.maybe} {
		if is {
			f |= 1 << i
		}
	}
	return f
}

// follows reports whether the object was there when the write was made.
func (b *blind) follows() bool { return !b.created }

// listing is one complete snapshot of a resource, taken within its span, which is its identity: what was listed within it belongs to it.
type listing struct {
	span
	since int64 // noTime when knowledge begins with the listing itself
}

// object is everything observed under one name, and what follows from it.
type object struct {
	key      kept.Key
	versions []version // by (rv, uid)
	ends     []end     // by uid
	blinds   []blind   // by (na, nb, digest)
	present  []span    // of the listings that showed it
	missing  []span    // when it was looked for in vain, in order
	shown    []span    // when a request found it, of a role or binding, in order
	line     []step    // resolved; replaced as a whole, never changed
}

// size is how much was observed of the object.
func (o *object) size() int {
	return len(o.versions) + len(o.ends) + len(o.blinds) + len(o.missing) + len(o.shown)
}

// addVersion merges a version; it returns false if that says nothing new.
func (o *object) addVersion(v version, src observe.Source, at span) bool {
	i, known := slices.BinarySearchFunc(o.versions, v, func(a, b version) int {
		return cmp.Or(cmp.Compare(a.rv, b.rv), cmp.Compare(a.uid, b.uid))
	})
	if !known {
		v.seen = newSightings()
		v.seen.add(src, at)
		o.versions = slices.Insert(o.versions, i, v)
		return true
	}
	w := &o.versions[i]
	before := *w
	w.seen.add(src, at)
	w.made, w.updated, w.perhaps = w.made || v.made, w.updated || v.updated, w.perhaps || v.perhaps
	// One version has one content; should two copies differ, the choice must not depend on which came first.
	switch a, b := v.tells(), w.tells(); {
	case w.forgotten:
	case a > b, a == b && v.content != nil && (w.content == nil || v.content.Digest < w.content.Digest):
		w.content, w.unchanged = v.content, v.unchanged
	}
	return *w != before
}

// addEnd merges a deletion by uid; it returns false if that says nothing new.
func (o *object) addEnd(uid string, src observe.Source, at span, perhaps bool) bool {
	i, known := o.endOf(uid)
	if !known {
		o.ends = slices.Insert(o.ends, i, end{uid: uid, seen: newSightings(), perhaps: perhaps})
	}
	before := o.ends[i]
	o.ends[i].seen.add(src, at)
	o.ends[i].perhaps = before.perhaps && perhaps
	return o.ends[i] != before
}

// endOf returns where the deletion of a uid is, or would be, among those known.
func (o *object) endOf(uid string) (i int, known bool) {
	return slices.BinarySearchFunc(o.ends, uid, func(e end, uid string) int { return cmp.Compare(e.uid, uid) })
}

// span returns the bounds of the deletion.
func (e *end) span() span {
	at, ok := e.seen.produced()
	if !ok && e.seen.watch != noSight {
		at.nb = e.seen.watch
	}
	return at
}

// addBlind merges a write without a resourceVersion; it returns false if that is known.
func (o *object) addBlind(b blind) bool {
	var ok bool
	o.blinds, ok = insertBlind(o.blinds, b)
	return ok
}

// insertBlind inserts into a sorted list unless the write is there already.
func insertBlind(list []blind, b blind) ([]blind, bool) {
	i, known := slices.BinarySearchFunc(list, b, compareBlinds)
	if known {
		return list, false
	}
	return slices.Insert(list, i, b), true
}

// compareBlinds orders writes by when they were done at the latest.
func compareBlinds(a, b blind) int {
	return cmp.Or(compareSpans(a.span, b.span), cmp.Compare(a.form(), b.form()), cmp.Compare(a.digest, b.digest))
}

// addPresence merges what a listing showed; it returns false if that is known.
func (o *object) addPresence(p span) bool {
	if slices.Contains(o.present, p) {
		return false
	}
	o.present = append(o.present, p)
	return true
}

// maxMissing bounds how often it is remembered that a name was looked for in vain. Between the first and the last half of them others are
// dropped: they could only narrow an end.
const maxMissing = 32

// maxLookedFor bounds the names known only for having been looked for in vain, which clients choose. Further ones are not remembered: they
// would matter only if the object had been made before and its write arrived later.
const maxLookedFor = 1 << 16

// addMissing merges that no object of the name was found; it returns false if that is known, or not remembered.
func (o *object) addMissing(p span) bool {
	var ok bool
	o.missing, ok = insertMissing(o.missing, p)
	return ok
}

// addShown merges that an object of the name was found; it returns as addMissing.
func (o *object) addShown(p span) bool {
	var ok bool
	o.shown, ok = insertMissing(o.shown, p)
	return ok
}

// insertMissing inserts into a sorted list.
func insertMissing(list []span, p span) ([]span, bool) {
	i, known := slices.BinarySearchFunc(list, p, compareSpans)
	if known {
		return list, false
	}
	if list = slices.Insert(list, i, p); len(list) > maxMissing {
		list = slices.Delete(list, maxMissing/2, maxMissing/2+1)
		return list, i != maxMissing/2
	}
	return list, true
}

// presentIn reports whether a listing showed an object under this name.
func (o *object) presentIn(l *listing) bool { return slices.Contains(o.present, l.span) }
