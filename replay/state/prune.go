package state

import (
	"maps"
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Prune forgets what was over before a moment: versions replaced by then, objects that had ended, outdated listings and gaps. Every answer
// about that moment or a later one stays; about an earlier one everything is unknown from then on. An older observation that arrives later
// still counts, but makes an object that is not kept merely unknown. A moment before that of an earlier Prune does nothing. It returns how
// many versions, ends and writes were dropped.
//
// What cannot be dropped without changing a later answer stays, whatever its age: each cut is tried, and undone if it changes one. The cost
// is that of resolving everything a few times.
//
// It forgets credentials that had expired, or that had been issued if their expiry is unknown. Once it has forgotten one, no credential is
// said never to have been issued.
func (s *State) Prune(before time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	horizon, had := instant.Of(before), s.size()
	if horizon < s.horizon {
		return 0
	}
	s.forget(horizon, horizon)
	s.prunePods(horizon)
	s.pruneCredentials(horizon)

	for _, objects := range s.objects {
		for k, obj := range objects {
			s.cut(k, obj, horizon, (*object).prune)
		}
	}
	for res := kept.ResNone + 1; res < kept.ResCount; res++ {
		s.pruneScopes(res, horizon)
	}
	s.resolveAll()
	s.pruneRefs()
	s.recount()
	s.graph.Prune(before)
	s.in.Forget() // names of what is gone; those in use are interned anew as they come
	return had - s.size()
}

// cut forgets what prune drops of an object, unless that changes an answer about the moment or a later one; it returns how much that was.
func (s *State) cut(k kept.Key, obj *object, horizon int64, prune func(*object, int64) bool) int {
	cut, had := *obj, obj.size()
	if k.Name == "" || !prune(&cut, horizon) || !s.sameLine(&cut, horizon) {
		return 0
	}
	*obj = cut
	return had - obj.size()
}

// sameLine reports whether what is left of an object tells the same of a moment and all later ones.
func (s *State) sameLine(obj *object, at int64) bool {
	return sameSince(obj.line, s.line(obj), at, (*step).identical, (*step).equal)
}

// resolveAll resolves every object and scope anew, drops those of which nothing is left, and counts.
func (s *State) resolveAll() {
	var dirty []kept.Key
	for _, objects := range s.objects {
		dirty = slices.AppendSeq(dirty, maps.Keys(objects))
	}
	s.resolve(dirty)
	s.versions, s.lookedFor = 0, 0
	for _, objects := range s.objects {
		for k, obj := range objects {
			size := obj.size()
			if size == 0 && (k.Name != "" || k.Namespace != "") {
				delete(objects, k)
				s.dropStandIn(k)
			}
			if s.versions += size; size > 0 && size == len(obj.missing)+len(obj.shown) {
				s.lookedFor++
			}
		}
	}
	for _, list := range s.gone {
		s.versions += len(list)
	}
	for _, told := range s.pods.told {
		s.versions += told.size()
	}
}

// pruneRefs forgets which roles bindings named that are gone.
func (s *State) pruneRefs() {
	for role, bindings := range s.refs {
		maps.DeleteFunc(bindings, func(b kept.Key, _ struct{}) bool { return s.objects[b.Resource][b] == nil })
		if len(bindings) == 0 {
			delete(s.refs, role)
		}
	}
}

// pruneScopes drops the listings, gaps and unlisted deletions of a resource on which no answer since the horizon depends: those that the
// last listing before it outdates.
func (s *State) pruneScopes(res kept.Resource, horizon int64) {
	listings := s.listings[res]
	last := len(listings) - 1
	for last >= 0 && listings[last].na > horizon {
		last--
	}
	if last < 0 {
		return
	}
	outdated := func(b blind) bool { return b.na <= listings[last].nb }
	listed := func(p span) bool {
		return slices.ContainsFunc(listings[:last], func(l *listing) bool { return l.span == p })
	}
	pods := map[podName][]podStep{}
	if res == kept.ResPod {
		for _, n := range s.pods.all() {
			pods[n] = s.podSteps(nil, n)
		}
	}
	gone, had := map[kept.Key][]blind{}, map[*object]object{}
	for k, list := range s.gone {
		if k.Resource == res {
			gone[k] = list
			s.gone[k] = without(list, outdated)
		}
	}
	s.listings[res] = slices.Clone(listings[last:])
	for k, obj := range s.objects[res] {
		had[obj] = *obj
		if k.Name == "" {
			obj.blinds = without(obj.blinds, outdated)
		}
		obj.present = without(obj.present, listed)
	}
	same := true
	for obj := range had {
		same = same && s.sameLine(obj, horizon)
	}
	for n, line := range pods {
		same = same && sameSince(line, s.podSteps(nil, n), horizon, (*podStep).same, (*podStep).equal)
	}
	if same {
		maps.DeleteFunc(s.gone, func(_ kept.Key, list []blind) bool { return len(list) == 0 })
		return
	}
	s.listings[res] = listings
	maps.Copy(s.gone, gone)
	for obj, was := range had {
		*obj = was
	}
}

// prune drops what stood before the step in force at the horizon; it returns false if that is nothing.
func (o *object) prune(horizon int64) bool {
	had := o.size()
	var base step // absent
	i := stepAt(o.line, horizon) - 1
	if i >= 0 {
		base = o.line[i]
	}
	o.missing = without(o.missing, func(p span) bool {
		return p.na <= horizon && (base.phase == phaseAbsent || p.na < base.na)
	})
	o.shown = without(o.shown, func(p span) bool {
		return p.na <= horizon && (base.phase != phaseUnknown || p.na < base.na)
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
	o.versions = without(o.versions, func(v version) bool {
		keep := needed[id{v.rv, v.uid}]
		lives[v.uid] = lives[v.uid] || keep
		return !keep
	})
	o.ends = without(o.ends, func(e end) bool {
		return e.span().na <= horizon && !lives[e.uid]
	})
	o.blinds = without(o.blinds, func(b blind) bool {
		return b.na <= horizon && (base.phase == phaseAbsent || b.na < base.na)
	})
	return o.size() < had
}

// without returns a list in memory of its own without what is dropped.
func without[T any](list []T, drop func(T) bool) []T {
	var out []T
	for i := range list {
		if !drop(list[i]) {
			out = append(out, list[i])
		}
	}
	return slices.Clip(out)
}
