package state

import (
	"cmp"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// takePod records an observation of one pod.
func (s *State) takePod(o *observe.Observation, at span) {
	n := s.pods.own(podName{s.in.Str(o.Namespace), o.Name})
	s.touchPod(n)
	r, known := readPod(o)
	switch {
	case o.Deleted && o.Complete:
		s.notePod(n, false, at)
	case o.UID == "" && o.Unchanged:
		s.notePod(n, true, at)
	case o.UID == "" || r.Kind == kept.KindEviction:
		s.addPodBlind(n, s.podBlind(o, r, known, at))
	default:
		p := s.pods.record(n, o.UID)
		p.takePresence(o, r.Reduced, at)
		if r.Kind == kept.KindBinding {
			p.bind.narrow(at)
			p.setNode(s.in.Str(r.Reduced.Target))
		} else if known {
			s.takePodContent(p, o, r, at)
		}
	}
}

// readPod reads what an observation holds of a pod. known is false where it holds nothing that can be
// read: the write happened, whatever it wrote.
func readPod(o *observe.Observation) (r *kept.Object, known bool) {
	if len(o.Object) > 0 && !o.Unknown {
		if r, err := kept.ReadObject(kept.ResPod, o.Object); err == nil {
			return r, true
		}
	}
	return &kept.Object{Reduced: &kept.Facts{Bare: true}}, false
}

// podBlind returns the write that an observation is of which names no uid, and an eviction, which is answered without its pod.
func (s *State) podBlind(o *observe.Observation, r *kept.Object, known bool, at span) podBlind {
	b := podBlind{span: at, grace: -1, uid: s.in.Str(o.UID), made: o.Created}
	switch {
	case r.Kind == kept.KindEviction:
		b.kind, b.told, b.holds = podEvicted, r.Reduced.Told, r.Reduced.Holds
		if r.Reduced.Grace != nil {
			b.grace = *r.Reduced.Grace
		}
	case o.Deleted && o.Unknown:
		b.kind = podWritten
	case o.Deleted:
		b.kind = podGone
	case r.Kind == kept.KindBinding:
		b.kind, b.node = podBound, s.in.Str(r.Reduced.Target)
	case known && r.Reduced.Bare && r.Reduced.AnyRefs:
		b.kind = podChanged
	case known:
		b.kind, b.node, b.spec = podThere, s.in.Str(r.Reduced.Node), s.podSpec(r.Reduced)
	}
	return b
}

// takePresence notes that the pod was there, or ended.
func (p *pod) takePresence(o *observe.Observation, f *kept.Facts, at span) {
	switch {
	case o.Deleted && f != nil && f.Sudden:
		m := p.extra()
		if m.away == nil {
			ever := anytime
			m.away = &ever
		}
		m.away.narrow(at)
	case o.Deleted:
		if perhaps := o.Update && (p.gone.na == noSight || p.more != nil && p.more.perhaps); perhaps || p.more != nil {
			m := p.extra()
			m.over = f.Over && (m.over || !m.perhaps)
			m.perhaps = perhaps
		}
		p.gone.narrow(at)
	default:
		p.alive, p.seen = max(p.alive, at.nb), min(p.seen, at.na)
	}
	if o.Created {
		p.born = max(p.born, at.nb)
	}
}

// takePodContent notes what the pod held.
func (s *State) takePodContent(p *pod, o *observe.Observation, r *kept.Object, at span) {
	firstTime(&p.made, instant.Of(r.Metadata.Created()))
	rv := versionOf(o)
	s.takeFinalizers(p, o, r, rv, at)
	if deletion := instant.Of(r.Metadata.Deletion()); deletion != instant.None && !o.Deleted {
		p.addDeletion(deletionOf(deletion, o, r, at))
	}
	f := r.Reduced
	if f.Bare {
		return
	}
	switch {
	case f.AnyNode:
	case f.Node != "":
		p.setNode(s.in.Str(f.Node))
		p.bound = min(p.bound, at.na)
	case !o.Deleted:
		p.unbound = max(p.unbound, at.nb)
	}
	if o.Source == observe.SourceAudit && (f.Ephemeral > 0 || f.Statuses > 0) {
		if m := p.extra(); m.given == 0 || at.na < m.given {
			m.given = at.na
		}
	}
	p.addSpec(podSeen{s.podSpec(f), rv, at.na})
}

// takeFinalizers notes whether the pod had finalizers.
func (s *State) takeFinalizers(p *pod, o *observe.Observation, r *kept.Object, rv uint64, at span) {
	f, some := r.Reduced, len(r.Metadata.Finalizers) > 0
	switch {
	case o.Deleted && f.Read > 0: // with none, or none that its deletion did not take away
		p.finals.add(finalizersSeen{rv: f.Read, at: at.nb, over: f.Over})
	case o.Deleted:
	case rv > 0:
		p.finals.add(finalizersSeen{rv: rv, at: at.nb, some: some, deleted: r.Metadata.DeletionTimestamp != "", over: f.Over})
	case some && f.Read == 0: // the options of its deletion put them on
		s.notePod(p.name, true, at)
	}
}

// deletionOf returns the deletion that a pod with a deletionTimestamp shows.
func deletionOf(deletion int64, o *observe.Observation, r *kept.Object, at span) podDeletion {
	d := podDeletion{at: deletion, span: at, asked: instant.None, held: noSpan, estimated: r.Reduced.Estimated, sudden: noSpan}
	if r.Reduced.Sudden {
		d.sudden = at
	}
	if grace := r.Metadata.GracePeriod; grace != nil {
		d.grace = *grace
	}
	if d.grace > 1 && d.grace < int64(maxGrace/time.Second) {
		d.asked = deletion - d.grace*int64(time.Second)
	}
	if len(r.Metadata.Finalizers) > 0 && d.grace == 0 {
		d.held, d.read, d.over = at, r.Reduced.Read, r.Reduced.Over
		if o.Source == observe.SourceSnapshot {
			d.held.na = at.nb // when it was seen
		}
	}
	return d
}

// podSpec returns the shared spec of facts; nil for bare ones.
func (s *State) podSpec(f *kept.Facts) *podSpec {
	if f.Bare {
		return nil
	}
	spec := podSpec{
		account: s.in.Str(f.Account), refs: graph.Refs(f.Refs), grace: -1, statuses: f.Statuses, ephemeral: f.Ephemeral, anyRefs: f.AnyRefs,
	}
	if f.Grace != nil {
		spec.grace = *f.Grace
	}
	return s.pods.intern(spec)
}

// podBlindKind is what a write that names no uid did.
type podBlindKind uint8

const (
	podWritten   podBlindKind = iota // anything: it may be gone
	podThere                         // it was created
	podGone                          // it was deleted
	podBound                         // it was bound to a node
	podEvicted                       // its deletion was asked for
	podChanged                       // what it refers to was changed
	podMissing                       // it was looked for in vain
	podCollected                     // it may have been deleted with others
	podLoosened                      // its finalizers may have been changed
)

// podBlind is a write that names no uid.
type podBlind struct {
	span
	kind  podBlindKind
	uid   string // of an eviction: "" when not told
	node  string
	grace int64 // of an eviction: -1 when not told
	spec  *podSpec
	// told says that an eviction's options are known, holds that they put on a finalizer.
	told, holds bool
	made        bool // it may have made the pod
}

// ends reports whether a pod may have ended by the write.
func (b *podBlind) ends() bool {
	return b.kind == podWritten || b.kind == podGone || b.kind == podEvicted || b.kind == podCollected
}

func comparePodBlinds(a, b podBlind) int {
	for _, d := range [...][2]int64{{a.na, b.na}, {a.nb, b.nb}, {int64(a.kind), int64(b.kind)}, {a.grace, b.grace}} {
		if d[0] != d[1] {
			if d[0] < d[1] {
				return -1
			}
			return 1
		}
	}
	if c := strings.Compare(a.node+"\x00"+a.uid, b.node+"\x00"+b.uid); c != 0 {
		return c
	}
	if c := cmp.Compare(a.marks(), b.marks()); c != 0 {
		return c
	}
	return comparePodSpecs(a.spec, b.spec)
}

// marks tells otherwise equal writes apart.
func (b *podBlind) marks() (n int) {
	for i, is := range [...]bool{b.told, b.holds, b.made} {
		if is {
			n |= 1 << i
		}
	}
	return n
}
