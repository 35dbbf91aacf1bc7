package state

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// Pods are many and come and go: a State keeps one record a pod instead of its versions. What
// a record says only ever becomes narrower as more is observed, by minimum and maximum, so
// that it is a function of the set of observations, in whatever order and however often.

// podName names a pod.
type podName struct{ namespace, name string }

// pod is everything observed of one pod, by uid.
type pod struct {
	name podName
	uid  string

	made    int64 // creationTimestamp, noTime when not recorded
	born    int64 // when the write that made it began; noTime when not recorded
	seen    int64 // the earliest moment by which it was there for certain
	alive   int64 // the latest moment since which it was there still
	unbound int64 // likewise without a node; noTime when never seen so
	bound   int64 // the earliest moment by which it was seen with a node
	bind    span  // of the write that bound it; na is noSight when not recorded
	gone    span  // of its end; na is noSight when not recorded

	node   string
	spec   *podSpec // one of those seen; nil when none was recorded
	specRV uint64   // the lowest resourceVersion it was seen at,
	specAt int64    // and the earliest moment
	finals finalizersSeen
	more   *podMore // what few pods have
	older  *pod     // another pod of the same name
}

// podMore is what few pods have.
type podMore struct {
	specs     []podSeen     // further specs: ephemeral containers, claims
	deletions []podDeletion // by at
	// away is when it went, unless it was bound to a node since it was read; nil for never.
	away *span
	// given is when the answer to a write first showed what a pod is given after it is made,
	// at the latest: ephemeral containers, claims. Zero when none did.
	given int64
	// perhaps says that its end is known from the deletion of a collection alone (see end), over that it
	// rests on the pod's containers having ended when it was read.
	perhaps, over bool
}

// podSpec is what is kept of a pod's content, but the node. Pods of one owner share it.
type podSpec struct {
	account   string
	refs      graph.Refs
	grace     int64 // terminationGracePeriodSeconds, -1 when not recorded
	statuses  uint32
	ephemeral uint16
	anyRefs   bool
}

// podSeen is when a spec was seen.
type podSeen struct {
	spec *podSpec
	rv   uint64
	at   int64
}

// podDeletion is one value deletionTimestamp has had, and when it was first seen.
type podDeletion struct {
	at int64
	span
	// asked is the second in which it was first asked for, noTime when that is not known: a grace
	// counts from there, however it was shortened, but for one of a second at most.
	asked int64
	// held is when finalizers alone held the pod back, last; its na is noTime for never. Any write
	// may have ended it since.
	held span
	// read is the resourceVersion at which it was read then, 0 when it was seen so.
	read uint64
	// estimated says that it was never seen, but worked out, and may have been earlier; over that the
	// pod's containers had ended when it was read.
	estimated, over bool
	// sudden is when the pod may have gone at once instead: its na is noTime for never.
	sudden span
}

// maxGrace bounds the graces that are counted with.
const maxGrace = 10 * 365 * 24 * time.Hour

