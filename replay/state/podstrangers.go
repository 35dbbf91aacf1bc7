package state

import "slices"

// podStrangers appends the steps of writes that concern none of the pods known by uid: pods
// of which little more than the name was recorded.
func (s *State) podStrangers(steps []podStep, n podName, lives []*pod, blinds []podBlind) []podStep {
	// known tells whether a pod known by uid was there, or came to be, when b was written; over, if
	// not noTime, that b may have made another after the end of such a pod, which was over then.
	known := func(b *podBlind) (is bool, over int64) {
		over = noTime
		for i, p := range lives {
			made := p.created(blinds)
			var next *pod
			if i+1 < len(lives) {
				next = lives[i+1]
			}
			if b.na < made.nb {
				continue
			}
			if b.kind == podThere && b.nb > made.na {
				continue // another one, unless this one is seen later still
			}
			end, ended := s.podEnd(p, made, next, blinds)
			switch {
			case b.made && ended && b.na > end.nb:
				over = end.na
			case !ended || b.na <= end.na || b.nb < end.na:
				return true, noTime
			}
		}
		return false, over
	}
	all := len(blinds)
	for _, scope := range [...]objectKey{{res: resPod}, {res: resPod, namespace: n.namespace}} {
		for _, g := range s.gone[scope] {
			blinds = append(slices.Clip(blinds), podBlind{span: g.span, kind: podCollected})
		}
	}
	if len(blinds) > all {
		slices.SortFunc(blinds, comparePodBlinds)
	}
	now := absent(span{noTime, noTime})
	stranger := false // one is there, or may be
	vacant := noTime  // since when none is
	perhaps := noTime // when what may have ended one was done at the latest
	closeBy := func(at int64) {
		// What ends it: a pod with a uid, or a listing that does not show the name.
		pod, list := noSight, noSight
		for _, p := range lives {
			if c := p.created(blinds); c.na >= now.na {
				pod = min(pod, c.na)
			}
		}
		for _, l := range s.listings[resPod] {
			if l.began >= now.na {
				list = min(list, l.ended)
			}
		}
		if !stranger || min(pod, list) > at || min(pod, list) == noSight {
			return
		}
		if list < pod {
			steps = append(steps, absent(span{now.na, list}))
		}
		vacant = min(pod, list)
		now, stranger = absent(span{vacant, vacant}), false
	}
	for i := range blinds {
		b := &blinds[i]
		closeBy(b.na)
		before := perhaps <= b.nb // all that may have ended one came before
		if b.ends() {
			perhaps = b.na
		}
		if b.kind != podCollected {
			is, over := known(b)
			if is {
				continue
			}
			if !stranger && over != noTime {
				now = absent(span{b.nb, max(b.na, over)})
				now.phase, now.open, stranger = phaseUnknown, true, true
				steps = append(steps, now)
				continue
			}
		}
		if !stranger && b.kind != podThere && b.kind != podCollected && b.kind != podMissing {
			// It was there before, with content nobody recorded.
			at := vacant
			for i, p := range lives {
				var next *pod
				if i+1 < len(lives) {
					next = lives[i+1]
				}
				if end, ended := s.podEnd(p, p.created(blinds), next, blinds); ended && end.na <= b.na {
					at = max(at, end.na)
				}
			}
			now = absent(span{at, at})
			now.phase, now.loose = phaseUnknown, b.kind == podBound
			steps = append(steps, now)
			now, stranger = absent(now.span), true
			now.open = true
		}
		switch b.kind {
		case podThere:
			was := now
			now = podStep{span: b.span, phase: phasePresent, spec: b.spec, bound: noTime, node: b.node, deletion: noTime}
			switch {
			case b.node != "":
				now.bound = b.na
			case was.bound != noTime && b.nb < was.na: // bound before the one who made it was answered
				now.bound, now.node = b.na, was.node
			}
		case podBound: // none is that is being deleted
			now.span, now.phase, now.bound, now.node, now.open = b.span, phasePresent, b.na, b.node, false
		case podChanged, podLoosened:
			now.span, now.phase = b.span, phasePresent
			if now.open {
				now.phase = phaseUnknown // it may have been being deleted
			}
		case podCollected:
			if !stranger || now.phase == phaseAbsent {
				continue
			}
			now.span, now.phase, now.open = b.span, phaseUnknown, true
		case podGone, podMissing:
			if !stranger || b.kind == podMissing && b.nb < now.na {
				continue
			}
			if at := b.span; b.nb < now.na {
				now.span, now.phase, now.open = at, phaseUnknown, true // it may have come after
			} else if b.kind == podMissing {
				now = absent(span{now.na, at.na}) // at any time before it
			} else {
				now = absent(at)
			}
		default:
			now.span, now.phase, now.open = b.span, phaseUnknown, true
		}
		if now.phase == phasePresent && !before {
			now.phase, now.open = phaseUnknown, true // it may have been ended after
		}
		steps = append(steps, now)
		if stranger = now.phase != phaseAbsent; !stranger {
			vacant = now.na
		}
	}
	closeBy(noSight)
	return steps
}
