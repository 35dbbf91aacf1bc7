package state

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// podStep is one change in what is said of a pod's name, as a step is of other objects.
type podStep struct {
	span
	phase    phase
	pod      *pod     // nil when its uid is not known, and when it is absent
	spec     *podSpec // nil when not known
	created  int64    // by when its pod was there; meaningless without one
	bound    int64    // since when to a node; noTime when it is not
	node     string   // "" with bound: which one is not known
	deletion int64    // deletionTimestamp; noTime when there is none
	// open says that the deletion may have been asked for, or be earlier: by a write nobody
	// recorded the outcome of.
	open bool
	// loose says of an unknown pod that it had no node, if there was one.
	loose bool
}

// absent returns the step of a name that nobody has.
func absent(at span) podStep {
	return podStep{span: at, phase: phaseAbsent, bound: noTime, deletion: noTime}
}

// equal tells whether two steps say the same.
func (s *podStep) equal(t *podStep) bool {
	return s.span == t.span && s.phase == t.phase && s.pod == t.pod && comparePodSpecs(s.spec, t.spec) == 0 &&
		s.created == t.created && s.bound == t.bound && s.node == t.node && s.deletion == t.deletion && s.open == t.open && s.loose == t.loose
}

// created returns when the pod came to be: in the second its creationTimestamp tells, by the
// write that made it, and before it was first seen.
func (p *pod) created(blinds []podBlind) span {
	by := p.by()
	switch {
	case p.born != noTime && p.made == noTime:
		return span{min(p.born, by), by}
	case p.born != noTime:
		return span{p.born, max(by, p.born)}
	}
	at, first, last := p.makers(blinds)
	if last != nil && last.kind == podThere && (first == last || p.made == noTime) {
		at = span{max(at.nb, last.nb), min(by, last.na)}
	}
	return at
}

// by is when the pod was there for certain, or had been.
func (p *pod) by() int64 {
	at := min(p.seen, p.gone.na)
	if p.more != nil && p.more.away != nil {
		at = min(at, p.more.away.na)
	}
	return at
}

// makers returns the second in which the pod was made, as far as that was recorded, and the first and
// the last write by which it may have been: one of the name and of the second. What was made before
// the last had gone by then, so that it is the last alone where the pod was there still after it.
func (p *pod) makers(blinds []podBlind) (at span, first, last *podBlind) {
	by := p.by()
	if p.made != noTime {
		by = min(by, p.made+int64(time.Second)) // as far as anyone can tell: it is stored a little later
	}
	at = span{min(p.made, by), by}
	for i := range blinds {
		b := &blinds[i]
		if b.kind != podThere && !b.made || b.na < at.nb || b.nb > at.na {
			continue
		}
		if first == nil || b.kind == podThere && last.na <= b.nb && b.na <= p.alive {
			first = b
		}
		last = b
	}
	return at, first, last
}

// binding returns when the pod was bound to its node; ok is false when it was not, as far as
// is known.
func (p *pod) binding(c span) (at span, ok bool) {
	switch {
	case p.bind.na != noSight:
		at = span{p.bind.nb, min(p.bind.na, p.bound)}
	case p.node == "":
		return span{}, false
	case p.unbound == noTime:
		return c, true // made with a node, as far as anyone can tell
	default:
		at = span{p.unbound, p.bound}
	}
	at.na = max(at.na, c.na)
	at.nb = min(max(at.nb, c.nb), at.na)
	return at, true
}

// specs returns the specs the pod has had, oldest first.
func (p *pod) specs() []podSeen {
	if p.spec == nil {
		return nil
	}
	list := []podSeen{{p.spec, p.specRV, p.specAt}}
	if p.more != nil && len(p.more.specs) > 0 {
		list = append(list, p.more.specs...)
		slices.SortFunc(list, func(a, b podSeen) int {
			return cmp.Or(cmp.Compare(a.rv, b.rv), cmp.Compare(a.at, b.at), comparePodSpecs(a.spec, b.spec))
		})
	}
	return list
}

// podSteps appends the steps of a name. It is a function of the set of observations alone.
func (s *State) podSteps(steps []podStep, n podName) []podStep {
	first := s.pods.names[n]
	blinds := s.pods.blindsOf(n)
	if first != nil && first.older == nil && len(blinds) == 0 {
		steps = s.podLifeOf(steps, first, nil, nil)
		return tightenPods(steps)
	}
	var lives []*pod
	for p := first; p != nil; p = p.older {
		lives = append(lives, p)
	}
	slices.SortFunc(lives, func(a, b *pod) int {
		x, y := a.created(blinds), b.created(blinds)
		return cmp.Or(cmp.Compare(x.na, y.na), cmp.Compare(x.nb, y.nb), strings.Compare(a.uid, b.uid))
	})
	for i, p := range lives {
		var next *pod
		if i+1 < len(lives) {
			next = lives[i+1]
		}
		if !p.bare() {
			steps = s.podLifeOf(steps, p, next, blinds)
			continue
		}
		since := noTime
		if i > 0 {
			if end, ended := s.podEnd(lives[i-1], lives[i-1].created(blinds), p, blinds); ended {
				since = min(end.na, p.gone.na)
			}
		}
		steps = p.onlyEnd(steps, since)
	}
	if len(blinds) > 0 {
		steps = s.podStrangers(steps, n, lives, blinds)
	}
	slices.SortStableFunc(steps, func(a, b podStep) int { return cmp.Compare(a.na, b.na) })
	return tightenPods(steps)
}

