package state

import (
	"slices"
)

// prunePods forgets the pods that had gone by a moment, and writes without a uid from before
// it, as far as that changes nothing of what is said of the moment and all later ones.
func (s *State) prunePods(horizon int64) {
	ps := &s.pods
	had := ps.count
	names := make([]podName, 0, 64)
	for n := range ps.names {
		names = append(names, n)
	}
	for n := range ps.blinds {
		if ps.names[n] == nil {
			names = append(names, n)
		}
	}
	for n := range ps.missing {
		if ps.names[n] == nil && len(ps.blinds[n]) == 0 {
			names = append(names, n)
		}
	}
	for n := range ps.loosened {
		if ps.names[n] == nil && len(ps.blinds[n]) == 0 && len(ps.missing[n]) == 0 {
			names = append(names, n)
		}
	}
	for _, n := range names {
		steps := s.podSteps(nil, n)
		first, blinds, missing, loosened := ps.names[n], ps.blinds[n], ps.missing[n], ps.loosened[n]
		var keep *pod
		var links []*pod // the chain as it is, to put back
		for p := first; p != nil; p = p.older {
			links = append(links, p)
		}
		for i := len(links) - 1; i >= 0; i-- {
			if p := links[i]; !goneBy(steps, p, horizon) {
				p.older, keep = keep, p
			}
		}
		late := slices.DeleteFunc(slices.Clone(blinds), func(b podBlind) bool { return b.na <= horizon })
		over := func(p presence) bool { return p.ended <= horizon }
		lateMissing, lateLoosened := slices.DeleteFunc(slices.Clone(missing), over), loosened
		if keep == nil { // else it tells what became of a pod that is there
			lateLoosened = slices.DeleteFunc(slices.Clone(loosened), over)
		}
		ok := false
		for i, list := range [][]podBlind{late, blinds} {
			ps.put(n, keep, list, [][]presence{lateMissing, missing}[i], [][]presence{lateLoosened, loosened}[i])
			if ok = samePodsSince(steps, s.podSteps(nil, n), horizon); ok {
				break
			}
		}
		if !ok {
			for i, p := range links {
				p.older = nil
				if i+1 < len(links) {
					p.older = links[i+1]
				}
			}
			ps.put(n, first, blinds, missing, loosened)
			continue
		}
		for _, p := range links {
			if !ps.has(n, p) {
				ps.count--
				if ps.uids[p.uid] == p {
					delete(ps.uids, p.uid)
				}
			}
		}
	}
	for namespace, made := range ps.unnamed {
		if made.na <= horizon && !s.maybePod(namespace, horizon) {
			delete(ps.unnamed, namespace)
		}
	}
	if n := had - ps.count; n > maxPodSpecs/16 && n > ps.count {
		ps.compact()
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

// podLines returns the steps of all names.
func (s *State) podLines() map[podName][]podStep {
	out := make(map[podName][]podStep, len(s.pods.names)+len(s.pods.blinds))
	for n := range s.pods.names {
		out[n] = s.podSteps(nil, n)
	}
	for n := range s.pods.blinds {
		if out[n] == nil {
			out[n] = s.podSteps(nil, n)
		}
	}
	for n := range s.pods.loosened {
		if out[n] == nil {
			out[n] = s.podSteps(nil, n)
		}
	}
	return out
}

// put sets what is kept of a name.
func (ps *pods) put(n podName, p *pod, blinds []podBlind, missing, loosened []presence) {
	// The key is part of a record's memory: it must not be that of one that is dropped.
	delete(ps.names, n)
	if p != nil {
		ps.names[p.name] = p
	}
	if len(blinds) > 0 {
		ps.blinds[n] = blinds
	} else {
		delete(ps.blinds, n)
	}
	if len(missing) > 0 {
		ps.missing[n] = missing
	} else {
		delete(ps.missing, n)
	}
	if len(loosened) > 0 {
		ps.loosened[n] = loosened
	} else {
		delete(ps.loosened, n)
	}
}

// has tells whether a record is kept under a name.
func (ps *pods) has(n podName, p *pod) bool {
	q := ps.names[n]
	for q != nil && q != p {
		q = q.older
	}
	return q != nil
}

// compact makes the tables anew: those of Go do not become smaller.
func (ps *pods) compact() {
	names, uids := make(map[podName]*pod, len(ps.names)), make(map[string]*pod, len(ps.uids))
	for n, p := range ps.names {
		names[n] = p
	}
	for uid, p := range ps.uids {
		uids[uid] = p
	}
	ps.names, ps.uids = names, uids
}

// goneBy tells whether the steps say that a pod had gone by a moment.
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

// samePodsSince tells whether two lines give the same answers about a moment and all later
// ones.
func samePodsSince(a, b []podStep, at int64) bool {
	cut := func(steps []podStep) (now *podStep, later []podStep) {
		i := len(steps)
		for i > 0 && steps[i-1].na > at {
			i--
		}
		if i > 0 && steps[i-1].phase != phaseAbsent {
			now = &steps[i-1]
		}
		return now, steps[i:]
	}
	x, restA := cut(a)
	y, restB := cut(b)
	if (x == nil) != (y == nil) || x != nil && !x.equal(y) {
		return false
	}
	return slices.EqualFunc(restA, restB, func(s, t podStep) bool { return s.equal(&t) })
}
