package state

import (
	"cmp"
	"slices"

	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/instant"
)

// phase is what a step says of an object.
type phase uint8

const (
	phaseAbsent phase = iota
	phasePresent
	phaseUnknown // may be there with any content, or not be there
)

// step is one change in the life of a name: from somewhere in its span on, the object is
// in this phase. Steps of an object are in order; the spans' ends never decrease.
type step struct {
	span
	phase          phase
	assumed        bool             // not bracketed by an observed write
	rv             uint64           // 0 when not known
	uid            string           // "" when not known
	content        *content.Content // phasePresent only
	content.Bounds                  // phaseUnknown only: an object between two contents that are known
	mayEnd         bool             // a write that nobody knows the outcome of may end it
	ending         bool             // its deletion has been asked for, or may have been
	as             carry
}

// same reports whether no view can tell two steps apart.
func (s *step) same(t *step) bool {
	if s.phase != t.phase || !s.Least.SameMeaning(t.Least) || !s.Most.SameMeaning(t.Most) {
		return false
	}
	return s.phase != phasePresent || s.uid == t.uid && s.content.SameMeaning(t.content)
}

// identical reports whether two steps say the same of the same version.
func (s *step) identical(t *step) bool { return s.same(t) && s.rv == t.rv && s.uid == t.uid }

// equal reports whether two steps are the same: it must compare every field, or a correction would go unnoticed.
func (s *step) equal(t *step) bool {
	return s.span == t.span && s.assumed == t.assumed && s.identical(t)
}

// resolve derives the steps of an object from everything observed of it: a function of the set of observations alone.
func (o *object) resolve(scope []blind, listings []*listing) []step {
	incs := o.incarnations()
	var contested []blind
	for i := range incs {
		if in := &incs[i]; in.perhaps && in.contested(-1, in.end) {
			in.ended = false
			contested = append(contested, blind{span: in.end, ending: true})
		}
	}
	steps := make([]step, 0, len(o.versions)+len(o.ends)+1)
	for i := range incs {
		inc := &incs[i]
		since := instant.None
		if len(steps) > 0 {
			since = steps[len(steps)-1].na
		}
		steps = inc.steps(steps, since)
		if inc.ended {
			steps = append(steps, step{span: inc.end, phase: phaseAbsent})
			continue
		}
		if i+1 < len(incs) {
			// A newer uid took the name: this one ended in between, unseen.
			last, next := steps[len(steps)-1].span, incs[i+1].first()
			steps = append(steps, step{span: span{last.na, max(last.na, next.na)}, phase: phaseAbsent, assumed: true})
		}
	}
	closeSpans(steps)
	steps = o.madeUnheard(steps, listings)
	steps = o.insertBlinds(steps, contested, scope)
	steps = o.heldBefore(steps, listings)
	steps = o.insertShown(steps)
	o.carry(steps)
	steps = slices.DeleteFunc(steps, func(s step) bool { return s.as&carryShown != 0 })
	bound(steps)
	steps = o.insertAbsences(steps, incs, listings)
	tighten(steps)
	return slices.Clip(steps)
}

// incarnations groups versions and ends by uid, in the order of resourceVersions; a uid of which only the end was seen is placed by time.
func (o *object) incarnations() []incarnation {
	var incs []incarnation
	for i := range o.versions {
		uid := o.versions[i].uid
		if n := len(incs); n == 0 || incs[n-1].uid != uid {
			incs = append(incs, incarnation{uid: uid, versions: o.versions[i:i], blinds: o.blinds})
			if i, known := o.endOf(uid); known {
				incs[n].end, incs[n].ended, incs[n].perhaps = o.ends[i].span(), true, o.ends[i].perhaps
			}
		}
		in := &incs[len(incs)-1]
		in.versions = in.versions[:len(in.versions)+1]
	}
	var bare []incarnation
	if len(o.ends) > 0 {
		known := make(map[string]bool, len(incs))
		for i := range incs {
			known[incs[i].uid] = true
		}
		for i := range o.ends {
			if e := &o.ends[i]; !known[e.uid] {
				bare = append(bare, incarnation{uid: e.uid, last: e.rv, end: e.span(), ended: true, perhaps: e.perhaps, blinds: o.blinds})
			}
		}
	}
	slices.SortFunc(bare, func(a, b incarnation) int { return cmp.Or(compareSpans(a.end, b.end), cmp.Compare(a.uid, b.uid)) })
	for _, b := range bare {
		at := len(incs)
		for at > 0 && incs[at-1].follows(&b) {
			at--
		}
		incs = slices.Insert(incs, at, b)
	}
	return incs
}

