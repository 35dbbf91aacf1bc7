package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
)

// podLife is one pod with everything that bears on how it lived and ended:
//
//	   made           binding                 end
//	───┼──┼────────────┼──┼───────────────────┼──┼────────┼──┼───▶
//	  nb  na          nb  na     lastSeen     nb  na      after (of the next one of the name)
//
// Each change lies somewhere between the two moments of its span. A change without a recorded write is bounded by what was seen before and
// after it.
type podLife struct {
	*pod
	s      *State
	blinds []podBlind // of the name
	made   span       // when it came to be
	next   *pod       // of the name; nil for none
	after  span       // when that came to be
	until  int64      // by when; noSight without one
}

// life returns the life of a pod without a known successor.
func (s *State) life(p *pod, blinds []podBlind) podLife {
	return podLife{pod: p, s: s, blinds: blinds, made: p.created(blinds), until: noSight}
}

// before sets which life follows.
func (l *podLife) before(next *podLife) { l.next, l.after, l.until = next.pod, next.made, next.made.na }

// lives reports whether a write may have been of the pod, by its time: not before the pod was made, nor while the next existed.
func (l *podLife) lives(b *podBlind) bool { return b.na >= l.made.nb && b.na < l.until }

// bare reports whether only the pod's end was seen.
func (p *pod) bare() bool {
	return p.seen == noSight && p.made == instant.None && p.born == instant.None
}

// onlyEnd appends the steps of a pod of which only the end was seen, after the end of the one before.
func (p *pod) onlyEnd(steps []podStep, since int64) []podStep {
	before := absent(span{since, since})
	before.phase = phaseUnknown
	return append(steps, before, absent(p.gone))
}

// podChange is something that happened to a pod during its life.
type podChange struct {
	span
	bound    bool
	node     string
	spec     *podSpec
	anyRefs  bool
	deletion int64 // noTime for none
	// asked says that the deletion was requested, with an outcome that was not recorded: the value is estimated, if there is one, and a
	// recorded one takes precedence.
	asked bool
}

// steps appends the steps of the pod; the next pod of its name, listings and writes without a uid may end it.
func (l *podLife) steps(steps []podStep) []podStep {
	if l.bare() {
		return l.onlyEnd(steps, instant.None)
	}
	now := podStep{span: l.made, phase: phasePresent, pod: l.pod, spec: l.spec, created: l.made.na, bound: instant.None,
		deletion: instant.None}
	now.open = l.openAtFirst()
	var room [4]podChange
	changes := l.bindings(room[:0], &now)
	changes = l.contents(changes, &now)
	changes = l.deletions(changes)
	changes = l.nameless(changes, &now)
	over := l.over()
	slices.SortStableFunc(changes, func(a, b podChange) int { return cmp.Compare(a.na, b.na) })
	if _, first, last := l.makers(l.blinds); first != last && l.born == instant.None {
		before := now // or it was another, which had gone when this one was made
		before.span, before.phase = first.span, phaseUnknown
		steps = append(steps, before)
	}
	steps = append(steps, now)
	shown := instant.None // since when its deletion was, that was shown last
	for i := range changes {
		shown = now.change(&changes[i], shown)
		now.na = max(now.na, l.made.na)
		if changes[i].bound {
			now.bound = now.na
		}
		if by := over.by(); now.na <= by || now.nb < by { // else it would follow the pod's end
			now.na = min(now.na, by)
			steps = append(steps, now)
		}
	}
	return over.close(steps, now)
}

// openAtFirst reports whether the pod may already have been in deletion when it was first seen.
func (l *podLife) openAtFirst() bool {
	switch {
	case l.born != instant.None:
		return false
	case l.seen == noSight: // only its end was
		return true
	}
	// First seen with a shortened grace: the deletion was requested before, at an unknown time.
	return l.more != nil && slices.ContainsFunc(l.more.deletions, func(d podDeletion) bool {
		return d.asked == instant.None && d.na <= l.seen
	})
}

