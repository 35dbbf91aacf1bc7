package state

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/graph"
)

// ErrOtherCluster is returned for a snapshot that contradicts what is known of the
// cluster: it was taken of another one, or of the cluster before it was made anew.
var ErrOtherCluster = errors.New("state belongs to another cluster")

// State is everything known of one cluster's objects. Its methods may be called from any
// goroutine at any time; Apply, LoadSnapshot and Prune wait for each other.
type State struct {
	cluster  string
	revision atomic.Uint64
	timeline atomic.Pointer[timeline]
	views    materialiser

	mu       sync.RWMutex                    // guards what follows against the readers of single objects
	objects  [resCount]map[objectKey]*object // and scopes; of pods and credentials scopes only
	listings [resCount][]*listing            // by (ended, began)
	gone     map[objectKey][]blind           // collections deleted without a list, by scope
	standIns map[objectKey][]string          // names of stand-ins, by how they begin
	refs     map[objectKey]map[objectKey]struct{}
	versions int
	// lookedFor is how many objects were first heard of by being looked for in vain.
	lookedFor int
	in        interner
	history   history

	pods        pods
	credentials map[string]*credential
	forgot      bool  // credentials have been forgotten
	issues      bool  // the issue of a token has been seen
	horizon     int64 // of the last Prune, noTime when there was none
	past        atomic.Pointer[past]
	seen        atomic.Pointer[map[string]releases] // versions of apiservers; replaced as a whole
	graph       *graph.Graph
}

// New returns the empty State of a cluster: everything is unknown.
func New(cluster string) *State {
	s := &State{
		cluster: cluster, gone: map[objectKey][]blind{},
		refs: map[objectKey]map[objectKey]struct{}{},
		pods: newPods(), credentials: map[string]*credential{}, horizon: noTime, graph: graph.New(),
	}
	s.views.root = &cell{views: [1]View{{RBAC: rbacindex.Empty()}}}
	s.timeline.Store(&timeline{})
	var dirty []objectKey
	for res := resNone + 1; res < resCount; res++ {
		k := objectKey{res: res}
		s.objects[res] = map[objectKey]*object{}
		s.objects[k.res][k] = &object{key: k}
		dirty = append(dirty, k)
	}
	s.resolve(dirty)
	s.revision.Store(0)
	return s
}

// Cluster returns the cluster's name.
func (s *State) Cluster() string { return s.cluster }

// Revision counts the changes of what the State answers. It grows with every Apply and
// LoadSnapshot that said something new.
func (s *State) Revision() uint64 { return s.revision.Load() }

// Stats are the sizes of a State, for metrics.
type Stats struct {
	Objects  int // names under which anything was observed, but pods and credentials
	Versions int // versions, ends, writes, pods and credentials kept
	Changes  int // changes of the RBAC view
	Strings  int // distinct strings in the interning table

	Pods        int // pods by uid
	Credentials int // issued tokens and certificates

	HistoryBytes int // of large contents of RBAC objects, those in force among them
	Forgotten    int // contents that were forgotten because there were too many
}

// Stats returns the State's sizes.
func (s *State) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{Versions: s.size(), Strings: len(s.in.table), Pods: s.pods.count, Credentials: len(s.credentials),
		HistoryBytes: s.history.bytes, Forgotten: s.history.lost}
	for _, objects := range s.objects {
		st.Objects += len(objects)
	}
	for _, b := range s.timeline.Load().blocks() {
		st.Changes += len(b.entries)
	}
	return st
}

// size is how many versions, ends, writes, pods and credentials are kept.
func (s *State) size() int { return s.versions + s.pods.count + len(s.credentials) }

// Apply takes in observations, in any order and any number of times, and returns what
// changed of the past and the present: nothing when they were known. Observations that
// name no kept resource, or no object, are ignored. The observations' buffers are not
// kept.
func (s *State) Apply(obs ...Observation) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	var dirty []objectKey
	var effects []Effect
	before := s.whole()
	for i := range obs {
		dirty = s.take(&obs[i], dirty, &effects)
	}
	if len(dirty) > 0 {
		effects = append(effects, s.resolve(dirty)...)
	}
	effects = append(effects, s.resolvePods()...)
	effects = append(effects, s.whole().since(before)...)
	if len(effects) > 0 {
		s.revision.Add(1)
	}
	s.trimHistory()
	return effects
}