// insertAbsences ends objects whose deletion was not seen, but which a later complete listing did not show, or which were looked for in
// vain.
func (o *object) insertAbsences(steps []step, incs []incarnation, listings []*listing) []step {
	if len(o.missing) > 0 {
		all := make([]*listing, 0, len(o.missing)+len(listings))
		for i := range o.missing {
			all = append(all, &listing{span: o.missing[i]})
		}
		listings = append(all, listings...)
		slices.SortStableFunc(listings, func(a, b *listing) int { return compareSpans(a.span, b.span) })
	}
	for _, l := range listings {
		i := len(steps) - 1
		for i >= 0 && steps[i].na > l.nb {
			i--
		}
		if i < 0 || steps[i].phase == phaseAbsent || o.presentIn(l) || !steps[i].settledBy(l.nb) || outstanding(steps[:i+1], l.nb) {
			continue
		}
		if i+1 < len(steps) {
			// Something is known to follow. An end nobody saw was over by the listing's
			// end; anything else shows that the object lived on or how it ended.
			if s := &steps[i+1]; s.phase == phaseAbsent && s.assumed {
				s.na = max(s.nb, min(s.na, l.na))
			}
			continue
		}
		uid := steps[i].uid
		if slices.ContainsFunc(incs, func(in incarnation) bool { return in.uid == uid && in.ended }) ||
			slices.ContainsFunc(o.versions, func(v version) bool { return v.uid == uid && v.seen.last.nb >= l.na }) ||
			slices.ContainsFunc(o.blinds, func(b blind) bool { return b.created && b.na > l.nb }) {
			continue
		}
		steps = append(steps, step{span: span{steps[i].na, l.na}, phase: phaseAbsent, assumed: true})
	}
	return steps
}

// outstanding reports whether the last of some steps overlaps one that may have become effective after a moment: an object absent then may
// have appeared since.
func outstanding(steps []step, at int64) bool {
	last := &steps[len(steps)-1]
	return last.phase == phaseUnknown && last.rv == 0 && slices.ContainsFunc(steps, func(s step) bool {
		return s.na > at && s.overlaps(last.span)
	})
}

// insertBlinds places writes without a resourceVersion among the steps, by time. One that overlaps another change leaves the object
// unknown, as either may have come last. contested has deletions that another write may have undone.
func (o *object) insertBlinds(steps []step, contested, scope []blind) []step {
	if len(o.blinds) == 0 && len(contested) == 0 && len(scope) == 0 {
		return steps
	}
	used := make([]bool, len(o.versions)+len(o.ends))
	left := make([]*blind, 0, len(o.blinds))
	for i := range o.blinds {
		if b := &o.blinds[i]; !o.watched(b, used) {
			left = append(left, b)
		}
	}
	// The last of several creations is the one that is otherwise known.
	for i := len(left) - 1; i >= 0; i-- {
		if left[i].created && o.creation(steps, left[i]) {
			left = slices.Delete(left, i, i+1)
		}
	}
	if len(contested) > 0 {
		for i := range contested {
			left = append(left, &contested[i])
		}
		slices.SortStableFunc(left, func(a, b *blind) int { return compareSpans(a.span, b.span) })
	}
	for _, b := range left {
		steps = o.insertBlind(steps, b, true)
	}
	for i := range scope {
		steps = o.insertBlind(steps, &scope[i], false)
	}
	return steps
}

// heldBefore puts first what may have existed before a write whose answer was lost, if the earliest better known write found an object: the
// lost write made it, or it had existed.
func (o *object) heldBefore(steps []step, listings []*listing) []step {
	var found *blind
	lost := false
	for i := range o.blinds {
		switch b := &o.blinds[i]; {
		case b.maybe:
			lost = true
		case found == nil || b.na < found.na:
			found = b
		}
	}
	if len(steps) == 0 || steps[0].nb == instant.None || !lost || found == nil || !found.follows() ||
		slices.ContainsFunc(o.versions, func(v version) bool { return v.seen.na <= found.na }) {
		return steps
	}
	vacant := func(p span) bool { return p.na <= steps[0].nb }
	if slices.ContainsFunc(o.missing, vacant) || slices.ContainsFunc(listings, func(l *listing) bool {
		return vacant(l.span) && !o.presentIn(l)
	}) {
		return steps
	}
	return slices.Insert(steps, 0, before(noSpan, ""))
}

