package state

import (
	"cmp"
	"slices"
	"sort"

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

// same tells whether two steps cannot be told apart by any view.
func (s *step) same(t *step) bool {
	if s.phase != t.phase || !s.Least.SameMeaning(t.Least) || !s.Most.SameMeaning(t.Most) {
		return false
	}
	return s.phase != phasePresent || s.uid == t.uid && s.content.SameMeaning(t.content)
}

// equal tells whether two steps are the same step: it must hold for every field, or a
// correction of it would go unnoticed.
func (s *step) equal(t *step) bool {
	return s.span == t.span && s.assumed == t.assumed && s.rv == t.rv && s.same(t) && s.uid == t.uid
}

// resolve derives the steps of an object from everything observed of it. It is a function
// of the set of observations alone.
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

// incarnations groups versions and ends by uid, in the order of resourceVersions; a uid of
// which only the end was seen takes its place by time.
func (o *object) incarnations() []incarnation {
	var incs []incarnation
	for i := range o.versions {
		uid := o.versions[i].uid
		if n := len(incs); n == 0 || incs[n-1].uid != uid {
			incs = append(incs, incarnation{uid: uid, versions: o.versions[i:i], blinds: o.blinds})
			if e := o.endOf(uid); e != nil {
				incs[n].end, incs[n].ended, incs[n].perhaps = e.span(), true, e.perhaps
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
				bare = append(bare, incarnation{uid: e.uid, end: e.span(), ended: true, perhaps: e.perhaps, blinds: o.blinds})
			}
		}
	}
	sort.Slice(bare, func(i, j int) bool {
		a, b := bare[i].end, bare[j].end
		if a != b {
			return a.na < b.na || a.na == b.na && a.nb < b.nb
		}
		return bare[i].uid < bare[j].uid
	})
	for _, b := range bare {
		at := len(incs)
		for at > 0 && incs[at-1].follows(b.end) {
			at--
		}
		incs = slices.Insert(incs, at, b)
	}
	return incs
}

// insertAbsences ends objects that a later complete listing did not show, or that were looked
// for in vain later, and whose deletion was not seen.
func (o *object) insertAbsences(steps []step, incs []incarnation, listings []*listing) []step {
	if len(o.missing) > 0 {
		all := make([]*listing, 0, len(o.missing)+len(listings))
		for i := range o.missing {
			all = append(all, &listing{presence: o.missing[i]})
		}
		listings = append(all, listings...)
		slices.SortStableFunc(listings, func(a, b *listing) int {
			return cmp.Or(cmp.Compare(a.ended, b.ended), cmp.Compare(a.began, b.began))
		})
	}
	for _, l := range listings {
		i := len(steps) - 1
		for i >= 0 && steps[i].na > l.began {
			i--
		}
		if i < 0 || steps[i].phase == phaseAbsent || o.presentIn(l) || !steps[i].settledBy(l.began) || outstanding(steps[:i+1], l.began) {
			continue
		}
		if i+1 < len(steps) {
			// Something is known to follow. An end nobody saw was over by the listing's
			// end; anything else shows that the object lived on or how it ended.
			if s := &steps[i+1]; s.phase == phaseAbsent && s.assumed {
				s.na = max(s.nb, min(s.na, l.ended))
			}
			continue
		}
		uid := steps[i].uid
		if slices.ContainsFunc(incs, func(in incarnation) bool { return in.uid == uid && in.ended }) ||
			slices.ContainsFunc(o.versions, func(v version) bool { return v.uid == uid && v.seen.last.nb >= l.ended }) ||
			slices.ContainsFunc(o.blinds, func(b blind) bool { return b.created && b.na > l.began }) {
			continue
		}
		steps = append(steps, step{span: span{steps[i].na, l.ended}, phase: phaseAbsent, assumed: true})
	}
	return steps
}

// outstanding tells whether the last of some steps overlaps one that may have become effective after a
// moment: what was not there then may have come since.
func outstanding(steps []step, at int64) bool {
	last := &steps[len(steps)-1]
	return last.phase == phaseUnknown && last.rv == 0 && slices.ContainsFunc(steps, func(s step) bool { return s.na > at && s.overlaps(last.span) })
}

// insertBlinds places writes without a resourceVersion among the steps, by time. One that
// overlaps another change leaves the object unknown: which came last cannot be told. contested are
// deletions that another write may have undone.
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
	// The last of several that were made is the one that is known otherwise.
	for i := len(left) - 1; i >= 0; i-- {
		if left[i].created && o.creation(steps, left[i]) {
			left = slices.Delete(left, i, i+1)
		}
	}
	if len(contested) > 0 {
		for i := range contested {
			left = append(left, &contested[i])
		}
		slices.SortStableFunc(left, func(a, b *blind) int { return cmp.Or(cmp.Compare(a.na, b.na), cmp.Compare(a.nb, b.nb)) })
	}
	for _, b := range left {
		steps = o.insertBlind(steps, b, true)
	}
	for i := range scope {
		steps = o.insertBlind(steps, &scope[i], false)
	}
	return steps
}

// heldBefore puts first what may have been there before a write whose answer was lost, when the
// earliest write of which more is known found an object: the lost one made it, or it had been there.
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
	vacant := func(p presence) bool { return p.ended <= steps[0].nb }
	if slices.ContainsFunc(o.missing, vacant) || slices.ContainsFunc(listings, func(l *listing) bool { return vacant(l.presence) && !o.presentIn(l) }) {
		return steps
	}
	return slices.Insert(steps, 0, step{span: span{instant.None, instant.None}, phase: phaseUnknown, assumed: true, ending: true})
}