// take records one observation and appends the keys that must be resolved anew. The effects of
// what needs no resolving are appended at once.
func (s *State) take(o *Observation, dirty []objectKey, effects *[]Effect) []objectKey {
	at := span{nanos(o.NotBefore), nanos(o.NotAfter)}
	if at.na < at.nb {
		at.na = at.nb // clocks were set back between the two readings
	}
	res := resourceOf(o.Resource)
	if res == resNone {
		if o.Resource == Apiservers {
			*effects = append(*effects, s.takeSighting(o, at)...)
		}
		return dirty
	}
	if s.horizon != noTime && at.na < s.horizon {
		said := s.late(o, res)
		o, at.na = &said, nanos(said.NotAfter)
	}
	if res == resPod && o.AllOf && o.Unknown && !o.Deleted && !o.Complete && o.Namespace != "" && len(o.Object) > 0 {
		if s.takeUnnamed(o.Namespace, at) {
			*effects = append(*effects, Effect{Resource: Pods, Namespace: o.Namespace, From: timeOf(at.nb)})
		}
		return dirty
	}
	if o.AllOf {
		n := len(dirty)
		dirty = s.takeScope(o, objectKey{res: res, namespace: o.Namespace}, at, dirty)
		if res == resPod && len(dirty) > n && len(s.pods.unnamed) > 0 {
			*effects = append(*effects, Effect{Resource: Pods, From: timeOf(at.nb)}) // names are told again
		}
		return dirty
	}
	if res == resCredential {
		if s.takeIssue(o) {
			*effects = append(*effects, credentialEffect(o.Name))
		}
		return dirty
	}
	if o.Name == "" || res.namespaced() != (o.Namespace != "") {
		return dirty
	}
	if res == resPod {
		s.takePod(o, at)
		return dirty
	}
	k := objectKey{res, s.in.str(o.Namespace), s.in.str(o.Name)}
	obj := s.objects[k.res][k]
	if obj == nil {
		if o.Deleted && o.Complete || o.Source == SourceRead && o.UID == "" {
			if s.lookedFor >= maxLookedFor {
				return dirty
			}
			s.lookedFor++
		}
		obj = &object{key: k}
		s.objects[k.res][k] = obj
		s.noteStandIn(k)
	}
	size := obj.size()
	changed := s.takeObject(o, obj, at, effects)
	s.versions += obj.size() - size
	if changed {
		dirty = append(dirty, k)
	}
	return dirty
}

// takeObject records an observation of one object; false when it says nothing new.
func (s *State) takeObject(o *Observation, obj *object, at span, effects *[]Effect) bool {
	switch {
	case o.Deleted && o.Complete:
		return obj.addMissing(presence{at.nb, at.na})
	case o.Source == SourceRead && o.UID == "":
		return obj.addShown(presence{at.nb, at.na})
	case o.Deleted && o.Unknown:
		return obj.addBlind(blind{span: at, ending: true, maybe: o.Unchanged && obj.key.res.kind() != 0})
	case o.Deleted && o.UID == "":
		return obj.addBlind(blind{span: at, absent: true})
	case o.Deleted:
		return obj.addEnd(s.in.str(o.UID), o.Source, at, o.Update)
	}
	listed := o.Source == SourceSnapshot && obj.addPresence(presence{at.nb, at.na})
	var c *content
	patched := o.Patch && obj.key.res.kind() != 0
	maybe := o.Unknown && obj.key.res.kind() != 0 && (len(o.Object) > 0 || patched)
	switch {
	case patched:
		c = s.in.patch(obj.key.res, obj.key, o.Object)
		s.refer(obj.key, c.patch().made)
	case len(o.Object) > 0 && (!o.Unknown || maybe):
		// Content that cannot be read is unknown content: the write happened.
		c, _ = s.in.parse(obj.key.res, obj.key, o.Object)
	}
	s.refer(obj.key, c)
	if f := c.signing(); f != nil && f.Certificate != nil && s.takeCredential(f.Certificate.ID, "", &facts{
		Signer: f.Signer, By: f.By, Certificate: f.Certificate, Issued: &credentialFacts{CSR: obj.key.name},
	}) {
		*effects = append(*effects, credentialEffect(f.Certificate.ID))
	}
	rv, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil || rv == 0 || o.UID == "" || maybe {
		b := blind{span: at, content: c, unchanged: o.Unchanged, created: o.Created, update: o.Update, maybe: maybe && c != nil}
		if c != nil {
			b.digest = c.digest
		}
		if !obj.addBlind(b) {
			return listed
		}
		s.history.bytes += c.bytes()
		return true
	}
	v := version{rv: rv, uid: s.in.str(o.UID), content: c, unchanged: o.Unchanged, made: o.Created, updated: o.Source == SourceAudit && !o.Created, perhaps: o.Update}
	if !obj.addVersion(v, o.Source, at) {
		return listed
	}
	s.history.bytes += c.bytes()
	return true
}

