package state

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/instant"
)

// incarnation is the life of one uid under a name.
type incarnation struct {
	uid      string
	versions []version // a stretch of the object's versions
	blinds   []blind   // all of the object's
	end      span
	ended    bool
	perhaps  bool   // as of an end
	last     uint64 // as rv of an end
}

// first returns the bounds of the incarnation's first known moment.
func (in *incarnation) first() span {
	if len(in.versions) == 0 {
		return in.end
	}
	steps := in.steps(nil, instant.None)
	return steps[0].span
}

// follows reports whether the incarnation came after another had ended: two cannot have one name at once.
func (in *incarnation) follows(other *incarnation) bool {
	if len(in.versions) > 0 && other.last > 0 {
		return in.versions[0].rv > other.last
	}
	first, end := in.first(), other.end
	if first.na >= end.na || len(in.versions) == 0 {
		return first.na >= end.na
	}
	return in.versions[0].made && first.na > end.nb || slices.ContainsFunc(in.versions, func(v version) bool {
		return v.seen.last.nb >= end.na // it was there later
	})
}

// creation returns the second in which the object was created, if it is known.
func (in *incarnation) creation() (span, bool) {
	for i := range in.versions {
		if c := in.versions[i].content; c != nil && c.Created != instant.None {
			return span{c.Created, c.Created + int64(time.Second)}, true
		}
	}
	return span{}, false
}

// rewritten reports whether a write in between may have changed what is kept of the object.
func (in *incarnation) rewritten(from, to int64) bool {
	return slices.ContainsFunc(in.blinds, func(b blind) bool {
		return !b.created && !b.unchanged && !b.ending && !b.absent && b.na > from && b.nb <= to
	})
}

// bare reports whether a step is of an incarnation of which only the end was seen.
func (s *step) bare() bool { return s.phase == phaseUnknown && s.assumed && s.rv == 0 && s.uid != "" }

// steps appends the steps of the incarnation's versions; since is when the one before it ended.
func (in *incarnation) steps(steps []step, since int64) []step {
	if len(in.versions) == 0 {
		// Only its end was seen: it existed before, with content that was not recorded.
		return append(steps, before(span{since, since}, in.uid))
	}
	for i := range in.versions {
		v := &in.versions[i]
		s := step{phase: phasePresent, rv: v.rv, uid: v.uid, content: v.content}
		switch {
		case v.unchanged:
			s.as = carryContent
		case v.content == nil && i > 0:
			s.phase, s.ending, s.as = phaseUnknown, true, carryRole // for all that is known
		case v.content == nil:
			s.phase, s.ending = phaseUnknown, true
		}
		var produced bool
		s.span, produced = v.seen.produced()
		switch {
		case i == 0:
			steps = in.begin(steps, &s, produced, since)
		case !produced:
			s.nb = max(steps[len(steps)-1].nb, in.versions[i-1].seen.last.nb)
			s.na = max(s.na, s.nb)
			s.assumed = true
		}
		if produced && v.perhaps && in.contested(i, s.span) {
			s.as = carryNothing
			s.unknown(true)
		}
		steps = append(steps, s)
	}
	return steps
}

// before returns the step of an object that was there with unrecorded content, perhaps being deleted.
func before(at span, uid string) step {
	return step{span: at, phase: phaseUnknown, assumed: true, ending: true, uid: uid}
}

// begin places the step of the first known version and appends what stood before it.
func (in *incarnation) begin(steps []step, s *step, produced bool, since int64) []step {
	v := &in.versions[0]
	created, dated := in.creation()
	switch {
	case !produced && dated && in.rewritten(created.nb, v.seen.na):
		// What it had become does not tell what it was when created.
		steps = append(steps, before(span{created.nb, min(created.na, v.seen.na)}, v.uid))
		s.span, s.assumed = v.seen.last, true
	case !produced && dated:
		// Holds back to its creation, as far as anyone can tell.
		s.span, s.assumed = span{created.nb, min(created.na, v.seen.na)}, true
	case !produced:
		s.assumed = true
	case dated && (created.na <= s.nb || v.updated && !v.made):
		// The first write seen is not the creation: before it stood other content.
		steps = append(steps, before(span{created.nb, min(created.na, s.nb)}, v.uid))
	case v.content == nil && v.updated && !v.made:
		// Nor is it here, and when it was made is unknown.
		steps = append(steps, before(span{since, since}, v.uid))
	}
	if !produced && s.phase == phasePresent && s.as == carryNothing && v.content.Deletion != instant.None {
		// Seen while being deleted, which it was not before its deletion was requested.
		was := *s
		was.content = v.content.With(&content.Content{Created: v.content.Created, Deletion: instant.None})
		steps = append(steps, was)
		s.span = span{max(s.nb, v.content.Deletion), max(s.na, min(v.content.Deletion+int64(time.Second), v.seen.na))}
	}
	return steps
}

// contested reports whether another write of the incarnation was under way at the same time as the one that produced a version.
func (in *incarnation) contested(i int, at span) bool {
	for k := range in.versions {
		if other, produced := in.versions[k].seen.produced(); k != i && produced && other.overlaps(at) {
			return true
		}
	}
	return slices.ContainsFunc(in.blinds, func(b blind) bool { return b.overlaps(at) })
}
