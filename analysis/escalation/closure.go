package escalation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
)

// Closure is what everybody of a policy can reach. It is immutable and safe for concurrent
// use, and keeps its Snapshot alive.
type Closure struct {
	g    *graph
	out  adjacency
	dist []int64 // to the nearest goal
	take []int32
}

// New works out the closure of a policy. To the service accounts that are known those are added
// that bindings name. The cost is that of the policy, not of its subjects times what they
// reach.
func New(policy *rbacindex.Snapshot, accounts Accounts) *Closure {
	c := &Closure{g: newGraph(newHoldings(policy, accounts))}
	c.dist, c.take = c.g.toGoals(goalAdmin, goalMasters)
	c.out = adjacent(len(c.g.vertices), c.g.links, func(l *link) int32 { return l.from })
	return c
}

// Sizes are the sizes of a closure.
type Sizes struct{ Identities, Nodes, Edges int }

// Sizes returns the sizes of the graph behind the closure.
func (c *Closure) Sizes() Sizes {
	return Sizes{len(c.g.ids), len(c.g.vertices), len(c.g.links)}
}

// Reaching returns, for every identity that can reach a goal and that want accepts, its
// shortest path: fewest steps first, then fewest presumptions, then by name. Those that have
// reached one come first, with no steps. limit bounds the paths (0: none), not the count.
// What an identity reaches only as every member of a group that its name implies does is
// left to that group.
func (c *Closure) Reaching(want func(Node) bool, limit int) (paths []Path, count int) {
	type candidate struct {
		id   int32
		dist int64
	}
	var list []candidate
	for i := range c.g.ids {
		id := &c.g.ids[i]
		v := c.g.index[vertex{at: atHeld, a: int32(i)}]
		d := c.dist[v]
		if d >= far || id.name == "" || want != nil && !want(id.node) {
			continue
		}
		if p := id.parent; p >= 0 && c.dist[c.g.index[vertex{at: atHeld, a: p}]] <= d {
			continue
		}
		list = append(list, candidate{int32(i), d})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		x, y := &c.g.ids[a.id].node, &c.g.ids[b.id].node
		return cmp.Or(cmp.Compare(a.dist, b.dist), strings.Compare(string(x.Kind), string(y.Kind)), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	count = len(list)
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	for _, x := range list {
		var links []*link
		v := c.g.index[vertex{at: atHeld, a: x.id}]
		for c.take[v] >= 0 {
			l := &c.g.links[c.take[v]]
			links = append(links, l)
			v = l.to
		}
		paths = append(paths, c.g.path(c.g.who(x.id), links))
	}
	return paths, count
}

// Reached is what one subject can reach.
type Reached struct {
	Subject Node
	Groups  []string // it counts as being in, those its name implies among them
	// Goals are the shortest paths to the goals that are reached, the nearer one first;
	// system:masters only when it is as near as cluster-admin.
	Goals []Path
	// Others are the shortest paths to identities and namespaces, nearest first, as many as
	// were asked for of Count. Members of groups stand for themselves; what everybody reached
	// is in by name is left out.
	Others []Path
	Count  int
}

// Reach returns what a user, with groups beside those its name implies, can reach; with an
// empty user, what being in the groups gives by itself.
func (c *Closure) Reach(user string, groups []string, limit int) Reached {
	w, own := c.subject(user, groups)
	g := &graph{holdings: c.g.holdings, base: c.g}
	start := int32(len(c.g.vertices))
	g.vertices = append(g.vertices, vertex{at: atHeld, a: -1})
	g.leave(w, start, start, own, nil, nil)
	dist, by := g.from(start, &c.out)
	out := Reached{Subject: w.node, Groups: w.groups}
	trace := func(v int32) Path {
		var links []*link
		for by[v] >= 0 {
			l := g.linkAt(by[v])
			links = append(links, l)
			v = l.from
		}
		slices.Reverse(links)
		return g.path(w, links)
	}
	goals := []int32{goalAdmin, goalMasters}
	slices.SortStableFunc(goals, func(a, b int32) int { return cmp.Compare(dist[a], dist[b]) })
	for _, v := range goals {
		// A cluster administrator can impersonate system:masters; that is worth telling only of
		// who gets there no later.
		if dist[v] < far && (len(out.Goals) == 0 || dist[goalMasters] <= dist[goalAdmin]) {
			out.Goals = append(out.Goals, trace(v))
		}
	}
	type candidate struct {
		v    int32
		node Node
		held bool
	}
	var list []candidate
	best := map[Node]int{}
	for v := range dist {
		if dist[v] >= far || int32(v) == start {
			continue
		}
		at := g.vertex(int32(v))
		x := candidate{v: int32(v)}
		switch at.at {
		case atHeld, atAssumed, atAlone:
			if g.ids[at.a].name == "" || g.implied(by, int32(v), w) {
				continue
			}
			x.node, x.held = g.ids[at.a].node, at.at == atHeld
		case atSpace:
			x.node = Node{Kind: Namespace, Name: g.spaces[at.a]}
		default:
			continue
		}
		if i, ok := best[x.node]; ok {
			if d, e := dist[v], dist[list[i].v]; d < e || d == e && x.held && !list[i].held {
				list[i] = x
			}
			continue
		}
		best[x.node] = len(list)
		list = append(list, x)
	}
	list = slices.DeleteFunc(list, func(x candidate) bool { return x.node == w.node })
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(dist[a.v], dist[b.v]), strings.Compare(string(a.node.Kind), string(b.node.Kind)), strings.Compare(a.node.Namespace, b.node.Namespace), strings.Compare(a.node.Name, b.node.Name))
	})
	out.Count = len(list)
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	for _, x := range list {
		out.Others = append(out.Others, trace(x.v))
	}
	return out
}

// implied tells that a vertex is reached as a group that an identity reached before, or the
// subject itself, is in by name.
func (g *graph) implied(by []int32, v int32, w who) bool {
	at := g.vertex(v)
	if slices.Contains(w.groups, g.ids[at.a].name) && g.ids[at.a].group {
		return true
	}
	l := g.linkAt(by[v])
	from := g.vertex(l.from)
	if l.way != g.book.member || from.at != atHeld && from.at != atAssumed && from.at != atAlone {
		return false
	}
	return from.a != at.a || by[l.from] >= 0 && g.implied(by, l.from, w)
}

// subject puts together what a user and groups hold.
func (c *Closure) subject(user string, groups []string) (who, []holding) {
	w := who{user: user}
	if user != "" {
		w.node = nodeOf(user, false)
	} else {
		w.node = nodeOf(strings.Join(groups, ", "), true)
	}
	add := func(name string, group bool) {
		for name := impliedGroup(name, group); name != ""; name = impliedGroup(name, true) {
			w.groups = append(w.groups, name)
		}
	}
	if user != "" {
		add(user, false)
	}
	for _, x := range groups {
		w.groups = append(w.groups, x)
		if user == "" || x != groupAnonymous {
			add(x, true)
		}
	}
	slices.Sort(w.groups)
	w.groups = slices.Compact(w.groups)
	var own []holding
	take := func(name string, group bool) {
		if i, ok := c.g.at[identityKey{name, group}]; ok {
			own = append(own, c.g.ids[i].own...)
		}
	}
	if user != "" {
		take(user, false)
	}
	for _, x := range w.groups {
		take(x, true)
	}
	return w, own
}
