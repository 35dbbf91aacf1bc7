package state

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Prune forgets what was over before a moment: versions that were replaced by then,
// objects that had ended, listings and gaps that later ones outdate. Every answer about
// that moment or a later one stays as it is; about an earlier one everything is unknown from
// then on. An observation from before the moment that comes later still counts, but what it
// says of an object that is not kept is only that it is unknown. A moment before that of an
// earlier Prune does nothing. It returns how many versions, ends and writes were dropped.
//
// What cannot be dropped without changing a later answer stays, whatever its age: each
// cut is tried and taken back if it changes one. The cost is that of resolving everything
// a few times.
//
// Of credentials those are forgotten that had expired, or of which it is not known, been
// issued. That one was never issued is not told any more once any was.
func (s *State) Prune(before time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	horizon, had := instant.Of(before), s.size()
	if !s.forget(horizon) {
		return 0
	}
	s.prunePods(horizon)
	s.pruneCredentials(horizon)
	for _, objects := range s.objects {
		for k, obj := range objects {
			if k.Name == "" {
				continue
			}
			cut := *obj
			if cut.prune(horizon) && sameSince(obj.line, s.line(&cut), horizon) {
				obj.versions, obj.ends, obj.blinds, obj.missing, obj.shown = cut.versions, cut.ends, cut.blinds, cut.missing, cut.shown
			}
		}
	}
	for res := kept.ResNone + 1; res < kept.ResCount; res++ {
		s.pruneScopes(res, horizon)
	}
	var dirty []kept.Key
	s.versions = 0
	for _, objects := range s.objects {
		for k, obj := range objects {
			s.versions += obj.size()
			dirty = append(dirty, k)
		}
	}
	for _, list := range s.gone {
		s.versions += len(list)
	}
	for _, list := range s.pods.blinds {
		s.versions += len(list)
	}
	for _, table := range []map[podName][]presence{s.pods.missing, s.pods.loosened} {
		for _, list := range table {
			s.versions += len(list)
		}
	}
	s.resolve(dirty)
	for _, objects := range s.objects {
		for k, obj := range objects {
			if obj.size() == 0 && (k.Name != "" || k.Namespace != "") {
				delete(objects, k)
				s.dropStandIn(k)
			}
		}
	}
	s.lookedFor = 0
	for _, objects := range s.objects {
		for _, obj := range objects {
			if n := len(obj.missing) + len(obj.shown); n > 0 && n == obj.size() {
				s.lookedFor++
			}
		}
	}
	for role, bindings := range s.refs {
		for b := range bindings {
			if s.objects[b.Resource][b] == nil {
				delete(bindings, b)
			}
		}
		if len(bindings) == 0 {
			delete(s.refs, role)
		}
	}
	s.recount()
	s.graph.Prune(before)
	s.in.Forget() // names of what is gone; those in use are interned anew as they come
	return had - s.size()
}

// pruneScopes drops the listings, gaps and unlisted deletions of a resource that no answer
// since the horizon depends on: all but the last listing before it, and what that outdates.
func (s *State) pruneScopes(res kept.Resource, horizon int64) {
	listings := s.listings[res]
	i := len(listings) - 1
	for i >= 0 && listings[i].ended > horizon {
		i--
	}
	if i < 0 {
		return
	}
	outdated := func(b blind) bool { return b.na <= listings[i].began }
	var pods map[podName][]podStep
	if res == kept.ResPod {
		pods = s.podLines()
	}
	type saved struct {
		obj     *object
		blinds  []blind
		present []presence
	}
	var undo []saved
	gone := map[kept.Key][]blind{}
	for k, list := range s.gone {
		if k.Resource == res {
			gone[k] = list
			s.gone[k] = slices.DeleteFunc(slices.Clone(list), outdated)
		}
	}
	s.listings[res] = slices.Clone(listings[i:])
	for k, obj := range s.objects[res] {
		undo = append(undo, saved{obj, obj.blinds, obj.present})
		if k.Name == "" {
			obj.blinds = slices.DeleteFunc(slices.Clone(obj.blinds), outdated)
		}
		obj.present = slices.DeleteFunc(slices.Clone(obj.present), func(p presence) bool {
			return slices.ContainsFunc(listings[:i], func(l *listing) bool { return l.presence == p })
		})
	}
	same := true
	for _, u := range undo {
		same = same && sameSince(u.obj.line, s.line(u.obj), horizon)
	}
	for n, line := range pods {
		same = same && samePodsSince(line, s.podSteps(nil, n), horizon)
	}
	if !same {
		s.listings[res] = listings
		for k, list := range gone {
			s.gone[k] = list
		}
		for _, u := range undo {
			u.obj.blinds, u.obj.present = u.blinds, u.present
		}
		return
	}
	for k := range gone {
		if len(s.gone[k]) == 0 {
			delete(s.gone, k)
		}
	}
}

// sameSince tells whether two lines give the same answers about a moment and all later
// ones.
func sameSince(a, b []step, at int64) bool {
	x, y := stepAt(a, at), stepAt(b, at)
	if len(a)-x != len(b)-y {
		return false
	}
	for i, j := x, y; i < len(a); i, j = i+1, j+1 {
		if !a[i].equal(&b[j]) {
			return false
		}
	}
	var was, is step // absent
	if x > 0 {
		was = a[x-1]
	}
	if y > 0 {
		is = b[y-1]
	}
	return was.same(&is) && was.rv == is.rv && was.uid == is.uid
}

// stepAt returns the index of the first step that was not certainly in force at a moment.
func stepAt(line []step, at int64) int {
	i := len(line)
	for i > 0 && line[i-1].na > at {
		i--
	}
	return i
}

// prune drops what stood before the step in force at the horizon; false when that is
// nothing.
func (o *object) prune(horizon int64) bool {
	had := o.size()
	var base step // absent
	i := stepAt(o.line, horizon) - 1
	if i >= 0 {
		base = o.line[i]
	}
	o.missing = slices.DeleteFunc(slices.Clone(o.missing), func(p presence) bool {
		return p.ended <= horizon && (base.phase == phaseAbsent || p.ended < base.na)
	})
	o.shown = slices.DeleteFunc(slices.Clone(o.shown), func(p presence) bool {
		return p.ended <= horizon && (base.phase != phaseUnknown || p.ended < base.na)
	})
	if i < 0 {
		return o.size() < had
	}
	type id struct {
		rv  uint64
		uid string
	}
	needed, lives := map[id]bool{}, map[string]bool{}
	for _, st := range o.line[i:] {
		needed[id{st.rv, st.uid}] = true
	}
	for i := len(o.versions) - 1; i > 0; i-- {
		if v, w := &o.versions[i], &o.versions[i-1]; v.unchanged && v.uid == w.uid && needed[id{v.rv, v.uid}] {
			needed[id{w.rv, w.uid}] = true // which says what it holds
		}
	}
	o.versions = slices.DeleteFunc(slices.Clone(o.versions), func(v version) bool {
		keep := needed[id{v.rv, v.uid}]
		lives[v.uid] = lives[v.uid] || keep
		return !keep
	})
	o.ends = slices.DeleteFunc(slices.Clone(o.ends), func(e end) bool {
		return e.span().na <= horizon && !lives[e.uid]
	})
	o.blinds = slices.DeleteFunc(slices.Clone(o.blinds), func(b blind) bool {
		return b.na <= horizon && (base.phase == phaseAbsent || b.na < base.na)
	})
	return o.size() < had
}
