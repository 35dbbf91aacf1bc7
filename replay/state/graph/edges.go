package graph

import (
	"slices"
	"sort"
)

// edge says that during a span a path leads to the thing of that number: a node, or in one use a namespace.
type edge struct{ key, span id }

// edges has the edges from one object, ordered by key. Few are a plain list; more are blocks, and many edges of one key are a run of their
// own, so a question costs the logarithm of their number.
type edges struct {
	list []edge
	many *manyEdges
}

type manyEdges struct {
	blocks [][]edge
	runs   map[id]*run
	count  int
}

const (
	small     = 512 // edges in a plain list, at most
	blockSize = 512 // edges in a block, at most
	runSize   = 32  // edges of one key outside a run, at most
)

func (e *edges) len() int {
	if e.many != nil {
		return e.many.count
	}
	return len(e.list)
}

// add adds an edge.
func (e *edges) add(t *spans, x edge) {
	if e.many == nil {
		i := placeBehind(e.list, x.key)
		if len(e.list) < small && (i < runSize || e.list[i-runSize].key != x.key) {
			e.list = insert(e.list, i, x)
			return
		}
		e.grow()
	}
	m := e.many
	m.count++
	if r := m.runs[x.key]; r != nil {
		r.add(t, x.span)
		return
	}
	i := m.block(x.key)
	if len(m.blocks[i]) == blockSize {
		m.split(i)
		i = m.block(x.key)
	}
	m.blocks[i] = insert(m.blocks[i], placeBehind(m.blocks[i], x.key), x)
	if n := m.countOf(x.key); n > runSize {
		m.gather(t, x.key)
	}
}

// remove removes an edge, if it is there.
func (e *edges) remove(t *spans, x edge) {
	if e.many == nil {
		e.list, _ = drop(e.list, x)
		return
	}
	m := e.many
	if r := m.runs[x.key]; r != nil {
		if r.remove(t, x.span) {
			m.count--
			if len(r.spans) == 0 {
				delete(m.runs, x.key)
			}
		}
	} else {
		for i := m.block(x.key); i < len(m.blocks); i++ {
			b := m.blocks[i]
			if len(b) > 0 && b[0].key > x.key {
				break
			}
			var ok bool
			if m.blocks[i], ok = drop(b, x); ok {
				m.count--
				if len(m.blocks[i]) == 0 && len(m.blocks) > 1 {
					m.blocks = slices.Delete(m.blocks, i, i+1)
				}
				break
			}
		}
	}
	if m.count <= small/2 && m.calm() {
		e.shrink()
	}
}

// calm reports whether no run is needed.
func (m *manyEdges) calm() bool {
	for _, r := range m.runs {
		if len(r.spans) > runSize {
			return false
		}
	}
	return true
}

// placeBehind returns the place behind the edges of a key.
func placeBehind(list []edge, key id) int {
	return sort.Search(len(list), func(i int) bool { return list[i].key > key })
}

// insert inserts x at a place, growing the list by little.
func insert(list []edge, i int, x edge) []edge {
	if len(list) == cap(list) {
		grown := make([]edge, len(list), len(list)+1+len(list)/4)
		copy(grown, list)
		list = grown
	}
	return slices.Insert(list, i, x)
}

func drop(list []edge, x edge) ([]edge, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].key >= x.key })
	for ; i < len(list) && list[i].key == x.key; i++ {
		if list[i].span == x.span {
			return slices.Delete(list, i, i+1), true
		}
	}
	return list, false
}

// grow turns the plain list into blocks. No key in it has enough edges for a run.
func (e *edges) grow() {
	e.many = &manyEdges{blocks: [][]edge{e.list}, runs: map[id]*run{}, count: len(e.list)}
	e.list = nil
}

// shrink turns blocks into a plain list.
func (e *edges) shrink() {
	m := e.many
	list := make([]edge, 0, m.count)
	for _, b := range m.blocks {
		list = append(list, b...)
	}
	for key, r := range m.runs {
		for _, s := range r.spans {
			list = append(list, edge{key, s})
		}
	}
	slices.SortFunc(list, func(a, b edge) int {
		if a.key != b.key {
			return int(int64(a.key) - int64(b.key))
		}
		return int(int64(a.span) - int64(b.span))
	})
	e.list, e.many = list, nil
}

// block returns the index of the first block that can hold a key's edges. There is always a block.
func (m *manyEdges) block(key id) int {
	i := sort.Search(len(m.blocks), func(i int) bool { return len(m.blocks[i]) > 0 && m.blocks[i][0].key >= key })
	return max(0, i-1)
}

func (m *manyEdges) split(i int) {
	b := m.blocks[i]
	half := len(b) / 2
	m.blocks = slices.Insert(m.blocks, i+1, slices.Clone(b[half:]))
	m.blocks[i] = slices.Clone(b[:half])
}

// each calls f with the spans of a key's edges in blocks, until f returns false.
func (m *manyEdges) each(key id, f func(id) bool) {
	for i := m.block(key); i < len(m.blocks); i++ {
		b := m.blocks[i]
		j := sort.Search(len(b), func(j int) bool { return b[j].key >= key })
		for ; j < len(b); j++ {
			if b[j].key != key || !f(b[j].span) {
				return
			}
		}
	}
}

func (m *manyEdges) countOf(key id) int {
	n := 0
	m.each(key, func(id) bool { n++; return true })
	return n
}

// gather makes a run of a key's edges.
func (m *manyEdges) gather(t *spans, key id) {
	r := &run{}
	m.each(key, func(s id) bool {
		r.add(t, s)
		return true
	})
	for i := 0; i < len(m.blocks); i++ {
		m.blocks[i] = slices.DeleteFunc(m.blocks[i], func(x edge) bool { return x.key == key })
		if len(m.blocks[i]) == 0 && len(m.blocks) > 1 {
			m.blocks = slices.Delete(m.blocks, i, i+1)
			i--
		}
	}
	m.runs[key] = r
}

// held asks the edges of one key together.
func (e *edges) held(t *spans, key id, w when) (h held) {
	ask := func(s id) bool {
		h = h.or(w.of(t.get(s)))
		return !h.must
	}
	if e.many == nil {
		i := sort.Search(len(e.list), func(i int) bool { return e.list[i].key >= key })
		for ; i < len(e.list) && e.list[i].key == key && ask(e.list[i].span); i++ {
		}
		return h
	}
	if r := e.many.runs[key]; r != nil {
		return r.held(t, w)
	}
	e.many.each(key, ask)
	return h
}

// all calls f with every edge, those of one key one after the other.
func (e *edges) all(f func(edge)) {
	for _, x := range e.list {
		f(x)
	}
	if e.many == nil {
		return
	}
	for _, b := range e.many.blocks {
		for _, x := range b {
			f(x)
		}
	}
	for key, r := range e.many.runs {
		for _, s := range r.spans {
			f(edge{key, s})
		}
	}
}

// keys calls f with every key that has edges, until f returns false. Each key costs the logarithm of the number of edges.
func (e *edges) keys(f func(id) bool) {
	visit := func(list []edge, last id) (id, bool) {
		for len(list) > 0 {
			if key := list[0].key; key != last {
				if !f(key) {
					return 0, false
				}
				last = key
			}
			list = list[sort.Search(len(list), func(i int) bool { return list[i].key > last }):]
		}
		return last, true
	}
	if e.many == nil {
		visit(e.list, 0)
		return
	}
	var last id
	var ok bool
	for _, b := range e.many.blocks {
		if last, ok = visit(b, last); !ok {
			return
		}
	}
	for key := range e.many.runs {
		if !f(key) {
			return
		}
	}
}
