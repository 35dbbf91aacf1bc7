package graph

import "time"

// Prune forgets what was over before a moment. Answers about that moment and later ones stay
// as they are. It returns how many stays were dropped.
func (g *Graph) Prune(before time.Time) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	horizon, dropped := nanos(before), 0
	cut := func(o Object, stays []stay) []stay {
		n := 0
		for i := range stays {
			s := &stays[i]
			if g.spans.get(s.span).endNA > horizon {
				stays[n] = *s
				n++
				continue
			}
			g.link(o, s, false)
			g.names.done(s.node)
			g.spans.remove(s.span)
			dropped++
		}
		return stays[:n]
	}
	for namespace, sp := range g.spaces {
		for key, obj := range sp.objects {
			if obj.stays = cut(Object{key.kind, namespace, key.name}, obj.stays); len(obj.stays) == 0 {
				delete(sp.objects, key)
			}
		}
		g.tidy(namespace, sp)
	}
	for key, stays := range g.scopes {
		if stays = cut(Object{Kind: key.kind, Namespace: key.namespace}, stays); len(stays) == 0 {
			delete(g.scopes, key)
		} else {
			g.scopes[key] = stays
		}
	}
	return dropped
}

// Stats are the sizes of a graph, for metrics.
type Stats struct {
	Objects  int // that lead somewhere: pods with a node, bound volumes, …
	Vertices int // that are led from: secrets, claims, …
	Spans    int // of time in which something led somewhere
}

// Stats returns the graph's sizes.
func (g *Graph) Stats() Stats {
	g.mu.RLock()
	defer g.mu.RUnlock()
	st := Stats{Spans: g.spans.len()}
	for _, sp := range g.spaces {
		st.Objects += len(sp.objects)
		st.Vertices += len(sp.vertices)
	}
	return st
}