// bindings appends the pod's binding, which may be part of its creation.
func (l *podLife) bindings(changes []podChange, now *podStep) []podChange {
	bound, node, ok := l.binding()
	switch {
	case ok && bound == l.made:
		now.bound, now.node = bound.na, node
	case ok:
		changes = append(changes, podChange{span: bound, bound: true, node: node, deletion: instant.None})
	}
	return changes
}

// contents appends the changes of what the pod refers to.
func (l *podLife) contents(changes []podChange, now *podStep) []podChange {
	var specs []podSeen
	if l.more != nil && len(l.more.specs) > 0 {
		specs = l.specs()
		now.spec = specs[0].spec
	}
	if at := l.rewritten(now.spec, specs); at != noSight {
		// What was seen of it may have been added after it was made.
		changes = append(changes, podChange{span: span{l.made.nb, max(at, l.made.na)}, spec: now.spec, deletion: instant.None})
		now.spec = &podSpec{account: now.spec.account, grace: now.spec.grace, anyRefs: true}
	}
	for i := 1; i < len(specs); i++ {
		changes = append(changes, podChange{span: span{l.made.nb, max(specs[i].at, l.made.na)}, spec: specs[i].spec,
			deletion: instant.None})
	}
	return changes
}

// rewritten returns when the pod's first spec was seen, when a write may have changed what it refers
// to since the pod was made; else noSight.
func (l *podLife) rewritten(first *podSpec, specs []podSeen) int64 {
	if first == nil || first.ephemeral == 0 && first.statuses == 0 {
		return noSight
	}
	at := l.specAt
	if len(specs) > 0 {
		at = specs[0].at
	}
	changed := func(b podBlind) bool { return b.kind == podChanged && b.na >= l.made.nb && b.nb <= at }
	if l.more != nil && l.more.given != 0 && l.more.given <= at || slices.ContainsFunc(l.blinds, changed) {
		return at
	}
	return noSight
}

// deletions appends the values that deletionTimestamp had, or may have had.
func (l *podLife) deletions(changes []podChange) []podChange {
	if l.more != nil {
		for _, d := range l.more.deletions {
			at := d.span
			if d.asked != instant.None {
				asked := span{d.asked, d.asked + int64(time.Second)}
				if asked.na < d.na {
					changes = append(changes, podChange{span: asked, deletion: instant.None, asked: true}) // what it was then is not known
				}
				if asked.na >= d.nb {
					at.nb = min(at.nb, d.asked)
				}
			}
			changes = append(changes, podChange{span: at, deletion: d.at, asked: d.estimated})
		}
	}
	if at, certain := l.went(); at.na != instant.None && !certain {
		changes = append(changes, podChange{span: at, deletion: instant.None, asked: true})
	}
	for _, list := range l.s.collections(l.name.namespace) {
		for _, g := range list {
			if g.na >= l.made.nb && g.na < l.until {
				changes = append(changes, podChange{span: g.span, deletion: instant.None, asked: true})
			}
		}
	}
	return changes
}

// nameless appends what writes without a uid changed.
func (l *podLife) nameless(changes []podChange, now *podStep) []podChange {
	for i := range l.blinds {
		b := &l.blinds[i]
		if !l.lives(b) {
			continue
		}
		c := podChange{span: b.span, deletion: instant.None}
		switch {
		case b.kind == podChanged:
			c.anyRefs = true
		case b.kind == podWritten:
			c.asked = true
		case b.kind == podEvicted && (b.uid == "" || b.uid == l.uid):
			c.asked = true
			bound, _, isBound := l.binding()
			if grace := l.graceOf(b, now.spec); isBound && bound.na <= b.na && grace > 0 {
				c.deletion = b.na - b.na%int64(time.Second) + grace*int64(time.Second)
			}
		default:
			continue
		}
		changes = append(changes, c)
	}
	return changes
}