// podChange is something that happened to a pod while it was there.
type podChange struct {
	span
	bound    bool
	node     string
	spec     *podSpec
	anyRefs  bool
	deletion int64 // noTime for none
	// asked says that the deletion was asked for, with an outcome that was not recorded: it is
	// estimated, where there is one, and any that was recorded goes before.
	asked bool
}

// bare tells whether only the pod's end was seen.
func (p *pod) bare() bool { return p.seen == noSight && p.made == noTime && p.born == noTime }

// onlyEnd appends the steps of a pod of which only the end was seen, after the end of the one
// before.
func (p *pod) onlyEnd(steps []podStep, since int64) []podStep {
	before := absent(span{since, since})
	before.phase = phaseUnknown
	return append(steps, before, absent(p.gone))
}

// podLifeOf appends the steps of one pod, which the next pod of its name, listings and writes
// without a uid may have ended.
func (s *State) podLifeOf(steps []podStep, p, next *pod, blinds []podBlind) []podStep {
	made := p.created(blinds)
	if p.bare() {
		return p.onlyEnd(steps, noTime)
	}
	now := podStep{span: made, phase: phasePresent, pod: p, created: made.na, bound: noTime, deletion: noTime}
	now.spec = p.spec
	var specs []podSeen
	if p.more != nil && len(p.more.specs) > 0 {
		specs = p.specs()
		now.spec = specs[0].spec
	}
	bound, node, isBound := p.bindingOr(made, next, blinds)
	var room [4]podChange
	changes := room[:0]
	switch {
	case isBound && bound == made:
		now.bound, now.node = bound.na, node
	case isBound:
		changes = append(changes, podChange{span: bound, bound: true, node: node, deletion: noTime})
	}
	if at := p.rewritten(now.spec, specs, made, blinds); at != noSight {
		// What was seen of it, it may have been given later than it was made.
		changes = append(changes, podChange{span: span{made.nb, max(at, made.na)}, spec: now.spec, deletion: noTime})
		now.spec = &podSpec{account: now.spec.account, grace: now.spec.grace, anyRefs: true}
	}
	for i := 1; i < len(specs); i++ {
		changes = append(changes, podChange{span: span{made.nb, max(specs[i].at, made.na)}, spec: specs[i].spec, deletion: noTime})
	}
	if p.more != nil {
		for _, d := range p.more.deletions {
			at := d.span
			if asked := (span{d.asked, d.asked + int64(time.Second)}); d.asked != noTime && asked.na < d.nb {
				changes = append(changes, podChange{span: asked, deletion: noTime, asked: true}) // what it was then is not known
			} else if d.asked != noTime {
				at.nb = min(at.nb, d.asked)
			}
			changes = append(changes, podChange{span: at, deletion: d.at, asked: d.estimated})
		}
	}
	if at, certain := s.went(p, made, next, blinds); at.na != noTime && !certain {
		changes = append(changes, podChange{span: at, deletion: noTime, asked: true})
	}
	doubt := s.podDoubt(p, next, made, blinds)
	until := noSight // no longer than to the next of the name
	if next != nil {
		until = next.created(blinds).na
	}
	for _, scope := range [...]objectKey{{res: resPod}, {res: resPod, namespace: p.name.namespace}} {
		for _, g := range s.gone[scope] {
			if g.na >= made.nb && g.na < until {
				changes = append(changes, podChange{span: g.span, deletion: noTime, asked: true})
			}
		}
	}
	for i := range blinds {
		b := &blinds[i]
		if b.na < made.nb || b.na >= until {
			continue
		}
		if b.kind == podChanged {
			changes = append(changes, podChange{span: b.span, anyRefs: true, deletion: noTime})
		}
		if b.kind == podWritten {
			changes = append(changes, podChange{span: b.span, deletion: noTime, asked: true})
		}
		if b.kind != podEvicted || b.uid != "" && b.uid != p.uid {
			continue
		}
		grace := b.grace
		if grace < 0 && now.spec != nil {
			grace = now.spec.grace
		}
		change := podChange{span: b.span, deletion: noTime, asked: true}
		if isBound && bound.na <= b.na && grace > 0 {
			change.deletion = b.na - b.na%int64(time.Second) + grace*int64(time.Second)
		}
		changes = append(changes, change)
		if _, ends := s.evicted(p, next, made, blinds); !ends {
			doubt = p.doubt(doubt, made, b.span, p.lastSeen(next, made, blinds)) // gone at once, if its containers had ended
		}
	}
	slices.SortStableFunc(changes, func(a, b podChange) int { return cmp.Compare(a.na, b.na) })
	switch {
	case p.born != noTime:
	case p.seen == noSight: // only its end was
		now.open = true
	case p.more != nil:
		// First seen with a grace that was cut short: it was asked for before, nobody knows when.
		now.open = slices.ContainsFunc(p.more.deletions, func(d podDeletion) bool { return d.asked == noTime && d.na <= p.seen })
	}
	if _, first, last := p.makers(blinds); first != last && p.born == noTime {
		before := now // or it was another, which had gone when this one was made
		before.span, before.phase = first.span, phaseUnknown
		steps = append(steps, before)
	}
	steps = append(steps, now)
	shown := noTime // since when its deletion was, that was shown last
	for _, c := range changes {
		now.span = span{c.nb, max(c.na, made.na)}
		if c.bound {
			now.bound, now.node = now.na, c.node
		}
		if c.spec != nil {
			now.spec = c.spec
		}
		if c.anyRefs && now.spec != nil {
			spec := *now.spec
			spec.anyRefs = true
			now.spec = &spec
		}
		// Of two requests at once, one may be answered with what it would have set.
		atOnce := !c.asked && c.deletion != noTime && c.nb < shown
		if c.deletion != noTime && (now.deletion == noTime || !c.asked && (!atOnce || c.deletion < now.deletion)) {
			now.deletion = c.deletion
		}
		if !c.asked && c.deletion != noTime {
			shown = max(shown, c.na)
		}
		if c.asked || atOnce {
			now.open = true
		} else if c.deletion != noTime {
			now.open = false
		}
		steps = append(steps, now)
	}
	end, ended := s.podEnd(p, made, next, blinds)
	if doubt.na != noSight && (!ended || doubt.na < end.na) {
		steps = cutPodSteps(steps, p, doubt.na)
		now.span, now.phase = doubt, phaseUnknown
		steps = append(steps, now)
	}
	if ended {
		steps = cutPodSteps(steps, p, end.na)
		steps = append(steps, absent(end))
	}
	return steps
}