// watched tells whether a watch saw what the write did: the first version or end that only
// a watch reported and whose bounds meet the write's.
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

// insertBlind places one write. creates tells whether it can bring an absent object into
// being.
func (o *object) insertBlind(steps []step, b *blind, creates bool) []step {
	at, clash, gone := 0, false, false
	for i := range steps {
		if steps[i].na <= b.nb || steps[i].overlaps(b.span) {
			at = i + 1
			clash = clash || steps[i].overlaps(b.span)
		}
	}
	if b.maybe && clash {
		if first := seenAround(steps, at, b.span); first >= 0 {
			at, clash = first, false
		} else if gone = endsAround(steps, at, b.span); gone {
			at, clash = at-1, false
		}
	}
	if creates && at == 0 && !clash && b.follows() && !b.maybe {
		// It was there before, with content nobody recorded, perhaps being deleted.
		steps = slices.Insert(steps, 0, step{span: span{instant.None, instant.None}, phase: phaseUnknown, assumed: true, ending: true})
		at = 1
	}
	// before is the step in force when the write was made.
	absent := at == 0 || steps[at-1].phase == phaseAbsent
	if absent && !clash && (!creates || b.absent || b.maybe && b.ending) {
		return steps
	}
	if clash && steps[at-1].phase == phaseAbsent && !steps[at-1].assumed && b.unchanged && (o.key.Resource.RBACKind() == 0 || b.content != nil && b.content.Deleting) {
		return steps // it had ended when both were done: none of the two can make an object
	}
	ending := b.unchanged && b.content != nil && b.content.Deleting // it, or what it overlaps or follows, may be its deletion
	for i := range steps[:at] {
		ending = ending || (i == at-1 || steps[i].overlaps(b.span)) && (steps[i].isEnding() || steps[i].phase == phaseAbsent)
	}
	if clash && b.unchanged && b.content == nil && !ending {
		return steps // whichever came last
	}
	s := step{span: b.span, phase: phaseUnknown, ending: b.ending || clash && ending}
	if !b.created {
		s.as = carryDoubt
	}
	if creates && at > 0 && !clash && !b.created && !b.absent && !b.ending {
		s.as |= carryRole
	}
	if !clash && b.absent {
		s.phase, s.as = phaseAbsent, carryNothing
	}
	if b.created && (b.content == nil || b.maybe || clash) {
		o.unnamed(steps[:at], b)
	}
	if o.key.Resource.RBACKind() != 0 && !clash && !b.absent && (b.ending || b.maybe) {
		s.as |= carryLost
		if s.content = b.content; b.created {
			s.as |= carryMade
		}
		if b.maybe {
			s.as |= carryLate
		}
		if gone {
			s.as |= carryGone
		}
	} else if !clash && !b.maybe && (b.content != nil || b.unchanged) {
		s.phase, s.content, s.as = phasePresent, b.content, carryNothing
		switch {
		case absent:
		case b.created:
			steps, at, s.uid = o.replaced(steps, at, b)
		default:
			s.uid = steps[at-1].uid
		}
		if b.unchanged {
			s.as |= carryContent
		}
		if b.update {
			s.as |= carryLife
		}
		if b.content.Patch() != nil {
			s.as |= carryPatched
		}
	}
	add := []step{s}
	// Seen again later as it was before: from then on it is known once more.
	for i := range o.versions {
		v := &o.versions[i]
		if at > 0 && steps[at-1].rv == v.rv && steps[at-1].uid == v.uid && v.rv != 0 && v.seen.last.nb >= b.na+b.lingers() {
			again := steps[at-1]
			again.span, again.assumed = v.seen.last, true
			add = append(add, again)
		}
	}
	steps = slices.Insert(steps, at, add...)
	if b.maybe && s.as&carryLost != 0 {
		steps = o.mayFollow(steps, at+len(add), &s)
	}
	return steps
}

// replaced makes place for an object that was made while another was taken to be there, which had
// gone, unseen. It returns the uid of the new one, where only its end was seen.
func (o *object) replaced(steps []step, at int, b *blind) ([]step, int, string) {
	before := steps[at-1]
	if before.bare() {
		return slices.Delete(steps, at-1, at), at - 1, before.uid // this is how it came
	}
	uid := o.unnamed(steps[:at], b)
	if before.phase == phasePresent {
		steps = slices.Insert(steps, at, step{span: span{before.na, b.na}, phase: phaseAbsent, assumed: true})
		at++
	}
	return steps, at, uid
}

// unnamed takes from the steps before a write that made an object, or may have made one, the uid
// of which only the end was seen, and returns it: it was given to the one before for want of another.
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

// creation tells whether a write that made an object made one that is known otherwise, from a
// listing or a later write, and takes its time for that of the creation.
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

// seenBetween tells whether an object was seen when one of two writes that made one had been done, and
// the other had not: the first made it.
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

// tighten makes the order of the steps show in their bounds: a change cannot have become
// effective before the one it follows, nor be outstanding once a later one is done.
func tighten(steps []step) {
	for i := len(steps) - 2; i >= 0; i-- {
		steps[i].na = min(steps[i].na, steps[i+1].na)
	}
	nb := instant.None
	for i := range steps {
		nb = max(nb, steps[i].nb)
		steps[i].nb = min(nb, steps[i].na)
		nb = steps[i].nb
	}
}
