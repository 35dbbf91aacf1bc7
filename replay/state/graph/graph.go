// Package graph is the relation between nodes and the objects that pods on them refer to,
// over time: what the node authorizer of a kube-apiserver decides with.
//
// # What leads to a node
//
//	pod, volume attachment, resource slice,
//	pod certificate request                  → its spec.nodeName
//	service account, secret, config map,
//	claim, resource claim                    → a pod that refers to it → that pod's node
//	volume                                   → the claim it is bound to → a pod → its node
//	secret                                   → a volume that kubelets read it for → …
//
// A mirror pod leads to its node and nothing leads to it; a pod without a node does not count. Nodes need not exist.
//
// # Time
//
// Every fact has bounds, and every question names a moment or a window. What an object said
// is replaced as a whole ([Graph.Set]), so that facts may come in any order and be corrected.
//
// # Unknowns
//
// A pod whose content or node is not known could make a path, and so could a pod that the graph does not know. An answer is Unknown only
// where such a pod (or volume) could make the difference: in that namespace, on that node, at that time.
//
// # Cost
//
// The paths are derived as facts come in: for each object a list of edges, ordered by node, each valid for a span. A question is two map
// lookups and a search in a list, however many pods, volumes and secrets exist and however the path runs. A pod takes about 350 bytes;
// docs/bench.md has the measurements.
//
// The package is pure: no I/O, no clock.
package graph

import (
	"sync"
	"time"
)

// Graph is the temporal graph of one cluster. One goroutine may call Set, SetScope and Prune;
// every other method may be called from any goroutine at any time.
type Graph struct {
	mu     sync.RWMutex
	spans  spans
	names  names // nodes and namespaces
	spaces map[string]*space
	scopes map[scopeKey][]stay
	// meetings are the spans in which a pod's and a volume's stay lead on to each other.
	meetings map[meeting]id
	// unknownPods are the stays of pods whose references are not known, claimPods those of pods that have claims or may have; both by node.
	// unknownVolumes are the stays of volumes of which nothing is known, under anyName.
	unknownPods, claimPods, unknownVolumes edges
}

// space is what the graph holds of one namespace, or of cluster-scoped objects.
type space struct {
	objects  map[objectKey]*object
	vertices map[vertexKey]*vertex
	// unknown are the stays of the namespace's pods whose references are not known, by node.
	unknown edges
}

type objectKey struct {
	kind Kind
	name string
}

// object is something that was Set.
type object struct{ stays []stay }

// stay is a stretch of an object's life in which it leads to the same things.
type stay struct {
	span id
	node id // anyName when not known, 0 when it has none
	refs Refs
	// anyRefs says that the references are not known.
	anyRefs bool
}

// vertexKey names something that paths begin at or lead through. The kinds are those of references; a volume is a refVolume.
type vertexKey struct {
	kind refKind
	name string
}

// refVolume is the vertex of a volume. No reference has this letter.
const refVolume refKind = 'V'

// vertex is something that is referred to.
type vertex struct {
	// edges lead to nodes.
	edges edges
	// behind is nil for what volumes have nothing to do with.
	behind *behind
}

// behind is what a vertex has to do with volumes.
type behind struct {
	// volumes, of a claim, are the stays bound to it.
	volumes []bound
	// spaces, of a secret, are the namespaces of the claims of the volumes that use it: edges to namespaces.
	spaces edges
}

// bound is a stay of a volume, at the claim it is bound to.
type bound struct {
	name string // of the volume
	span id
	refs Refs
}

// meeting is a pod's and a volume's stay.
type meeting struct{ pod, volume id }

type scopeKey struct {
	kind      Kind
	namespace string
}

// New returns an empty graph: every kind is unknown.
func New() *Graph {
	g := &Graph{names: newNames(), spaces: map[string]*space{}, scopes: map[scopeKey][]stay{}, meetings: map[meeting]id{}}
	for k := range kinds {
		g.setScope(scopeKey{kind: k}, nil)
	}
	return g
}

