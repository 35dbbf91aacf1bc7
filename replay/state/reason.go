package state

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// LostAnswer is what Reason and Doubt say of an object whose write may have been done.
const LostAnswer = "the answer to a write of it was lost"

// Reason returns in words why a State does not know what an RBAC object was at a moment: those that View lists in Unknown and UnknownKinds.
// A key without a Name asks about the objects of a namespace or, without a Namespace too, of a kind. It returns "" if the object is known,
// or known not to exist.
func (s *State) Reason(k rbacindex.Key, at time.Time) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := instant.Of(at)
	if t < s.policy {
		return forgotten
	}
	key := kept.KeyOf(k)
	if key.Name != "" {
		if obj := s.objects[key.Resource][key]; obj != nil {
			if i := stepAt(obj.line, t); i > 0 {
				switch st := &obj.line[i-1]; st.phase {
				case phasePresent:
					return ""
				case phaseUnknown:
					return obj.reason(st)
				}
			}
		}
	}
	for _, scope := range []kept.Key{{Resource: key.Resource}, {Resource: key.Resource, Namespace: key.Namespace}} {
		obj := s.objects[scope.Resource][scope]
		if obj == nil {
			continue
		}
		if i := stepAt(obj.line, t); i > 0 && obj.line[i-1].phase == phaseUnknown {
			return scopeReason(scope, obj.line, i)
		}
	}
	return ""
}

// reason says why a step of an object is unknown.
func (o *object) reason(st *step) string {
	when := when(st.na)
	switch {
	case st.Least != nil && st.Least.Cut && o.wasCut(st):
		return "its event of " + when + " was too large to be kept whole: it holds more than is known"
	case st.na == instant.None && len(o.versions)+len(o.blinds) > 0:
		return "it was there before the first write of it that was recorded, and what it held was not"
	case slices.ContainsFunc(o.blinds, func(b blind) bool { return b.maybe && b.span == st.span }):
		return LostAnswer + " by " + when + ": it may have been done"
	case st.na == instant.None:
		return "only its deletion was seen: what it held before was not recorded"
	case st.Most != nil && slices.ContainsFunc(o.blinds, func(b blind) bool { return b.span == st.span && b.content.Patch() != nil }):
		return "it was patched by " + when + ", and what the patch made of it is not known"
	case st.ending && slices.ContainsFunc(o.blinds, func(b blind) bool { return b.span == st.span && b.ending }):
		return "its deletion was asked for by " + when + ", and whether it has gone was not recorded"
	case st.ending && slices.ContainsFunc(o.blinds, func(b blind) bool { return b.span == st.span && b.update }):
		return "it was being deleted, and the write by " + when + ", whose answer was not recorded, may have ended it"
	case st.assumed:
		return "it was there since " + when + ", but what it held before it was first seen was not recorded"
	case slices.ContainsFunc(o.versions, func(v version) bool { return v.rv == st.rv && v.uid == st.uid && v.forgotten }):
		return "what it held at resourceVersion " + st.version(o.key).ResourceVersion + " is forgotten: " + tooMuch
	case slices.ContainsFunc(o.versions, func(v version) bool { return v.rv == st.rv && v.uid == st.uid && st.rv != 0 }):
		return "it was written at resourceVersion " + st.version(o.key).ResourceVersion + " by " + when +
			", and what was written was not recorded"
	case slices.ContainsFunc(o.blinds, func(b blind) bool {
		return b.span.na >= st.na && b.span.nb <= st.na && (b.content != nil || b.absent)
	}):
		return "several writes overlapped by " + when + ": which came last cannot be told"
	case slices.ContainsFunc(o.blinds, func(b blind) bool { return b.span.na >= st.na && b.span.nb <= st.na }):
		return "it was written by " + when + ", and what was written was not recorded"
	}
	return "it may have been deleted by " + when + ", with others whose names were not recorded"
}

// wasCut reports whether a part of a step's write was cut out.
func (o *object) wasCut(st *step) bool {
	return slices.ContainsFunc(o.versions, func(v version) bool {
		return v.rv == st.rv && v.uid == st.uid && v.content != nil && v.content.Cut
	}) ||
		slices.ContainsFunc(o.blinds, func(b blind) bool { return b.span == st.span && b.content != nil && b.content.Cut })
}

// scopeReason says why a scope is unknown at step i-1 of its line.
func scopeReason(scope kept.Key, line []step, i int) string {
	st := &line[i-1]
	kind := scope.Resource.RBACKind().String()
	until := ""
	for _, later := range line[i:] {
		if later.phase == phaseAbsent {
			until = when(later.na)
			break
		}
	}
	switch {
	case scope.Namespace != "":
		return kind + "s in " + scope.Namespace + " whose names were not recorded changed by " + when(st.na)
	case st.na == instant.None && until == "":
		return "no complete listing of " + kind + "s was ever taken"
	case st.na == instant.None:
		return "nothing tells what " + kind + "s there were before the first complete listing, by " + until
	case until == "":
		return "changes of " + kind + "s were not followed from " + when(st.na) + " on"
	}
	return "changes of " + kind + "s were not followed from " + when(st.na) + " until the listing by " + until
}

func when(t int64) string { return instant.Time(t).Format(time.RFC3339Nano) }

// Doubt returns in words why it is not certain what an object was between two moments: it was unknown, or it was still there after its
// deletion had been requested; "" if it is certain. It is stricter than Version, whose answer may rest on a deletion whose end nobody saw.
func (s *State) Doubt(resource, namespace, name string, from, to time.Time) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj := s.objects[kept.ResourceOf(resource)][kept.Key{Resource: kept.ResourceOf(resource), Namespace: namespace, Name: name}]
	if obj == nil {
		return ""
	}
	steps, _ := inForce(obj.line, instant.Of(from), instant.Of(to))
	for i := range steps {
		switch st := &steps[i]; {
		case st.phase == phaseUnknown:
			return obj.reason(st)
		case st.phase == phasePresent && st.isEnding():
			return "it was being deleted by " + when(st.na)
		}
	}
	return ""
}