// takeScope records an observation of all objects of a scope.
func (s *State) takeScope(o *Observation, k objectKey, at span, dirty []objectKey) []objectKey {
	if k.res == resPod {
		s.touchPods(k.namespace)
	}
	switch {
	case o.Complete:
		l := &listing{presence: presence{at.nb, at.na}, since: nanos(o.Since)}
		if l.began == noTime {
			l.began = l.ended
		}
		list := s.listings[k.res]
		i := sort.Search(len(list), func(i int) bool {
			return list[i].ended > l.ended || list[i].ended == l.ended && list[i].began >= l.began
		})
		if i < len(list) && list[i].presence == l.presence {
			// The same listing; what reaches back further says more.
			if l.since == noTime || list[i].since != noTime && list[i].since <= l.since {
				return dirty
			}
			list[i].since = l.since
			return append(dirty, objectKey{res: k.res})
		}
		s.listings[k.res] = slices.Insert(list, i, l)
		return s.all(objectKey{res: k.res}, true, dirty)
	case o.Deleted:
		list, ok := insertBlind(s.gone[k], blind{span: at, ending: true})
		if !ok {
			return dirty
		}
		s.gone[k] = list
		s.versions++
		if s.objects[k.res][k] == nil {
			s.objects[k.res][k] = &object{key: k}
		}
		return append(s.all(k, false, dirty), k)
	case o.Unknown:
		obj := s.objects[k.res][k]
		if obj == nil {
			obj = &object{key: k}
			s.objects[k.res][k] = obj
		}
		if !obj.addBlind(blind{span: at}) {
			return dirty
		}
		s.versions++
		return append(dirty, k)
	}
	return dirty
}

// all appends the keys of a scope's objects, with the scopes themselves when asked.
func (s *State) all(scope objectKey, scopes bool, dirty []objectKey) []objectKey {
	for k := range s.objects[scope.res] {
		if (scope.namespace == "" || k.namespace == scope.namespace) && (scopes || k.name != "") {
			dirty = append(dirty, k)
		}
	}
	return dirty
}

// refer remembers which roles a binding has ever named.
func (s *State) refer(binding objectKey, c *content) {
	_, ref, ok := c.binding()
	if !ok {
		return
	}
	role := objectKey{res: resClusterRole, name: ref.Name}
	if ref.Kind == "Role" {
		role = objectKey{resRole, binding.namespace, ref.Name}
	}
	set := s.refs[role]
	if set == nil {
		set = map[objectKey]struct{}{}
		s.refs[role] = set
	}
	set[binding] = struct{}{}
}

// resolve works out the lines of the keys anew, brings the timeline up to date, and
// returns what changed.
func (s *State) resolve(dirty []objectKey) []Effect {
	slices.SortFunc(dirty, func(a, b objectKey) int {
		switch {
		case a == b:
			return 0
		case a.less(b):
			return -1
		}
		return 1
	})
	dirty = slices.Compact(dirty)
	var removed, added []entry
	var effects []Effect
	for _, k := range dirty {
		obj := s.objects[k.res][k]
		old := obj.line
		obj.line = s.line(obj)
		i, j, ok := difference(old, obj.line)
		if !ok {
			continue
		}
		if k.res.kind() != 0 {
			removed = appendEntries(removed, k, old, i)
			added = appendEntries(added, k, obj.line, i)
		}
		s.relate(obj)
		if k.res.reduces() && k.name == "" && sameDoubt(old, obj.line) {
			continue
		}
		e := s.effect(obj, old, i, j)
		if effects = append(effects, e); k.res == resServiceAccount && k.name != "" {
			e.subjects = Subjects{All: true, Namespaces: []string{k.namespace}} // who may make pods that run as it
			effects = append(effects, e)
		}
	}
	removed, added = cancel(removed, added)
	if len(removed) > 0 || len(added) > 0 {
		s.timeline.Store(s.timeline.Load().edit(removed, added, s.views.carry))
	}
	return effects
}

