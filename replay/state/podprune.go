package state

import (
	"maps"
	"slices"
)

// prunePods forgets the pods that had gone by a moment, and writes without a uid from before it, unless that changes an answer about the
// moment or a later one.
func (s *State) prunePods(horizon int64) {
	ps := &s.pods
	had := ps.count
	for _, n := range ps.all() {
		s.prunePod(n, horizon)
	}
	for namespace, made := range ps.unnamed {
		if made.na <= horizon && !s.maybePod(namespace, horizon) {
			delete(ps.unnamed, namespace)
		}
	}
	if n := had - ps.count; n > maxPodSpecs/16 && n > ps.count {
		ps.names, ps.uids = remade(ps.names), remade(ps.uids)
	}
	ps.recount()
}

// prunePod forgets what can go of a name: pods and writes, else pods alone, else nothing.
func (s *State) prunePod(n podName, horizon int64) {
	ps := &s.pods
	steps, was, told := s.podSteps(nil, n), ps.of(n), ps.told[n]
	is := without(was, func(p *pod) bool { return goneBy(steps, p, horizon) })
	for _, t := range [...]podTold{told.since(horizon, len(is) > 0), told} {
		if ps.put(n, is, t); sameSince(steps, s.podSteps(nil, n), horizon, (*podStep).same, (*podStep).equal) {
			ps.drop(was, is)
			return
		}
	}
	ps.put(n, was, told)
}

// since returns what was told that was not over by a moment. What became of the finalizers of a pod that is there still is kept.
func (t podTold) since(at int64, there bool) podTold {
	over := func(p span) bool { return p.na <= at }
	out := podTold{blinds: without(t.blinds, func(b podBlind) bool { return over(b.span) })}
	if t.notes != nil {
		out.notes = &podNotes{missing: without(t.notes.missing, over), loosened: t.notes.loosened}
		if !there {
			out.notes.loosened = without(t.notes.loosened, over)
		}
	}
	return out
}

// of returns the pods of a name, the newest told first.
func (ps *pods) of(n podName) (list []*pod) {
	for p := ps.names[n]; p != nil; p = p.older {
		list = append(list, p)
	}
	return list
}

// put sets the records of a name.
func (ps *pods) put(n podName, list []*pod, told podTold) {
	// The key is part of a record's memory: it must not be that of one that is dropped.
	delete(ps.names, n)
	for i := len(list) - 1; i >= 0; i-- {
		p := list[i]
		if p.older = nil; i+1 < len(list) {
			p.older = list[i+1]
		}
	}
	if len(list) > 0 {
		ps.names[list[0].name] = list[0]
	}
	if told.size() > 0 {
		ps.told[n] = told
	} else {
		delete(ps.told, n)
	}
}

// drop forgets the pods of a name that are not among those it has.
func (ps *pods) drop(was, is []*pod) {
	for _, p := range was {
		if slices.Contains(is, p) {
			continue
		}
		ps.count--
		if ps.uids[p.uid] == p {
			delete(ps.uids, p.uid)
		}
	}
}

// recount counts notes, and collects the specs that are shared, anew.
func (ps *pods) recount() {
	ps.missing, ps.loosened = 0, 0
	for _, told := range ps.told {
		ps.missing += min(1, len(told.noted().missing))
		ps.loosened += min(1, len(told.noted().loosened))
	}
	ps.specs = map[podSpec]*podSpec{}
	for _, p := range ps.names {
		for ; p != nil; p = p.older {
			for _, w := range p.specs() {
				ps.specs[*w.spec] = w.spec
			}
		}
	}
}

// remade returns a table made anew: those of Go do not become smaller.
func remade[K comparable, V any](table map[K]V) map[K]V {
	return maps.Collect(maps.All(table))
}

// goneBy reports whether the steps say that a pod had gone by a moment.
func goneBy(steps []podStep, p *pod, at int64) bool {
	last := -1
	for i := range steps {
		if steps[i].pod == p {
			last = i
		}
	}
	switch {
	case last < 0:
		return p.gone.na <= at // of which only the end was seen
	case last+1 < len(steps):
		return steps[last+1].na <= at
	}
	return false
}