// Set replaces the whole life of an object. Without steps nothing is known of it, and it is absent unless its scope is unknown. Set reads
// the steps before it returns, and keeps what they point to.
func (g *Graph) Set(o Object, life []Step) {
	if o.Kind >= kinds {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	sp := g.space(o.Namespace)
	key := objectKey{o.Kind, o.Name}
	obj := sp.objects[key]
	if obj == nil {
		obj = &object{}
		sp.objects[key] = obj // before anything else, or the namespace would count as empty
	}
	g.replace(o, obj, planOf(o.Kind, life))
	if len(obj.stays) == 0 {
		delete(sp.objects, key)
		g.tidy(o.Namespace, sp)
	}
}

// SetScope replaces what is known of a scope: all objects of a kind, or with a namespace those in it. Its steps are Unknown (objects that
// the graph does not know may exist) or Absent (every existing object has been Set). Before its first step, or without any, a kind is
// unknown and a namespace is as its kind is.
func (g *Graph) SetScope(k Kind, namespace string, life []Step) {
	if k >= kinds {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.setScope(scopeKey{k, namespace}, life)
}

func (g *Graph) setScope(key scopeKey, life []Step) {
	if key.namespace == "" && (len(life) == 0 || life[0].NotAfter > Always) {
		life = append([]Step{{NotBefore: Always, NotAfter: Always}}, life...)
	}
	var plan []planned
	for i := range life {
		if life[i].Known != Unknown {
			continue
		}
		plan = append(plan, planned{span: spanOf(life, i), anyNode: true, anyRefs: true})
	}
	obj := &object{stays: g.scopes[key]}
	// A scope is like an object of which nothing is known, and which has no name.
	g.replace(Object{Kind: key.kind, Namespace: key.namespace}, obj, plan)
	if len(obj.stays) == 0 {
		delete(g.scopes, key)
		return
	}
	g.scopes[key] = obj.stays
}

// Related reports whether at a moment a path leads from an object to a node. resource is the plural, lower-case resource name; namespace is
// empty for cluster-scoped ones. Absent is certain; Unknown means that something not known could make the path.
func (g *Graph) Related(at time.Time, node, group, resource, namespace, name string) Known {
	t := nanos(at)
	h := g.ask(when{t, t, false}, node, group, resource, namespace, name)
	switch {
	case h.path.may:
		return Present
	case h.late.may:
		return Late
	case h.open.may:
		return Unknown
	}
	return Absent
}

// Answers is a set of Known.
type Answers uint8

// Has reports whether an answer is in the set.
func (a Answers) Has(k Known) bool { return a&(1<<k) != 0 }

// RelatedWithin is Related for a window: it returns every answer possible at some moment of it, given the uncertainty of when changes
// became effective; Late counts as Present and Absent. The set is never empty.
func (g *Graph) RelatedWithin(from, to time.Time, node, group, resource, namespace, name string) Answers {
	lo := nanos(from)
	h := g.ask(when{lo, max(lo, nanos(to)), true}, node, group, resource, namespace, name)
	var a Answers
	if h.path.may {
		a |= 1 << Present
	}
	if h.path.must {
		return a
	}
	if h.late.may {
		a |= 1<<Present | 1<<Absent
	}
	if h.open.may {
		a |= 1 << Unknown
	}
	if !h.open.must {
		a |= 1 << Absent
	}
	return a
}

// nanos returns a time in nanoseconds since 1970, Always for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return Always
	}
	return t.UnixNano()
}

func (g *Graph) space(namespace string) *space {
	sp := g.spaces[namespace]
	if sp == nil {
		sp = &space{objects: map[objectKey]*object{}, vertices: map[vertexKey]*vertex{}}
		g.spaces[namespace] = sp
	}
	return sp
}

// tidy drops a namespace that holds nothing.
func (g *Graph) tidy(namespace string, sp *space) {
	if len(sp.objects) == 0 && len(sp.vertices) == 0 && sp.unknown.len() == 0 {
		delete(g.spaces, namespace)
	}
}