// change turns a step into the one after a change. shown is since when an answer has shown a deletion; it returns the new value.
func (s *podStep) change(c *podChange, shown int64) int64 {
	s.span = c.span
	if c.bound {
		s.node = c.node
	}
	if c.spec != nil {
		s.spec = c.spec
	}
	if c.anyRefs && s.spec != nil {
		spec := *s.spec
		spec.anyRefs = true
		s.spec = &spec
	}
	// One of two simultaneous requests may be answered with what it would have set.
	atOnce := !c.asked && c.deletion != instant.None && c.nb < shown
	if c.deletion != instant.None && (s.deletion == instant.None || !c.asked && (!atOnce || c.deletion < s.deletion)) {
		s.deletion = c.deletion
	}
	if !c.asked && c.deletion != instant.None {
		shown = max(shown, c.na)
	}
	if c.asked || atOnce {
		s.open = true
	} else if c.deletion != instant.None {
		s.open = false
	}
	return shown
}

// podOver is a pod's end, and since when it may have ended; unknown ones have a na of noSight.
type podOver struct{ doubt, end span }

// over returns the pod's end.
func (l *podLife) over() podOver {
	o := podOver{l.doubt(), anytime}
	if end, ended := l.end(); ended {
		o.end = end
	}
	if o.doubt.na >= o.end.na {
		o.doubt.na = noSight
	}
	return o
}

// by returns the moment since which the pod may have gone.
func (o *podOver) by() int64 { return min(o.doubt.na, o.end.na) }

// close appends the pod's end to its steps; now is the last of them.
func (o *podOver) close(steps []podStep, now podStep) []podStep {
	if o.doubt.na != noSight {
		now.span, now.phase = o.doubt, phaseUnknown
		steps = append(steps, now)
	}
	if o.end.na != noSight {
		steps = append(steps, absent(o.end))
	}
	return steps
}

// binding returns when the pod was bound, and to which node; ok is false if it was not, as far as is known. The write may have been
// recorded without the pod's uid.
func (l *podLife) binding() (at span, node string, ok bool) {
	at, ok = l.bindingByUID()
	if ok && l.bind.na != noSight {
		return at, l.node, true
	}
	seen := max(l.bound, l.made.na) // when it was seen to be bound, if it was
	for i := range l.blinds {
		b := &l.blinds[i]
		if b.kind != podBound || ok && (b.node != l.node && b.node != "" || b.nb > seen || b.na < l.unbound) {
			continue
		}
		if !l.lives(b) || l.gone.na != noSight && b.nb > l.gone.na {
			continue
		}
		by := span{b.nb, max(b.na, l.made.na)}
		if ok {
			by.na = min(by.na, seen)
			node = l.node
		} else {
			node = b.node
		}
		by.nb = min(max(by.nb, l.made.nb), by.na)
		return by, node, true
	}
	return at, l.node, ok
}

// bindingByUID returns when the pod was bound, according to observations that name its uid.
func (l *podLife) bindingByUID() (at span, ok bool) {
	switch {
	case l.bind.na != noSight:
		at = span{l.bind.nb, min(l.bind.na, l.bound)}
	case l.node == "":
		return span{}, false
	case l.unbound == instant.None:
		return l.made, true // made with a node, as far as anyone can tell
	default:
		at = span{l.unbound, l.bound}
	}
	at.na = max(at.na, l.made.na)
	at.nb = min(max(at.nb, l.made.nb), at.na)
	return at, true
}

// created returns when the pod was made: in the second of its creationTimestamp, during the write that made it, and before it was first
// seen.
func (p *pod) created(blinds []podBlind) span {
	by := p.by()
	switch {
	case p.born != instant.None && p.made == instant.None:
		return span{min(p.born, by), by}
	case p.born != instant.None:
		return span{p.born, max(by, p.born)}
	}
	at, first, last := p.makers(blinds)
	if last != nil && last.kind == podThere && (first == last || p.made == instant.None) {
		at = span{max(at.nb, last.nb), min(by, last.na)}
	}
	return at
}

// by returns when the pod certainly existed, or had existed.
func (p *pod) by() int64 {
	at := min(p.seen, p.gone.na)
	if p.more != nil && p.more.away != nil {
		at = min(at, p.more.away.na)
	}
	return at
}

// makers returns the second in which the pod was made, if recorded, and the first and the last write that may have made it: writes of the
// name in that second. Pods made before the last had gone by then, so only the last counts if the pod still existed after it.
func (p *pod) makers(blinds []podBlind) (at span, first, last *podBlind) {
	by := p.by()
	if p.made != instant.None {
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