// line resolves one object or scope.
func (s *State) line(obj *object) []step {
	k := obj.key
	listings := s.listings[k.res]
	if k.name == "" {
		return unknowns(k.namespace == "", obj.blinds, s.gone[k], listings)
	}
	scope := s.gone[objectKey{res: k.res}]
	if k.namespace != "" {
		if more := s.gone[objectKey{res: k.res, namespace: k.namespace}]; len(more) > 0 {
			scope = slices.Concat(scope, more)
			slices.SortFunc(scope, func(a, b blind) int {
				switch {
				case blindLess(&a, &b):
					return -1
				case blindLess(&b, &a):
					return 1
				}
				return 0
			})
		}
	}
	return obj.resolve(scope, listings)
}

// difference returns the length of the common beginning and of the common end of two
// lines; ok is false when the lines are equal.
func difference(a, b []step) (head, tail int, ok bool) {
	n := min(len(a), len(b))
	for head < n && a[head].equal(&b[head]) {
		head++
	}
	if head == len(a) && head == len(b) {
		return 0, 0, false
	}
	for tail < n-head && a[len(a)-1-tail].equal(&b[len(b)-1-tail]) {
		tail++
	}
	return head, tail, true
}

// appendEntries appends a line's entries from a step on: the steps that some view shows.
func appendEntries(list []entry, k objectKey, line []step, from int) []entry {
	for i := from; i < len(line); i++ {
		if i == 0 {
			if line[0].phase == phaseAbsent {
				continue
			}
		} else if line[i].same(&line[i-1]) {
			continue
		}
		list = append(list, entry{step: line[i], key: k, seq: int32(i)})
	}
	return list
}

// cancel sorts both lists and drops what they share: entries that stay as they are.
func cancel(removed, added []entry) (r, a []entry) {
	for _, list := range [][]entry{removed, added} {
		slices.SortFunc(list, func(x, y entry) int {
			switch {
			case entryLess(&x, &y):
				return -1
			case entryLess(&y, &x):
				return 1
			}
			return 0
		})
	}
	i, j := 0, 0
	for i < len(removed) || j < len(added) {
		switch {
		case j == len(added) || i < len(removed) && entryLess(&removed[i], &added[j]):
			r = append(r, removed[i])
			i++
		case i == len(removed) || entryLess(&added[j], &removed[i]):
			a = append(a, added[j])
			j++
		default:
			if x, y := &removed[i], &added[j]; !x.step.equal(&y.step) {
				r, a = append(r, *x), append(a, *y)
			}
			i, j = i+1, j+1
		}
	}
	return r, a
}

// LoadSnapshot applies a complete listing. It refuses one of another cluster, with
// ErrOtherCluster, before anything is changed.
func (s *State) LoadSnapshot(snap Snapshot) ([]Effect, error) {
	if err := s.CheckCluster(snap.Objects...); err != nil {
		return nil, fmt.Errorf("load snapshot into cluster %s: %w", s.cluster, err)
	}
	return s.Apply(snap.Observations()...), nil
}

// Observations returns the snapshot as observations to apply, store or send: its objects,
// then for each kind one that says the listing is complete. Their order does not matter.
func (s *Snapshot) Observations() []Observation {
	began, ended := s.bounds()
	out := make([]Observation, 0, len(s.Objects)+len(s.Kinds))
	for _, o := range s.Objects {
		o.Source = SourceSnapshot
		o.NotBefore, o.NotAfter = timeOf(began), timeOf(ended)
		out = append(out, o)
	}
	for _, kind := range s.Kinds {
		out = append(out, Observation{
			Source: SourceSnapshot, Resource: kind, AllOf: true, Complete: true,
			NotBefore: timeOf(began), NotAfter: timeOf(ended), Since: s.Since,
		})
	}
	return out
}
