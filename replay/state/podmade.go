package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
)

// created returns when the pod came to be: in the second its creationTimestamp tells, by the
// write that made it, and before it was first seen.
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
