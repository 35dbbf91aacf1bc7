package state

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Pods are many and come and go: a State keeps one record a pod instead of its versions. A record only narrows as more is observed, by
// minimum and maximum, so it is a function of the set of observations, whatever their order and number.

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
	deletions []podDeletion // by at and grace
	// away is when it went, unless it was bound to a node after it was read; nil for never.
	away *span
	// given is by when the answer to a write first showed what a pod gets after it is made: ephemeral containers, claims. Zero if none did.
	given int64
	// perhaps says that its end is known only from the deletion of a collection (see end); over, that it assumes the pod's containers to
	// have ended when it was read.
	perhaps, over bool
}

// podSpec is what is kept of a pod's content, except the node. Pods of one owner share it.
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
	// grace is its deletionGracePeriodSeconds, by which deletions of one value are told apart: each has a shorter one than that before it.
	grace int64
	span
	// asked is the second in which it was first requested, noTime if unknown: a grace counts from there, however it was shortened, except
	// one of a second at most.
	asked int64
	// held is when only finalizers last held the pod back; its na is noTime for never. Any write may have ended it since.
	held span
	// read is the resourceVersion at which it was read then, 0 when it was seen so.
	read uint64
	// estimated says that it was never seen but calculated, and may have been earlier; over, that the pod's containers had ended when it
	// was read.
	estimated, over bool
	// sudden is when the pod may have gone at once instead; its na is noTime for never.
	sudden span
}

// maxGrace bounds the graces that count.
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

// podTold is what was told of a pod's name without its uid.
type podTold struct {
	blinds []podBlind
	notes  *podNotes // nil for none
}

// podNotes are when a name was looked for in vain, and when finalizers may have been put on or taken
// away, which was not recorded; see [insertMissing].
type podNotes struct{ missing, loosened []span }

// noted returns the notes.
func (t podTold) noted() podNotes {
	if t.notes == nil {
		return podNotes{}
	}
	return *t.notes
}

// size is how much was told.
func (t podTold) size() int { return len(t.blinds) + len(t.noted().missing) + len(t.noted().loosened) }

// pods has the pods of a State.
type pods struct {
	names map[podName]*pod // one of the name, which leads to the others
	uids  map[string]*pod
	count int
	told  map[podName]podTold
	// missing and loosened are how many names have such notes; see maxLookedFor.
	missing, loosened int
	// unnamed has the first and the last moment at which pods without a recorded name were made in a namespace. They are ignored until they
	// are bound, and the binding names them.
	unnamed map[string]span
	// nameless says that there are or were pods whose uid was not recorded.
	nameless bool
	specs    map[podSpec]*podSpec
	// touched has the names whose records are being changed, with their steps before.
	touched map[podName][]podStep
}

func newPods() pods {
	return pods{
		names: map[podName]*pod{}, uids: map[string]*pod{}, told: map[podName]podTold{}, unnamed: map[string]span{},
		specs: map[podSpec]*podSpec{}, touched: map[podName][]podStep{},
	}
}

// all returns every name of which anything is kept.
func (ps *pods) all() []podName {
	return slices.AppendSeq(slices.Collect(maps.Keys(ps.names)), func(yield func(podName) bool) {
		for n := range ps.told {
			if ps.names[n] == nil && !yield(n) {
				return
			}
		}
	})
}

// maxPodSpecs bounds the shared specs, and how many pods go before the tables are rebuilt.
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

// own returns a name in memory of the state's: that of an observation is a piece of what the observation was read from.
func (ps *pods) own(n podName) podName {
	if p := ps.names[n]; p != nil {
		return p.name
	}
	return podName{n.namespace, strings.Clone(n.name)}
}

// record returns the record of a name's uid, and makes it if need be.
func (ps *pods) record(n podName, uid string) *pod {
	for p := ps.names[n]; p != nil; p = p.older {
		if p.uid == uid {
			return p
		}
	}
	// One piece of memory for both: there is one such piece for every pod.
	text := n.name + uid
	n.name, uid = text[:len(n.name)], text[len(n.name):]
	p := &pod{
		name: n, uid: uid, made: instant.None, born: instant.None, seen: noSight, alive: instant.None, unbound: instant.None,
		bound: noSight,
		bind:  anytime, gone: anytime, older: ps.names[n],
	}
	ps.names[n] = p
	ps.count++
	// Two pods of one uid do not occur. Should they, the choice must not depend on order.
	if q := ps.uids[uid]; q == nil || n.namespace < q.name.namespace || n.namespace == q.name.namespace && n.name < q.name.name {
		ps.uids[uid] = p
	}
	return p
}

