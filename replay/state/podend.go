package state

// podEnd returns when a pod ended: as observed, or as what came after it shows. What found it missing
// while a deletion was under way shows that it had ended by then.
func (s *State) podEnd(p *pod, made span, next *pod, blinds []podBlind) (end span, ended bool) {
	observed := p.gone
	if p.perhaps && s.refilled(p, p.gone, blinds) {
		observed = span{noTime, noSight}
	} else if observed.na == noSight {
		if at, certain := s.went(p, made, next, blinds); certain {
			observed = at
		} else if at, certain := s.freed(p, next, made, blinds); certain {
			observed = at
		}
	}
	since := max(p.lastSeen(next, made, blinds), made.nb)
	by := noSight
	if next != nil {
		by = next.created(blinds).na
	}
	for _, l := range s.listings[resPod] {
		if l.began > since && l.began >= made.na {
			by = min(by, l.ended)
		}
	}
	for i := range blinds {
		b := &blinds[i]
		// What was made when this one was first there is this one.
		if (b.kind == podThere && b.nb > made.na || (b.kind == podGone || b.kind == podMissing) && b.nb >= made.na) && b.nb >= since {
			by = min(by, b.na)
		}
	}
	switch {
	case observed.na != noSight:
		if by > observed.nb && by < observed.na {
			observed.na = by
		}
		return span{min(observed.nb, observed.na), max(observed.na, made.na)}, true
	case by == noSight:
		return span{}, false
	}
	by = max(by, made.na)
	return span{min(since, by), by}, true
}

// went returns when a pod went that had no node when it was read, to be deleted with others; its na
// is noTime when it did not. It is not certain when it may have been bound in between: then it went
// at once, or with its grace (the registry's Store.Delete reads it once more).
func (s *State) went(p *pod, made span, next *pod, blinds []podBlind) (at span, certain bool) {
	if p.more == nil || p.more.away == nil || p.lastSeen(next, made, blinds) >= p.more.away.na {
		return span{noTime, noTime}, false
	}
	bound, _, isBound := p.bindingOr(made, next, blinds)
	return *p.more.away, (!isBound || bound.nb > p.more.away.na) && !s.refilled(p, *p.more.away, blinds)
}

// refilled tells whether a pod that was read without finalizers, to be deleted with others, may have been
// given some before its turn came.
func (s *State) refilled(p *pod, at span, blinds []podBlind) bool {
	return p.finals.some || s.loosened(p, at, blinds)
}

// doubt returns the earlier of two moments from which on the pod may be gone. A write that came
// before it was last seen, or before its known end, leaves no doubt.
func (p *pod) doubt(since, made, at span, seen int64) span {
	if p.gone.na == noSight && at.na >= seen && at.na >= made.nb && max(at.na, made.na) < since.na {
		return span{at.nb, max(at.na, made.na)}
	}
	return since
}

// podDoubt returns the first moment from which on a pod may be gone: a write nobody recorded
// the outcome of, after it was last seen; that nothing but finalizers held it back, which
// writes of its status may take away and which are not kept; or its deletion with others, which
// were read before, where it may have come to its end in between. Its na is noSight when there is
// none.
func (s *State) podDoubt(p, next *pod, made span, blinds []podBlind) span {
	doubt, seen := span{noTime, noSight}, p.lastSeen(next, made, blinds)
	if p.perhaps && s.refilled(p, p.gone, blinds) {
		doubt = span{p.gone.nb, max(p.gone.na, made.na)}
	}
	if p.more != nil {
		for _, d := range p.more.deletions {
			for _, at := range [...]span{d.held, d.sudden} {
				if at.na != noTime {
					doubt = p.doubt(doubt, made, at, seen)
				}
			}
		}
	}
	if at, certain := s.went(p, made, next, blinds); at.na != noTime && !certain {
		doubt = p.doubt(doubt, made, at, seen)
	}
	for i := range blinds {
		b := &blinds[i]
		// What ended one may have come before this one or have ended it.
		if b.kind == podWritten || b.kind == podGone && b.nb < made.na && b.na > made.nb {
			doubt = p.doubt(doubt, made, b.span, seen)
		}
	}
	for _, scope := range [...]objectKey{{res: resPod}, {res: resPod, namespace: p.name.namespace}} {
		for _, g := range s.gone[scope] {
			doubt = p.doubt(doubt, made, g.span, seen)
		}
	}
	return doubt
}
