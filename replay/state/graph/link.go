package graph

import "slices"

// link adds or removes the edges of an object's stay. What needs no edges is answered from the object itself.
func (g *Graph) link(o Object, s *stay, in bool) {
	switch o.Kind {
	case Pod:
		g.linkPod(o, s, in)
	case Volume:
		g.linkVolume(o, s, in)
	}
}

// put adds an edge or removes it.
func (g *Graph) put(e *edges, x edge, in bool) {
	if in {
		e.add(&g.spans, x)
	} else {
		e.remove(&g.spans, x)
	}
}

func (g *Graph) linkPod(o Object, s *stay, in bool) {
	x := edge{s.node, s.span}
	sp := g.space(o.Namespace)
	if s.anyRefs {
		if o.Namespace != "" { // a whole kind that is not known is in no namespace
			g.put(&sp.unknown, x, in)
		}
		g.put(&g.unknownPods, x, in)
	}
	claims := s.anyRefs
	for r, rest, ok := s.refs.cut(); ok; r, rest, ok = rest.cut() {
		key := vertexKey{r.kind, r.name}
		v := sp.vertex(key)
		g.put(&v.edges, x, in)
		if r.kind == refClaim {
			claims = true
			if v.behind != nil {
				for i := range v.behind.volumes {
					g.meet(x, &v.behind.volumes[i], in)
				}
			}
		}
		sp.tidy(key, v)
	}
	if claims {
		g.put(&g.claimPods, x, in)
	}
	g.tidy(o.Namespace, sp)
}

func (g *Graph) linkVolume(o Object, s *stay, in bool) {
	if s.anyRefs {
		g.put(&g.unknownVolumes, edge{anyName, s.span}, in)
	}
	claim, rest, ok := s.refs.cut()
	if !ok || claim.kind != refVolumeClaim {
		return
	}
	sp := g.space(claim.namespace)
	key := vertexKey{refClaim, claim.name}
	v := sp.vertex(key)
	b := bound{o.Name, s.span, s.refs}
	v.edges.all(func(pod edge) { g.meet(pod, &b, in) })
	bh := v.volumesBehind()
	if in {
		bh.volumes = append(bh.volumes, b)
	} else {
		bh.volumes = slices.DeleteFunc(bh.volumes, func(x bound) bool { return x.span == s.span })
	}
	sp.tidy(key, v)
	g.tidy(claim.namespace, sp)

	for r, rest, ok := rest.cut(); ok; r, rest, ok = rest.cut() {
		if r.kind != refVolumeSecret {
			continue
		}
		sp := g.space(r.namespace)
		key := vertexKey{refSecret, r.name}
		v := sp.vertex(key)
		if bh := v.volumesBehind(); in {
			bh.spaces.add(&g.spans, edge{g.names.use(claim.namespace), s.span})
		} else {
			n := g.names.ids[claim.namespace]
			bh.spaces.remove(&g.spans, edge{n, s.span})
			g.names.done(n)
		}
		sp.tidy(key, v)
		g.tidy(r.namespace, sp)
	}
}

// meet adds or removes the edges from a volume and its secrets to the node of a pod that has the volume's claim.
func (g *Graph) meet(pod edge, b *bound, in bool) {
	key := meeting{pod.span, b.span}
	s, met := g.meetings[key]
	if in {
		both := g.spans.get(pod.span).meet(g.spans.get(b.span))
		if both.empty() {
			return
		}
		s = g.spans.add(both)
		g.meetings[key] = s
	} else if !met {
		return
	}
	x := edge{pod.key, s}
	g.through(vertexKey{refVolume, b.name}, "", x, in)
	for r, rest, ok := b.refs.cut(); ok; r, rest, ok = rest.cut() {
		if r.kind == refVolumeSecret {
			g.through(vertexKey{refSecret, r.name}, r.namespace, x, in)
		}
	}
	if !in {
		delete(g.meetings, key)
		g.spans.remove(s)
	}
}

// through adds or removes one edge from a vertex.
func (g *Graph) through(key vertexKey, namespace string, x edge, in bool) {
	sp := g.space(namespace)
	v := sp.vertex(key)
	g.put(&v.edges, x, in)
	sp.tidy(key, v)
	g.tidy(namespace, sp)
}

func (sp *space) vertex(key vertexKey) *vertex {
	v := sp.vertices[key]
	if v == nil {
		v = &vertex{}
		sp.vertices[key] = v
	}
	return v
}

func (v *vertex) volumesBehind() *behind {
	if v.behind == nil {
		v.behind = &behind{}
	}
	return v.behind
}

// tidy drops a vertex from which nothing leads.
func (sp *space) tidy(key vertexKey, v *vertex) {
	if b := v.behind; b != nil && len(b.volumes) == 0 && b.spaces.len() == 0 {
		v.behind = nil
	}
	if v.edges.len() == 0 && v.behind == nil {
		delete(sp.vertices, key)
	}
}