// watched reports whether a watch saw what the write did: the first version or end that only a watch reported and whose bounds overlap the
// write's.
func (o *object) watched(b *blind, used []bool) bool {
	meets := func(i int, s *sightings) bool {
		if used[i] || s.audit != noSight || s.watch == noSight || s.watch > b.na || s.na < b.nb {
			return false
		}
		used[i] = true
		return true
	}
	for i := range o.versions {
		if meets(i, &o.versions[i].seen) {
			return true
		}
	}
	for i := range o.ends {
		if meets(len(o.versions)+i, &o.ends[i].seen) {
			return true
		}
	}
	return false
}

// unnamed removes, from the steps before a write that made or may have made an object, a uid of which only the end was seen, and returns
// it: the object before had got it for lack of another.
func (o *object) unnamed(steps []step, b *blind) string {
	uid := ""
	for i := len(steps) - 1; i >= 0 && (steps[i].phase != phaseAbsent || steps[i].assumed || steps[i].overlaps(b.span)); i-- {
		s := &steps[i]
		if s.uid != "" && (uid == "" || s.uid == uid) && !slices.ContainsFunc(o.versions, func(v version) bool { return v.uid == s.uid }) {
			uid, s.uid = s.uid, ""
		}
	}
	return uid
}

// creation reports whether a write that made an object made one already known from a listing or a later write, and sets that one's creation
// to the write's time.
func (o *object) creation(steps []step, b *blind) bool {
	for i := range steps {
		s := &steps[i]
		lives := i+1 < len(steps) && steps[i+1].uid == s.uid && steps[i+1].phase != phaseAbsent
		over := i+1 < len(steps) && steps[i+1].na <= b.nb // it had come, and what followed, too
		if s.uid == "" || !s.assumed || s.bare() && !lives || i > 0 && steps[i-1].uid == s.uid || s.nb > b.na || s.na < b.nb || over {
			continue
		}
		if b.maybe && s.seenLater() {
			s.span = span{max(s.nb, b.nb), o.seenBy(s, b.na)}
			return false
		}
		if slices.ContainsFunc(o.blinds, func(c blind) bool {
			return c.created && c != *b && s.nb <= c.na && s.na >= c.nb && !o.seenBetween(s.uid, b, &c)
		}) {
			continue // it may be the one that another write made
		}
		if s.phase == phaseUnknown && b.content != nil && !b.maybe {
			s.phase, s.content = phasePresent, b.content
		}
		s.span = span{max(s.nb, b.nb), b.na}                           // which may be after the second of its creation
		for j := i + 1; j < len(steps) && steps[j].uid == s.uid; j++ { // what was seen of it, was after
			steps[j].nb = min(max(steps[j].nb, s.nb), steps[j].na)
		}
		return true
	}
	return false
}

// seenBetween reports whether an object was seen after one of two writes that made one was done, and before the other: then the first made
// it.
func (o *object) seenBetween(uid string, maker, other *blind) bool {
	return slices.ContainsFunc(o.versions, func(v version) bool {
		switch {
		case v.uid != uid:
			return false
		case other.na <= maker.nb: // what that one made had gone when this one was made
			return v.seen.last.nb >= maker.na
		}
		return other.nb >= maker.na && v.seen.na < other.nb
	})
}

// closeSpans ends the spans of the steps by those that follow: no change is outstanding once a later one is done. Whatever a listing
// showed of an object it showed before the object ended, however late the listing itself did:
//
//	listing     ├───────────┤      shows it
//	steps     ──┼────┼─────────▶   there, ended
//	write              ├──┤        comes after the end
func closeSpans(steps []step) {
	for i := len(steps) - 2; i >= 0; i-- {
		s := &steps[i]
		s.na = min(s.na, steps[i+1].na)
		s.nb = min(s.nb, s.na)
	}
}

// tighten narrows the bounds of the steps to their order: a change cannot have become effective before the one it follows, nor be
// outstanding once a later one is done.
func tighten(steps []step) {
	closeSpans(steps)
	nb := instant.None
	for i := range steps {
		nb = max(nb, steps[i].nb)
		steps[i].nb = min(nb, steps[i].na)
		nb = steps[i].nb
	}
}