// comparePodSpecs is a fixed order, nil first.
func comparePodSpecs(a, b *podSpec) int {
	switch {
	case a == b || a != nil && b != nil && *a == *b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return strings.Compare(a.key(), b.key())
}

func (p *podSpec) key() string {
	any := "0"
	if p.anyRefs {
		any = "1"
	}
	return strings.Join([]string{p.account, string(p.refs), any, strconv.FormatInt(p.grace, 10),
		strconv.FormatUint(uint64(p.statuses), 10), strconv.FormatUint(uint64(p.ephemeral), 10)}, "\x00")
}

// pods are the pods of a State.
type pods struct {
	names  map[podName]*pod // one of the name, which leads to the others
	uids   map[string]*pod
	count  int
	blinds map[podName][]podBlind
	// missing is when names were looked for in vain; see maxMissing and maxLookedFor.
	missing map[podName][]presence
	// loosened is when finalizers may have been put on or taken away, which was not recorded; see
	// [insertMissing].
	loosened map[podName][]presence
	// unnamed are the first and the last moment at which pods were made in a namespace whose
	// names were not recorded. Until they are bound they count for nothing, and what binds
	// them names them.
	unnamed map[string]span
	// nameless says that there are or were pods whose uid was not recorded.
	nameless bool
	specs    map[podSpec]*podSpec
	// touched are the names whose records are being changed, with what was said of them
	// before.
	touched map[podName][]podStep
}

func newPods() pods {
	return pods{
		unnamed: map[string]span{},
		names:   map[podName]*pod{}, uids: map[string]*pod{}, blinds: map[podName][]podBlind{},
		missing: map[podName][]presence{}, loosened: map[podName][]presence{},
		specs: map[podSpec]*podSpec{}, touched: map[podName][]podStep{},
	}
}

// maxPodSpecs bounds the specs that are shared, and how many pods go before the tables are made anew.
const maxPodSpecs = 1 << 18

// intern makes equal specs share memory.
func (ps *pods) intern(spec podSpec) *podSpec {
	if p := ps.specs[spec]; p != nil {
		return p
	}
	if len(ps.specs) >= maxPodSpecs {
		clear(ps.specs)
	}
	spec.refs = graph.Refs(strings.Clone(string(spec.refs)))
	p := &spec
	ps.specs[spec] = p
	return p
}

// find returns the record of a name's uid, nil when there is none.
func (ps *pods) find(n podName, uid string) *pod {
	p := ps.names[n]
	for p != nil && p.uid != uid {
		p = p.older
	}
	return p
}

// record returns the record of a name's uid, which it makes.
func (ps *pods) record(n podName, uid string) *pod {
	if p := ps.find(n, uid); p != nil {
		return p
	}
	// One piece of memory for both: there is one such piece for every pod.
	text := n.name + uid
	n.name, uid = text[:len(n.name)], text[len(n.name):]
	p := &pod{
		name: n, uid: uid, made: instant.None, born: instant.None, seen: noSight, alive: instant.None, unbound: instant.None, bound: noSight,
		bind: span{instant.None, noSight}, gone: span{instant.None, noSight}, older: ps.names[n],
	}
	ps.names[n] = p
	ps.count++
	// Two pods of one uid do not occur. Should they, the choice must not depend on order.
	if q := ps.uids[uid]; q == nil || n.namespace < q.name.namespace || n.namespace == q.name.namespace && n.name < q.name.name {
		ps.uids[uid] = p
	}
	return p
}

// takePod records an observation of one pod.
func (s *State) takePod(o *observe.Observation, at span) {
	n := podName{s.in.Str(o.Namespace), o.Name}
	r := &kept.Object{Reduced: &kept.Facts{Bare: true}}
	known := len(o.Object) > 0 && !o.Unknown
	if known {
		if got, err := kept.ReadObject(kept.ResPod, o.Object); err == nil {
			r = got
		} else {
			known = false // the write happened, whatever it wrote
		}
	}
	s.touchPod(n)
	if o.Deleted && o.Complete {
		s.notePod(s.pods.missing, n, presence{at.nb, at.na})
		return
	}
	if o.UID == "" && o.Unchanged {
		s.notePod(s.pods.loosened, n, presence{at.nb, at.na})
		return
	}
	if o.UID == "" || r.Kind == kept.KindEviction {
		b := podBlind{span: at, grace: -1, uid: s.in.Str(o.UID), made: o.Created}
		switch {
		case r.Kind == kept.KindEviction:
			b.kind = podEvicted
			if r.Reduced.Grace != nil {
				b.grace = *r.Reduced.Grace
			}
			b.told, b.holds = r.Reduced.Told, r.Reduced.Holds
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
		s.addPodBlind(n, b)
		return
	}
	p := s.pods.record(n, o.UID)
	switch {
	case o.Deleted && r.Reduced != nil && r.Reduced.Sudden:
		if p.more == nil {
			p.more = &podMore{}
		}
		if p.more.away == nil {
			p.more.away = &span{instant.None, noSight}
		}
		p.more.away.nb, p.more.away.na = max(p.more.away.nb, at.nb), min(p.more.away.na, at.na)
	case o.Deleted:
		if perhaps := o.Update && (p.gone.na == noSight || p.more != nil && p.more.perhaps); perhaps || p.more != nil {
			if p.more == nil {
				p.more = &podMore{}
			}
			p.more.over = r.Reduced.Over && (p.more.over || !p.more.perhaps)
			p.more.perhaps = perhaps
		}
		p.gone = span{max(p.gone.nb, at.nb), min(p.gone.na, at.na)}
	default:
		p.alive, p.seen = max(p.alive, at.nb), min(p.seen, at.na)
	}
	if o.Created {
		p.born = max(p.born, at.nb)
	}
	if r.Kind == kept.KindBinding {
		p.bind = span{max(p.bind.nb, at.nb), min(p.bind.na, at.na)}
		p.setNode(s.in.Str(r.Reduced.Target))
		return
	}
	if !known {
		return
	}
	if made := instant.Of(r.Metadata.Created()); made != instant.None && (p.made == instant.None || made < p.made) {
		p.made = made
	}
	rv, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		rv = 0
	}
	switch some := len(r.Metadata.Finalizers) > 0; {
	case o.Deleted:
		if r.Reduced.Read > 0 { // with none, or none that its deletion did not take away
			p.finals.add(finalizersSeen{rv: r.Reduced.Read, at: at.nb, over: r.Reduced.Over})
		}
	case rv > 0:
		p.finals.add(finalizersSeen{rv: rv, at: at.nb, some: some, deleted: r.Metadata.DeletionTimestamp != "", over: r.Reduced.Over})
	case some && r.Reduced.Read == 0: // the options of its deletion put them on
		s.notePod(s.pods.loosened, n, presence{at.nb, at.na})
	}
	if d := instant.Of(r.Metadata.Deletion()); d != instant.None && !o.Deleted {
		n := podDeletion{at: d, span: at, asked: instant.None, held: span{instant.None, instant.None}, estimated: r.Reduced.Estimated, sudden: span{instant.None, instant.None}}
		if r.Reduced.Sudden {
			n.sudden = at
		}
		m := &r.Metadata
		if m.GracePeriod != nil && *m.GracePeriod > 1 && *m.GracePeriod < int64(maxGrace/time.Second) {
			n.asked = d - *m.GracePeriod*int64(time.Second)
		}
		if len(m.Finalizers) > 0 && (m.GracePeriod == nil || *m.GracePeriod == 0) {
			n.held, n.read, n.over = at, r.Reduced.Read, r.Reduced.Over
			if o.Source == observe.SourceSnapshot {
				n.held.na = at.nb // when it was seen
			}
		}
		p.addDeletion(n)
	}
	if r.Reduced.Bare {
		return
	}
	switch f := r.Reduced; {
	case f.AnyNode:
	case f.Node != "":
		p.setNode(s.in.Str(f.Node))
		p.bound = min(p.bound, at.na)
	case !o.Deleted:
		p.unbound = max(p.unbound, at.nb)
	}
	if f := r.Reduced; o.Source == observe.SourceAudit && (f.Ephemeral > 0 || f.Statuses > 0) {
		if p.more == nil {
			p.more = &podMore{}
		}
		if p.more.given == 0 || at.na < p.more.given {
			p.more.given = at.na
		}
	}
	p.addSpec(podSeen{s.podSpec(r.Reduced), rv, at.na})
}

// podSpec returns the shared spec of facts; nil for bare ones.
func (s *State) podSpec(f *kept.Facts) *podSpec {
	if f.Bare {
		return nil
	}
	spec := podSpec{account: s.in.Str(f.Account), refs: graph.Refs(f.Refs), grace: -1, statuses: f.Statuses, ephemeral: f.Ephemeral, anyRefs: f.AnyRefs}
	if f.Grace != nil {
		spec.grace = *f.Grace
	}
	return s.pods.intern(spec)
}

// setNode notes the node of a pod, which never changes. Should two be told, the choice must
// not depend on which came first.
func (p *pod) setNode(node string) {
	if p.node == "" || node != "" && node < p.node {
		p.node = node
	}
}

// noRV stands for a resourceVersion that was not told. Only what a pod's end shows has none:
// it comes after all others.
const noRV uint64 = math.MaxUint64

// addSpec notes that a spec was seen.
func (p *pod) addSpec(n podSeen) {
	if n.rv == 0 {
		n.rv = noRV
	}
	merge := func(w podSeen) podSeen { return podSeen{w.spec, min(w.rv, n.rv), min(w.at, n.at)} }
	if p.spec == nil {
		p.spec, p.specRV, p.specAt = n.spec, n.rv, n.at
		return
	}
	if *p.spec == *n.spec {
		w := merge(podSeen{p.spec, p.specRV, p.specAt})
		p.specRV, p.specAt = w.rv, w.at
		return
	}
	if p.more == nil {
		p.more = &podMore{}
	}
	for i, w := range p.more.specs {
		if *w.spec == *n.spec {
			p.more.specs[i] = merge(w)
			return
		}
	}
	p.more.specs = append(p.more.specs, n)
}

// addDeletion notes a value of deletionTimestamp.
func (p *pod) addDeletion(d podDeletion) {
	if p.more == nil {
		p.more = &podMore{}
	}
	list := p.more.deletions
	i := 0
	for i < len(list) && list[i].at < d.at {
		i++
	}
	if i == len(list) || list[i].at != d.at {
		p.more.deletions = slices.Insert(list, i, d)
		return
	}
	w := &list[i]
	w.estimated = w.estimated && d.estimated
	if w.asked == instant.None || d.asked != instant.None && d.asked < w.asked {
		w.asked = d.asked
	}
	if c := cmp.Or(cmp.Compare(d.held.na, w.held.na), cmp.Compare(d.held.nb, w.held.nb)); c > 0 || c == 0 && d.read < w.read {
		w.held, w.read, w.over = d.held, d.read, d.over
	}
	if w.sudden.na == instant.None || d.sudden.na != instant.None && (d.sudden.na < w.sudden.na || d.sudden.na == w.sudden.na && d.sudden.nb > w.sudden.nb) {
		w.sudden = d.sudden
	}
	if d.na < w.na || d.na == w.na && d.nb > w.nb {
		w.span = d.span
	}
}

// addPodBlind notes a write that names no uid.
func (s *State) addPodBlind(n podName, b podBlind) {
	list := s.pods.blinds[n]
	s.pods.nameless = s.pods.nameless || b.kind == podThere || b.kind == podBound
	i, found := slices.BinarySearchFunc(list, b, comparePodBlinds)
	if found {
		return
	}
	n.name = strings.Clone(n.name)
	s.pods.blinds[n] = slices.Insert(list, i, b)
	s.versions++
}

// notePod notes in a table when something was found out about a name.
func (s *State) notePod(table map[podName][]presence, n podName, p presence) {
	had := table[n]
	if had == nil && s.pods.names[n] == nil && len(table) >= maxLookedFor {
		return
	}
	list, ok := insertMissing(had, p)
	if !ok {
		return
	}
	n.name = strings.Clone(n.name)
	table[n] = list
	s.versions += len(list) - len(had)
}

// blindsOf returns the writes of a name that name no uid, by time, and when it was looked for in
// vain.
func (ps *pods) blindsOf(n podName) []podBlind {
	blinds, missing, loosened := ps.blinds[n], ps.missing[n], ps.loosened[n]
	if len(missing)+len(loosened) == 0 {
		return blinds
	}
	out := make([]podBlind, 0, len(blinds)+len(missing)+len(loosened))
	out = append(out, blinds...)
	for _, p := range missing {
		out = append(out, podBlind{span: span{p.began, p.ended}, kind: podMissing, grace: -1})
	}
	for _, p := range loosened {
		out = append(out, podBlind{span: span{p.began, p.ended}, kind: podLoosened, grace: -1})
	}
	slices.SortFunc(out, comparePodBlinds)
	return out
}

// takeUnnamed records that a pod was made whose name was not recorded; false when that says
// nothing new.
func (s *State) takeUnnamed(namespace string, at span) bool {
	s.pods.nameless = true
	was, ok := s.pods.unnamed[namespace]
	is := at
	if ok {
		is = span{min(was.nb, at.nb), max(was.na, at.na)}
	}
	s.pods.unnamed[s.in.Str(namespace)] = is
	return !ok || is != was
}

// maybePod tells whether a pod of a name nobody told may be in a namespace.
func (s *State) maybePod(namespace string, at int64) bool {
	made, ok := s.pods.unnamed[namespace]
	if !ok || made.nb > at {
		return false
	}
	for _, l := range s.listings[kept.ResPod] {
		if l.began >= made.na && l.ended <= at {
			return false
		}
	}
	return true
}
