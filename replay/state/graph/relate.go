package graph

// asked is the graph's answer to a question: whether a path existed, and whether something unknown could have made one; late is a path
// through what an ephemeral container named.
type asked struct{ path, open, late held }

// ask answers whether a path leads from an object to a node.
func (g *Graph) ask(w when, node, group, resource, namespace, name string) asked {
	g.mu.RLock()
	defer g.mu.RUnlock()
	q := question{g: g, w: w, node: g.names.ids[node]}
	switch group {
	case "":
		switch resource {
		case "pods":
			return q.own(Pod, namespace, name)
		case "secrets":
			return q.secret(namespace, name)
		case "configmaps":
			return q.referred(refConfigMap, namespace, name)
		case "serviceaccounts":
			return q.referred(refServiceAccount, namespace, name)
		case "persistentvolumeclaims":
			return q.referred(refClaim, namespace, name)
		case "persistentvolumes":
			return q.volume(namespace, name)
		}
	case "resource.k8s.io":
		switch resource {
		case "resourceclaims":
			return q.referred(refResourceClaim, namespace, name)
		case "resourceslices":
			return q.own(Slice, namespace, name)
		}
	case "storage.k8s.io":
		if resource == "volumeattachments" {
			return q.own(Attachment, namespace, name)
		}
	case "certificates.k8s.io":
		if resource == "podcertificaterequests" {
			return q.own(CertificateRequest, namespace, name)
		}
	}
	return asked{open: held{true, true}}
}

// question is one question being answered.
type question struct {
	g    *Graph
	w    when
	node id // 0 for a node nothing is known to lead to
}

// nodeOr returns whether edges lead to the node, and whether they lead to an unknown node.
func (q *question) nodeOr(e *edges) (known, any held) {
	if q.node != 0 {
		known = e.held(&q.g.spans, q.node, q.w)
	}
	return known, e.held(&q.g.spans, anyName, q.w)
}

// either is nodeOr for callers to whom it makes no difference.
func (q *question) either(e *edges) held {
	known, any := q.nodeOr(e)
	return known.or(any)
}

// scope returns whether objects that the graph does not know may exist.
func (q *question) scope(k Kind, namespace string) (h held) {
	for _, s := range q.g.scopes[scopeKey{kind: k}] {
		h = h.or(q.w.of(q.g.spans.get(s.span)))
	}
	if namespace != "" {
		for _, s := range q.g.scopes[scopeKey{k, namespace}] {
			h = h.or(q.w.of(q.g.spans.get(s.span)))
		}
	}
	return h
}

// own answers for an object that names its node itself.
func (q *question) own(k Kind, namespace, name string) (a asked) {
	var known held // on whatever node
	if sp := q.g.spaces[namespace]; sp != nil {
		if obj := sp.objects[objectKey{k, name}]; obj != nil {
			for i := range obj.stays {
				s := &obj.stays[i]
				h := q.w.of(q.g.spans.get(s.span))
				known = known.or(h)
				switch {
				case s.node == anyName:
					a.open = a.open.or(h)
				case s.node != 0 && s.node == q.node:
					a.path = a.path.or(h)
				}
			}
		}
	}
	a.open = a.open.or(without(q.scope(k, namespace), known))
	return a
}

// without returns what of h is left where known does not hold.
func without(h, known held) held { return held{h.may && !known.must, h.must && !known.may} }

// referred answers for an object that pods of its namespace refer to.
func (q *question) referred(kind refKind, namespace, name string) (a asked) {
	sp := q.g.spaces[namespace]
	if sp != nil {
		if v := sp.vertices[vertexKey{kind, name}]; v != nil {
			a.path, a.open = q.nodeOr(&v.edges)
		}
		if v := sp.vertices[vertexKey{kind.late(), name}]; v != nil {
			var any held
			a.late, any = q.nodeOr(&v.edges)
			a.open = a.open.or(any)
		}
	}
	if !a.path.must {
		a.open = a.open.or(q.unknownPods(sp))
	}
	return a
}

// unknownPods returns whether pods with unknown references may be on the node, in a namespace.
func (q *question) unknownPods(sp *space) held {
	h := q.scope(Pod, "")
	if sp != nil && !h.must {
		h = h.or(q.either(&sp.unknown))
	}
	return h
}

// secret answers for a secret: pods and volumes refer to it.
func (q *question) secret(namespace, name string) asked {
	a := q.referred(refSecret, namespace, name)
	if a.path.must {
		return a
	}
	g := q.g
	// A volume of which nothing is known may use it, for any pod that has a claim.
	if h := g.unknownVolumes.held(&g.spans, anyName, q.w); h.may {
		a.open = a.open.or(h.and(q.either(&g.claimPods)))
	}
	// A volume that uses it may have its claim used by a pod of which nothing is known.
	if a.open.must || !q.either(&g.unknownPods).may {
		return a
	}
	if sp := g.spaces[namespace]; sp != nil {
		if v := sp.vertices[vertexKey{refSecret, name}]; v != nil && v.behind != nil {
			used := &v.behind.spaces
			used.keys(func(claims id) bool {
				h := q.unknownPods(g.spaces[g.names.list[claims].name])
				if h.may {
					a.open = a.open.or(h.and(used.held(&g.spans, claims, q.w)))
				}
				return !a.open.must
			})
		}
	}
	return a
}

// volume answers for a persistent volume.
func (q *question) volume(namespace, name string) (a asked) {
	g := q.g
	if namespace != "" {
		return a // there is none in a namespace
	}
	var known held
	if sp := g.spaces[""]; sp != nil {
		if v := sp.vertices[vertexKey{refVolume, name}]; v != nil {
			a.path, a.open = q.nodeOr(&v.edges)
		}
		if a.path.must {
			return a
		}
		if obj := sp.objects[objectKey{Volume, name}]; obj != nil {
			for i := range obj.stays {
				s := &obj.stays[i]
				h := q.w.of(g.spans.get(s.span))
				if !h.may {
					continue
				}
				known = known.or(h)
				if s.anyRefs {
					a.open = a.open.or(h.and(q.either(&g.claimPods)))
				} else if claim, _, ok := s.refs.cut(); ok {
					a.open = a.open.or(h.and(q.unknownPods(g.spaces[claim.namespace])))
				}
			}
		}
	}
	if h := without(q.scope(Volume, ""), known); h.may {
		a.open = a.open.or(h.and(q.either(&g.claimPods)))
	}
	return a
}
