package state

// finalizersSeen is whether a pod had finalizers when it was seen last.
type finalizersSeen struct {
	rv   uint64 // 0 for never
	at   int64  // not before it
	some bool
	// deleted says that its deletion had been asked for by then.
	deleted bool
}

// add notes that it was seen.
func (f *finalizersSeen) add(n finalizersSeen) {
	if n.rv > f.rv || n.rv == f.rv && (n.at > f.at || n.at == f.at && (n.some && !f.some || n.some == f.some && n.deleted)) {
		*f = n
	}
}

// An eviction is answered without its pod (addConditionAndDeletePod, Store.Delete,
// rest.BeforeDelete). That it was answered says that the pod was there. With a grace of zero, its own
// or the pod's, and where the pod has no node, nothing but a finalizer holds the pod back.

// concerns tells whether an eviction was of the pod for certain, and not of another of its name.
func (b *podBlind) concerns(p, next *pod, made span, blinds []podBlind) bool {
	if b.kind != podEvicted || b.uid != "" && b.uid != p.uid || b.nb < made.na || next != nil && b.na > next.created(blinds).nb {
		return false
	}
	for i := range blinds {
		if c := &blinds[i]; c.kind == podThere && c.nb > made.na && c.nb < b.na {
			return false
		}
	}
	return true
}

// lastSeen returns the latest moment since which the pod was there still.
func (p *pod) lastSeen(next *pod, made span, blinds []podBlind) int64 {
	at := p.alive
	for i := range blinds {
		if b := &blinds[i]; b.nb > at && b.concerns(p, next, made, blinds) {
			at = b.nb
		}
	}
	return at
}

// evicted returns when an eviction ended the pod, if one did for certain. Of two at once both are
// answered alike, whichever ended it: it was there when the later began, and not any more when the
// first was done.
func (s *State) evicted(p, next *pod, made span, blinds []podBlind) (at span, ended bool) {
	at = span{noTime, noSight}
	for i := range blinds {
		b := &blinds[i]
		if b.concerns(p, next, made, blinds) && s.freely(p, next, made, b, blinds) {
			at.nb, at.na = max(at.nb, b.nb), min(at.na, b.na)
		}
	}
	seen := p.lastSeen(next, made, blinds)
	if at.na == noSight || p.alive >= at.na || seen > at.na {
		return span{noTime, noTime}, false
	}
	return span{max(at.nb, seen), at.na}, true
}

// freed returns when the pod ended, if it did for certain, by what was answered without telling so:
// an eviction, or the deletion of a collection that had read it with finalizers, which were gone
// before its turn came.
func (s *State) freed(p, next *pod, made span, blinds []podBlind) (at span, ended bool) {
	if at, ended = s.evicted(p, next, made, blinds); ended || p.more == nil {
		return at, ended
	}
	f, seen := &p.finals, p.lastSeen(next, made, blinds)
	for i := range p.more.deletions {
		d := &p.more.deletions[i]
		if d.read == 0 || d.sudden.na != noTime || f.rv <= d.read || f.some || f.deleted || seen >= d.held.na {
			continue
		}
		if !s.loosened(p, span{f.at, d.held.na}, blinds) {
			return span{max(d.held.nb, seen), d.held.na}, true
		}
	}
	return span{noTime, noTime}, false
}

// freely tells whether an eviction gave the pod no grace, and no finalizer held the pod back.
func (s *State) freely(p, next *pod, made span, b *podBlind, blinds []podBlind) bool {
	if !b.told || b.holds || p.finals.rv == 0 || p.finals.some {
		return false
	}
	grace := b.grace
	if grace < 0 && p.spec != nil {
		grace = p.spec.grace
	}
	if grace != 0 {
		bound, _, isBound := p.bindingOr(made, next, blinds)
		if p.unbound == noTime || isBound && bound.nb <= b.na {
			return false
		}
	}
	return !s.loosened(p, span{p.finals.at, b.na}, blinds)
}

// loosened tells whether a write nobody recorded may have changed a pod's finalizers between two
// moments.
func (s *State) loosened(p *pod, at span, blinds []podBlind) bool {
	list := s.pods.loosened[p.name]
	for i, l := range list {
		if len(list) == maxMissing && i == maxMissing/2-1 {
			l.ended = list[i+1].ended // some between them were let go
		}
		if l.ended > at.nb && l.began < at.na {
			return true
		}
	}
	for i := range blinds {
		b := &blinds[i]
		may := b.kind == podWritten || b.kind == podGone || b.kind == podEvicted && (b.holds || !b.told)
		if may && b.na > at.nb && b.nb < at.na {
			return true
		}
	}
	for _, scope := range [...]objectKey{{res: resPod}, {res: resPod, namespace: p.name.namespace}} {
		for _, g := range s.gone[scope] {
			if g.na > at.nb && g.nb < at.na {
				return true
			}
		}
	}
	return false
}
