// Package graph is the relation between nodes and the objects that pods on them refer to,
// over time: what the node authorizer of a kube-apiserver decides with.
package graph

import (
	"sync"
	"time"
)

// Graph is the temporal graph of one cluster. One goroutine may call Set, SetScope and Prune;
// Related may be called from any goroutine at any time.
type Graph struct {
	mu sync.RWMutex
}

// New returns an empty graph: every scope is unknown.
func New() *Graph { return &Graph{} }

// Set replaces the whole life of an object. No steps: nothing is known of it any more.
func (g *Graph) Set(o Object, life []Step) {
	g.mu.Lock()
	defer g.mu.Unlock()
}

// SetScope replaces what is known of a scope: all objects of a kind, or with a namespace
// those in it. Its steps are Unknown (there may be objects nobody told the graph about) or
// Absent (every object there is has been Set); a kind without steps is unknown, a namespace
// without steps is as its kind is.
func (g *Graph) SetScope(k Kind, namespace string, life []Step) {
	g.mu.Lock()
	defer g.mu.Unlock()
}

// Related tells whether at a moment a path leads from an object to a node. resource is the
// plural, lower-case resource name; namespace is empty for cluster-scoped ones. Absent is
// certain; Unknown means that something not known could make the path.
func (g *Graph) Related(at time.Time, node, group, resource, namespace, name string) Known {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return Unknown
}
