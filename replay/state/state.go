package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// ErrOtherCluster is returned for a snapshot that contradicts what is known of the
// cluster: it was taken of another one, or of the cluster before it was recreated.
var ErrOtherCluster = errors.New("state belongs to another cluster")

// State is everything known of one cluster's objects. Its methods may be called from any
// goroutine at any time; Apply, LoadSnapshot and Prune wait for each other.
type State struct {
	cluster  string
	revision atomic.Uint64
	timeline atomic.Pointer[timeline]
	views    materialiser

	mu       sync.RWMutex                        // guards what follows against the readers of single objects
	objects  [kept.ResCount]map[kept.Key]*object // and scopes; of pods and credentials scopes only
	listings [kept.ResCount][]*listing           // by (ended, began)
	gone     map[kept.Key][]blind                // collections deleted without a list, by scope
	standIns map[kept.Key][]string               // names of stand-ins, by how they begin
	refs     map[kept.Key]map[kept.Key]struct{}
	versions int
	// lookedFor counts the objects first known by being looked for in vain.
	lookedFor int
	in        content.Interner
	history   history

	pods        pods
	credentials map[string]*credential
	forgot      bool  // credentials have been forgotten
	issues      bool  // the issue of a token has been seen
	horizon     int64 // of the last Prune, noTime when there was none
	policy      int64 // of the last PrunePolicy or Prune: of RBAC objects
	past        atomic.Pointer[past]
	seen        atomic.Pointer[map[string]releases] // versions of apiservers; replaced as a whole
	graph       *graph.Graph
}

// New returns the empty State of a cluster: everything is unknown.
func New(cluster string) *State {
	s := &State{
		cluster: cluster, gone: map[kept.Key][]blind{},
		refs: map[kept.Key]map[kept.Key]struct{}{},
		pods: newPods(), credentials: map[string]*credential{}, horizon: instant.None, policy: instant.None,
		graph: graph.New(),
	}
	s.views.root = &cell{views: [1]View{{RBAC: rbacindex.Empty()}}}
	s.timeline.Store(&timeline{})
	var dirty []kept.Key
	for res := kept.ResNone + 1; res < kept.ResCount; res++ {
		k := kept.Key{Resource: res}
		s.objects[res] = map[kept.Key]*object{}
		s.objects[k.Resource][k] = &object{key: k}
		dirty = append(dirty, k)
	}
	s.resolve(dirty)
	s.revision.Store(0)
	return s
}

// Cluster returns the cluster's name.
func (s *State) Cluster() string { return s.cluster }

// Revision counts the changes of what the State answers. It grows with every Apply and LoadSnapshot that said something new.
func (s *State) Revision() uint64 { return s.revision.Load() }

// Stats has the sizes of a State, for metrics.
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
	st := Stats{Versions: s.size(), Strings: s.in.Size(), Pods: s.pods.count, Credentials: len(s.credentials),
		HistoryBytes: s.history.bytes, Forgotten: s.history.lost}
	for _, objects := range s.objects {
		st.Objects += len(objects)
	}
	for _, b := range s.timeline.Load().blocks() {
		st.Changes += len(b.entries)
	}
	return st
}

// size returns how many versions, ends, writes, pods and credentials are kept.
func (s *State) size() int { return s.versions + s.pods.count + len(s.credentials) }

// Apply adds observations, in any order and any number of times, and returns what changed of the past and the present, nothing if they were
// known. It ignores observations without a kept resource or an object, and does not keep their buffers.
func (s *State) Apply(obs ...observe.Observation) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	var dirty []kept.Key
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

// take records one observation and appends the keys that must be resolved again. It appends the effects of what needs no resolving at once.
func (s *State) take(o *observe.Observation, dirty []kept.Key, effects *[]Effect) []kept.Key {
	at := span{instant.Of(o.NotBefore), instant.Of(o.NotAfter)}
	if at.na < at.nb {
		at.na = at.nb // clocks were set back between the two readings
	}
	res := kept.ResourceOf(o.Resource)
	if res == kept.ResNone {
		if o.Resource == observe.Apiservers {
			*effects = append(*effects, s.takeSighting(o, at)...)
		}
		return dirty
	}
	if horizon := s.horizonOf(res); horizon != instant.None && at.na < horizon {
		said := s.late(o, res)
		o, at.na = &said, instant.Of(said.NotAfter)
	}
	switch {
	case o.AllOf && res == kept.ResPod && o.Unknown && !o.Deleted && !o.Complete && o.Namespace != "" && len(o.Object) > 0:
		if s.takeUnnamed(o.Namespace, at) {
			*effects = append(*effects, Effect{Resource: kept.Pods, Namespace: s.in.Str(o.Namespace), From: instant.Time(at.nb)})
		}
	case o.AllOf:
		n := len(dirty)
		dirty = s.takeScope(o, kept.Key{Resource: res, Namespace: s.in.Str(o.Namespace)}, at, dirty)
		if res == kept.ResPod && len(dirty) > n && len(s.pods.unnamed) > 0 {
			*effects = append(*effects, Effect{Resource: kept.Pods, From: instant.Time(at.nb)}) // names are told again
		}
	case res == kept.ResCredential:
		if s.takeIssue(o) {
			*effects = append(*effects, credentialEffect(s.credentials[o.Name].id))
		}
	case o.Name == "" || res.Namespaced() != (o.Namespace != ""):
	case res == kept.ResPod:
		s.takePod(o, at)
	default:
		obj := s.named(kept.Key{Resource: res, Namespace: s.in.Str(o.Namespace), Name: s.in.Str(o.Name)}, o)
		if obj == nil {
			break
		}
		size := obj.size()
		if s.takeObject(o, obj, at, effects) {
			dirty = append(dirty, obj.key)
		}
		s.versions += obj.size() - size
	}
	return dirty
}

