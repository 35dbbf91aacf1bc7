package escalation

import "container/heap"

// far is longer than any path.
const far = int64(1) << 60

// stepCost makes one step cost more than any number of presumptions; paths have fewer than 256.
const stepCost = 256

// cost returns the cost of a link: steps first, then presumptions.
func (g *graph) cost(l *link) int64 {
	var c int64
	if l.way != g.book.member {
		if c = stepCost; g.book.ways[l.way].presumes != "" {
			c++
		}
	}
	if g.absent(l) {
		c++
	}
	return c
}

// absent reports whether a link leads to a token of a service account that does not exist.
func (g *graph) absent(l *link) bool {
	to := g.vertex(l.to)
	return to.at == atHeld && g.ids[to.a].absent && (l.way != g.book.member || g.vertex(l.from).at == atAccounts)
}

// adjacency is a set of links indexed by one of their ends.
type adjacency struct {
	first []int32 // by vertex, one more than there are
	links []int32
}

func adjacent(vertices int, links []link, end func(*link) int32) adjacency {
	a := adjacency{first: make([]int32, vertices+1), links: make([]int32, len(links))}
	for i := range links {
		a.first[end(&links[i])+1]++
	}
	for i := range vertices {
		a.first[i+1] += a.first[i]
	}
	next := make([]int32, vertices)
	copy(next, a.first)
	for i := range links {
		v := end(&links[i])
		a.links[next[v]] = int32(i)
		next[v]++
	}
	return a
}

func (a *adjacency) of(v int32) []int32 { return a.links[a.first[v]:a.first[v+1]] }

// frontier is a heap of vertices by distance.
type frontier []distant

type distant struct {
	far int64
	v   int32
}

func (f frontier) Len() int { return len(f) }
func (f frontier) Less(i, j int) bool {
	return f[i].far < f[j].far || f[i].far == f[j].far && f[i].v < f[j].v
}
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)   { *f = append(*f, x.(distant)) }
func (f *frontier) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

func (f *frontier) add(v int32, d int64) { heap.Push(f, distant{d, v}) }

func (f *frontier) next() (int32, int64) {
	x := heap.Pop(f).(distant)
	return x.v, x.far
}

// toGoals returns, for each vertex, how far the nearest of the goals is and the link to take; -1 at
// a goal and where there is none. Of equally good links it prefers the edge that comes first in
// Edges, then the one added first.
func (g *graph) toGoals(goals ...int32) (dist []int64, take []int32) {
	n := len(g.vertices)
	in := adjacent(n, g.links, func(l *link) int32 { return l.to })
	dist, take = make([]int64, n), make([]int32, n)
	for i := range dist {
		dist[i], take[i] = far, -1
	}
	var f frontier
	for _, v := range goals {
		dist[v] = 0
		f.add(v, 0)
	}
	for f.Len() > 0 {
		v, d := f.next()
		if d > dist[v] {
			continue
		}
		for _, i := range in.of(v) {
			l := &g.links[i]
			if e := d + g.cost(l); e < dist[l.from] {
				dist[l.from] = e
				f.add(l.from, e)
			}
		}
	}
	for i := range g.links {
		l := &g.links[i]
		if dist[l.to] == far || dist[l.from] != dist[l.to]+g.cost(l) {
			continue
		}
		if best := take[l.from]; best < 0 || g.rank(l) < g.rank(&g.links[best]) {
			take[l.from] = int32(i)
		}
	}
	for _, v := range goals {
		take[v] = -1
	}
	return dist, take
}

// rank orders the edges of equally short paths.
func (g *graph) rank(l *link) int {
	if l.way == g.book.member {
		return -1
	}
	return g.book.order[g.book.ways[l.way].edge]
}

// from returns how far each vertex is from one, and the link by which it is reached. The
// graph's own links follow those of its base in number.
func (g *graph) from(start int32, out *adjacency) (dist []int64, by []int32) {
	n := len(g.base.vertices) + len(g.vertices)
	dist, by = make([]int64, n), make([]int32, n)
	for i := range dist {
		dist[i], by[i] = far, -1
	}
	more := adjacent(n, g.links, func(l *link) int32 { return l.from })
	dist[start] = 0
	f := frontier{}
	f.add(start, 0)
	for f.Len() > 0 {
		v, d := f.next()
		if d > dist[v] {
			continue
		}
		relax := func(i int32, l *link) {
			if e := d + g.cost(l); e < dist[l.to] || e == dist[l.to] && v != l.to && by[l.to] >= 0 && d < dist[l.to] &&
				g.rank(l) < g.rank(g.linkAt(by[l.to])) {
				if e < dist[l.to] {
					f.add(l.to, e)
				}
				dist[l.to], by[l.to] = e, i
			}
		}
		if int(v) < len(g.base.vertices) {
			for _, i := range out.of(v) {
				relax(i, &g.base.links[i])
			}
		}
		for _, i := range more.of(v) {
			relax(i+int32(len(g.base.links)), &g.links[i])
		}
	}
	return dist, by
}