// extra returns what few pods have, which it makes.
func (p *pod) extra() *podMore {
	if p.more == nil {
		p.more = &podMore{}
	}
	return p.more
}

// setNode sets the node of a pod, which never changes. If two are observed, the choice must not depend on their order.
func (p *pod) setNode(node string) {
	if p.node == "" || node != "" && node < p.node {
		p.node = node
	}
}

// noRV stands for an unknown resourceVersion. Only an observation of a pod's end lacks one: it comes after all others.
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
	m := p.extra()
	for i, w := range m.specs {
		if *w.spec == *n.spec {
			m.specs[i] = merge(w)
			return
		}
	}
	m.specs = append(m.specs, n)
}

// addDeletion notes a value of deletionTimestamp.
func (p *pod) addDeletion(d podDeletion) {
	m := p.extra()
	i, known := slices.BinarySearchFunc(m.deletions, d, func(a, b podDeletion) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.grace, b.grace))
	})
	if !known {
		m.deletions = slices.Insert(m.deletions, i, d)
		return
	}
	w := &m.deletions[i]
	w.estimated = w.estimated && d.estimated
	firstTime(&w.asked, d.asked)
	if c := compareSpans(d.held, w.held); c > 0 || c == 0 && d.read < w.read {
		w.held, w.read, w.over = d.held, d.read, d.over
	}
	if w.sudden.na == instant.None || d.sudden.na != instant.None && d.sudden.tighter(w.sudden) {
		w.sudden = d.sudden
	}
	if d.tighter(w.span) {
		w.span = d.span
	}
}

// addPodBlind notes a write that names no uid.
func (s *State) addPodBlind(n podName, b podBlind) {
	s.pods.nameless = s.pods.nameless || b.kind == podThere || b.kind == podBound
	told := s.pods.told[n]
	i, known := slices.BinarySearchFunc(told.blinds, b, comparePodBlinds)
	if known {
		return
	}
	told.blinds = slices.Insert(told.blinds, i, b)
	s.pods.told[n] = told
	s.versions++
}

// notePod notes that a name was looked for in vain, or that its finalizers may have been changed.
func (s *State) notePod(n podName, loosened bool, at span) {
	told := s.pods.told[n]
	if told.notes == nil {
		told.notes = &podNotes{}
	}
	list, names := &told.notes.missing, &s.pods.missing
	if loosened {
		list, names = &told.notes.loosened, &s.pods.loosened
	}
	had := len(*list)
	if had == 0 && s.pods.names[n] == nil && *names >= maxLookedFor {
		return
	}
	is, ok := insertMissing(*list, at)
	if !ok {
		return
	}
	if *list = is; had == 0 {
		*names++
	}
	s.pods.told[n] = told
	s.versions += len(is) - had
}

// blindsOf returns the writes of a name that name no uid, by time, and what was noted of it.
func (ps *pods) blindsOf(n podName) []podBlind {
	told := ps.told[n]
	if told.notes == nil {
		return told.blinds
	}
	out := slices.Grow(slices.Clone(told.blinds), told.size()-len(told.blinds))
	for _, at := range told.notes.missing {
		out = append(out, podBlind{span: at, kind: podMissing, grace: -1})
	}
	for _, at := range told.notes.loosened {
		out = append(out, podBlind{span: at, kind: podLoosened, grace: -1})
	}
	slices.SortFunc(out, comparePodBlinds)
	return out
}

// takeUnnamed records that a pod without a recorded name was made; it returns false if that says nothing new.
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

// maybePod reports whether a namespace may have a pod whose name was not recorded.
func (s *State) maybePod(namespace string, at int64) bool {
	made, ok := s.pods.unnamed[namespace]
	if !ok || made.nb > at {
		return false
	}
	for _, l := range s.listings[kept.ResPod] {
		if l.nb >= made.na && l.na <= at {
			return false
		}
	}
	return true
}