// named returns what is known of a name, which it makes; nil where nothing is known of it, and there are
// too many names that were but looked for.
func (s *State) named(k kept.Key, o *observe.Observation) *object {
	if obj := s.objects[k.Resource][k]; obj != nil {
		return obj
	}
	if isLooked(o) {
		if s.lookedFor >= maxLookedFor {
			return nil
		}
		s.lookedFor++
	}
	obj := &object{key: k}
	s.objects[k.Resource][k] = obj
	s.noteStandIn(k)
	return obj
}

// isLooked reports whether an observation says no more than that an object was looked for.
func isLooked(o *observe.Observation) bool {
	return o.Deleted && o.Complete || o.Source == observe.SourceRead && o.UID == ""
}

// takeObject records an observation of one object; it returns false if that says nothing new.
func (s *State) takeObject(o *observe.Observation, obj *object, at span, effects *[]Effect) bool {
	rbac := obj.key.Resource.RBACKind() != 0
	switch {
	case o.Deleted && o.Complete:
		return obj.addMissing(at)
	case isLooked(o):
		return obj.addShown(at)
	case o.Deleted && o.Unknown:
		return obj.addBlind(blind{span: at, ending: true, maybe: o.Unchanged && rbac})
	case o.Deleted && o.UID == "":
		return obj.addBlind(blind{span: at, absent: true})
	case o.Deleted:
		return obj.addEnd(s.in.Str(o.UID), o.Source, at, o.Update)
	}
	listed := o.Source == observe.SourceSnapshot && obj.addPresence(at)
	c := s.content(o, obj.key, effects)
	rv := versionOf(o)
	var isNew bool
	if maybe := o.Unknown && rbac && (len(o.Object) > 0 || o.Patch); rv == 0 || o.UID == "" || maybe {
		b := blind{span: at, content: c, unchanged: o.Unchanged, created: o.Created, update: o.Update, maybe: maybe && c != nil}
		if c != nil {
			b.digest = c.Digest
		}
		isNew = obj.addBlind(b)
	} else {
		isNew = obj.addVersion(version{
			rv: rv, uid: s.in.Str(o.UID), content: c, unchanged: o.Unchanged, made: o.Created,
			updated: o.Source == observe.SourceAudit && !o.Created, perhaps: o.Update,
		}, o.Source, at)
	}
	if isNew {
		s.history.bytes += c.Bytes()
	}
	return isNew || listed
}

// versionOf returns an observation's resourceVersion, 0 for none.
func versionOf(o *observe.Observation) uint64 {
	rv, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return rv
}

// content returns what an observation says an object holds, nil where it does not tell, and notes what
// that names: roles, and a certificate.
func (s *State) content(o *observe.Observation, k kept.Key, effects *[]Effect) (c *content.Content) {
	rbac := k.Resource.RBACKind() != 0
	switch {
	case o.Patch && rbac:
		c = s.in.Patch(k.Resource, k, o.Object)
		s.refer(k, c.Patch().Made)
	case len(o.Object) > 0 && (!o.Unknown || rbac):
		// Content that cannot be read is unknown content: the write happened.
		c, _ = s.in.Parse(k.Resource, k, o.Object)
	}
	s.refer(k, c)
	if f := c.Signing(); f != nil && f.Certificate != nil && s.takeCredential(f.Certificate.ID, "", &kept.Facts{
		Signer: f.Signer, By: f.By, Certificate: f.Certificate, Issued: &kept.Issue{CSR: k.Name},
	}) {
		*effects = append(*effects, credentialEffect(s.credentials[f.Certificate.ID].id))
	}
	return c
}