// rewritten returns when the pod's first spec was seen, when a write may have changed what it refers
// to since the pod was made; else noSight.
func (p *pod) rewritten(first *podSpec, specs []podSeen, made span, blinds []podBlind) int64 {
	if first == nil || first.ephemeral == 0 && first.statuses == 0 {
		return noSight
	}
	at := p.specAt
	if len(specs) > 0 {
		at = specs[0].at
	}
	if p.more != nil && p.more.given != 0 && p.more.given <= at || slices.ContainsFunc(blinds, func(b podBlind) bool { return b.kind == podChanged && b.na >= made.nb && b.nb <= at }) {
		return at
	}
	return noSight
}

// cutPodSteps takes back the steps of a pod that would follow its end: all but its first.
func cutPodSteps(steps []podStep, p *pod, at int64) []podStep {
	n := len(steps)
	for n > 1 && steps[n-1].na > at && steps[n-2].pod == p {
		n--
	}
	return steps[:n]
}

// bindingOr is binding, for a pod whose binding may have been recorded without its uid.
func (p *pod) bindingOr(made span, next *pod, blinds []podBlind) (at span, node string, ok bool) {
	if at, ok = p.binding(made); ok && p.bind.na != noSight {
		return at, p.node, true
	}
	seen := max(p.bound, made.na) // when it was seen to be bound, if it was
	for i := range blinds {
		b := &blinds[i]
		if b.kind != podBound || ok && (b.node != p.node && b.node != "" || b.nb > seen || b.na < p.unbound) {
			continue
		}
		if b.na >= made.nb && (p.gone.na == noSight || b.nb <= p.gone.na) && (next == nil || b.na < next.created(blinds).na) {
			by := span{b.nb, max(b.na, made.na)}
			if ok {
				by.na = min(by.na, seen)
			}
			by.nb = min(max(by.nb, made.nb), by.na)
			if ok {
				return by, p.node, true
			}
			return by, b.node, true
		}
	}
	if ok {
		return at, p.node, true
	}
	return span{}, "", false
}

// tightenPods makes the order of the steps, which is that of their na, show in their bounds.
func tightenPods(steps []podStep) []podStep {
	nb := noTime
	for i := range steps {
		nb = max(nb, steps[i].nb)
		steps[i].nb = min(nb, steps[i].na)
		nb = steps[i].nb
	}
	return steps
}