// takeScope records an observation of all objects of a scope.
func (s *State) takeScope(o *observe.Observation, k kept.Key, at span, dirty []kept.Key) []kept.Key {
	if k.Resource == kept.ResPod {
		s.touchPods(k.Namespace)
	}
	switch {
	case o.Complete:
		l := &listing{span: at, since: instant.Of(o.Since)}
		if l.nb == instant.None {
			l.nb = l.na
		}
		list := s.listings[k.Resource]
		i, known := slices.BinarySearchFunc(list, l, func(a, b *listing) int { return compareSpans(a.span, b.span) })
		if known {
			// The same listing; what reaches back further says more.
			if l.since == instant.None || list[i].since != instant.None && list[i].since <= l.since {
				return dirty
			}
			list[i].since = l.since
			return append(dirty, kept.Key{Resource: k.Resource})
		}
		s.listings[k.Resource] = slices.Insert(list, i, l)
		return s.all(kept.Key{Resource: k.Resource}, true, dirty)
	case o.Deleted:
		list, ok := insertBlind(s.gone[k], blind{span: at, ending: true})
		if !ok {
			return dirty
		}
		s.gone[k] = list
		s.versions++
		s.scope(k)
		return append(s.all(k, false, dirty), k)
	case o.Unknown:
		if !s.scope(k).addBlind(blind{span: at}) {
			return dirty
		}
		s.versions++
		return append(dirty, k)
	}
	return dirty
}

// scope returns what is known of a scope, which it makes.
func (s *State) scope(k kept.Key) *object {
	obj := s.objects[k.Resource][k]
	if obj == nil {
		obj = &object{key: k}
		s.objects[k.Resource][k] = obj
	}
	return obj
}

// all appends the keys of a scope's objects, with the scopes themselves when asked.
func (s *State) all(scope kept.Key, scopes bool, dirty []kept.Key) []kept.Key {
	for k := range s.objects[scope.Resource] {
		if (scope.Namespace == "" || k.Namespace == scope.Namespace) && (scopes || k.Name != "") {
			dirty = append(dirty, k)
		}
	}
	return dirty
}

// refer remembers which roles a binding has ever named.
func (s *State) refer(binding kept.Key, c *content.Content) {
	_, ref, ok := c.Binding()
	if !ok {
		return
	}
	role := kept.Key{Resource: kept.ResClusterRole, Name: ref.Name}
	if ref.Kind == "Role" {
		role = kept.Key{Resource: kept.ResRole, Namespace: binding.Namespace, Name: ref.Name}
	}
	set := s.refs[role]
	if set == nil {
		set = map[kept.Key]struct{}{}
		s.refs[role] = set
	}
	set[binding] = struct{}{}
}

// resolve derives the lines of the keys again, updates the timeline, and returns what changed.
func (s *State) resolve(dirty []kept.Key) []Effect {
	slices.SortFunc(dirty, kept.CompareKeys)
	dirty = slices.Compact(dirty)
	var removed, added []entry
	var effects []Effect
	for _, k := range dirty {
		obj := s.objects[k.Resource][k]
		old := obj.line
		obj.line = s.line(obj)
		i, j, ok := difference(old, obj.line, (*step).equal)
		if !ok {
			continue
		}
		if k.Resource.RBACKind() != 0 {
			removed = appendEntries(removed, k, old, i)
			added = appendEntries(added, k, obj.line, i)
		}
		s.relate(obj)
		if k.Resource.Reduces() && k.Name == "" && sameDoubt(old, obj.line) {
			continue
		}
		e := s.effect(obj, old, i, j)
		if effects = append(effects, e); k.Resource == kept.ResServiceAccount && k.Name != "" {
			e.subjects = Subjects{All: true, Namespaces: []string{k.Namespace}} // who may make pods that run as it
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
	listings := s.listings[k.Resource]
	if k.Name == "" {
		return unknowns(k.Namespace == "", obj.blinds, s.gone[k], listings)
	}
	scope := s.gone[kept.Key{Resource: k.Resource}]
	if k.Namespace != "" {
		if more := s.gone[kept.Key{Resource: k.Resource, Namespace: k.Namespace}]; len(more) > 0 {
			scope = slices.Concat(scope, more)
			slices.SortFunc(scope, compareBlinds)
		}
	}
	return obj.resolve(scope, listings)
}

// appendEntries appends a line's entries from a step on: the steps that some view shows.
func appendEntries(list []entry, k kept.Key, line []step, from int) []entry {
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
		slices.SortFunc(list, func(x, y entry) int { return x.compare(&y) })
	}
	i, j := 0, 0
	for i < len(removed) || j < len(added) {
		switch {
		case j == len(added) || i < len(removed) && removed[i].before(&added[j]):
			r = append(r, removed[i])
			i++
		case i == len(removed) || added[j].before(&removed[i]):
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

// LoadSnapshot applies a complete listing. It refuses one of another cluster, with ErrOtherCluster, before anything is changed.
func (s *State) LoadSnapshot(snap observe.Snapshot) ([]Effect, error) {
	if err := s.CheckCluster(snap.Objects...); err != nil {
		return nil, fmt.Errorf("load snapshot into cluster %s: %w", s.cluster, err)
	}
	return s.Apply(snap.Observations()...), nil
}
