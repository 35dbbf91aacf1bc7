// Package escalation computes what a subject of a cluster can become: the closure of the ways in which RBAC rights lead
// to more rights than are held.
//
//	Snapshot, service accounts ──▶ holdings: who holds which role where          (holdings.go)
//	                                  │  roles reduced to the abilities that ways need (ability.go)
//	                                  ▼
//	                       edges: identity ─way▶ identity | namespace | goal     (graph.go, ask.go by ways.go, change.go)
//	                                  │  namespaces are nodes: one edge each, not one an account
//	                                  ▼
//	        Dijkstra from the goals: the shortest path of everybody at once      (search.go)
//	                                  ▼
//	        Path: steps, each with the requests it takes and all their grants    (path.go)
//
// # Identities
//
// A user, a service account and a group are each taken by themselves, with the groups their name implies: every service
// account is in system:serviceaccounts, system:serviceaccounts:N and system:authenticated, every other user in
// system:authenticated. Every member may do what a group may do. [Closure.Reach] takes a user with more groups.
//
// Identities held by credential and identities assumed by impersonation are distinguished: a request is impersonated
// once, so the rights of an impersonated identity to impersonate are of no use.
//
// # Exactness
//
// An edge exists exactly if RBAC allows the identity all requests that its way takes (docs/escalations.md lists them),
// with the rights of the roles it may bind to itself added. Step.Presumes says what else it takes. Rights combined from
// two identities that one path reaches one after the other are not considered: a user and a group impersonated
// together, or a certificate for both, count as one or the other.
//
// The package is pure: no I/O, no clock.
package escalation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// Closure is what every identity of a policy can reach. It is immutable and safe for concurrent
// use, and keeps its Snapshot alive.
type Closure struct {
	g    *graph
	out  adjacency
	dist []int64 // to the nearest goal
	take []int32
	open []int64 // to where more may be reached; nil if everything was followed
}

// New computes the closure of a policy. The service accounts that bindings name are added to those
// that are known. The cost is that of the policy, not of its subjects times what they reach; for
// every policy the number of steps is bounded: see [Closure.TooLarge].
func New(policy *rbacindex.Snapshot, accounts Accounts) *Closure {
	return within(policy, accounts, usual())
}

func within(policy *rbacindex.Snapshot, accounts Accounts, steps budget) *Closure {
	c := &Closure{g: newGraph(newHoldings(policy, accounts, steps))}
	c.dist, c.take = c.g.toGoals(goalAdmin, goalMasters)
	if slices.ContainsFunc(c.g.links, func(l link) bool { return l.to == goalOpen }) {
		c.open, _ = c.g.toGoals(goalOpen)
	}
	c.out = adjacent(len(c.g.vertices), c.g.links, func(l *link) int32 { return l.from })
	return c
}

// candidate is an identity of the policy and its distance to the target.
type candidate struct {
	id   int32
	dist int64
}

// sort sorts candidates: the nearest first, then by name.
func (c *Closure) sort(list []candidate) {
	slices.SortFunc(list, func(a, b candidate) int {
		x, y := &c.g.ids[a.id].node, &c.g.ids[b.id].node
		return cmp.Or(cmp.Compare(a.dist, b.dist), x.compare(y))
	})
}

// candidates returns the identities that want accepts and that reach the target of dist, except
// those that do so only as every member of a group that their name implies does.
func (c *Closure) candidates(dist []int64, want func(Node) bool) (list []candidate) {
	for i := range c.g.ids {
		id := &c.g.ids[i]
		d := dist[c.g.index[vertex{at: atHeld, a: int32(i)}]]
		if d >= far || id.name == "" || want != nil && !want(id.node) {
			continue
		}
		if p := id.parent; p >= 0 && dist[c.g.index[vertex{at: atHeld, a: p}]] <= d {
			continue
		}
		list = append(list, candidate{int32(i), d})
	}
	return list
}

// Reaching returns, for every identity that can reach a goal and that want accepts, its shortest
// path: fewest steps first, then fewest presumptions, then by name. Identities that are at a goal
// come first, with no steps. limit bounds the paths (0: none), not the count, and so does the
// budget of steps for them. What an identity reaches only as every member of a group that its name
// implies does is reported for that group.
func (c *Closure) Reaching(want func(Node) bool, limit int) (paths []Path, count int) {
	list := c.candidates(c.dist, want)
	c.sort(list)
	count = len(list)
	e := effort{left: tellSteps}
	for _, x := range first(list, limit) {
		if e.spent() {
			break
		}
		var links []*link
		v := c.g.index[vertex{at: atHeld, a: x.id}]
		for c.take[v] >= 0 {
			l := &c.g.links[c.take[v]]
			links = append(links, l)
			v = l.to
		}
		paths = append(paths, c.g.path(&e, c.g.who(x.id), links))
	}
	return paths, count
}

// TooLarge returns the identities that want accepts and that reach no goal within the budget of
// steps: they, or identities they can become, have more rights than were followed, and may reach
// one. They are sorted by name; limit bounds them (0: no limit), not the count.
func (c *Closure) TooLarge(want func(Node) bool, limit int) (nodes []Node, count int) {
	if c.open == nil {
		return nil, 0
	}
	list := c.candidates(c.open, want)
	list = slices.DeleteFunc(list, func(x candidate) bool { return c.dist[c.g.index[vertex{at: atHeld, a: x.id}]] < far })
	for i := range list {
		list[i].dist = 0
	}
	c.sort(list)
	for _, x := range first(list, limit) {
		nodes = append(nodes, c.g.ids[x.id].node)
	}
	return nodes, len(list)
}

// Reached is what one subject can reach.
type Reached struct {
	Subject Node
	Groups  []string // groups it counts as a member of, including those its name implies
	// Goals are the shortest paths to the goals that are reached, the nearer one first;
	// system:masters only if it is as near as cluster-admin.
	Goals []Path
	// Others are the shortest paths to identities and namespaces, nearest first, as many as Count
	// asks for and the budget of steps allows. Members of groups stand for themselves; groups that
	// a reached identity's name implies are left out.
	Others []Path
	Count  int
	// TooLarge means that the budget of steps ended before everything was followed: it may reach
	// more, or sooner.
	TooLarge bool
}

// Reach returns what a user can reach, with groups in addition to those its name implies; with an
// empty user, what being in the groups gives by itself.
func (c *Closure) Reach(user string, groups []string, limit int) Reached {
	r := c.walk(user, groups)
	out := Reached{Subject: r.who.node, Groups: r.who.groups, Count: len(r.others), TooLarge: r.tooLarge()}
	e := effort{left: tellSteps}
	out.Goals = r.tell(&e, r.goals, 0)
	out.Others = r.tell(&e, r.others, limit)
	return out
}

// walk is what is reached from one subject.
type walk struct {
	g      *graph
	who    who
	dist   []int64
	by     []int32
	goals  []arrival
	others []arrival // nearest first
}

// arrival is an end of the walk.
type arrival struct {
	v    int32
	node Node
	held bool
}

func (r *walk) tooLarge() bool { return r.dist[goalOpen] < far }

// tell builds the paths to the first ends, as long as there are steps.
func (r *walk) tell(e *effort, ends []arrival, limit int) (paths []Path) {
	for _, x := range first(ends, limit) {
		if e.spent() {
			break
		}
		var links []*link
		for v := x.v; r.by[v] >= 0; {
			l := r.g.linkAt(r.by[v])
			links = append(links, l)
			v = l.from
		}
		slices.Reverse(links)
		paths = append(paths, r.g.path(e, r.who, links))
	}
	return paths
}

// walk goes from a subject to everything it reaches.
func (c *Closure) walk(user string, groups []string) *walk {
	w, own := c.subject(user, groups)
	g := &graph{holdings: c.g.holdings, base: c.g}
	r := &walk{g: g, who: w}
	start := int32(len(c.g.vertices))
	g.vertices = append(g.vertices, vertex{at: atHeld, a: -1})
	steps := usual()
	if !steps.within(func(e *effort) { g.leave(e, w, start, start, own, nil, nil) }) {
		g.member(start, goalOpen)
	}
	r.dist, r.by = g.from(start, &c.out)
	goals := []int32{goalAdmin, goalMasters}
	slices.SortStableFunc(goals, func(a, b int32) int { return cmp.Compare(r.dist[a], r.dist[b]) })
	for _, v := range goals {
		// A cluster administrator can impersonate system:masters; report that only for subjects
		// that get there no later.
		if r.dist[v] < far && (len(r.goals) == 0 || r.dist[goalMasters] <= r.dist[goalAdmin]) {
			r.goals = append(r.goals, arrival{v: v})
		}
	}
	r.arrivals(start)
	return r
}

// arrivals returns the identities and namespaces that were reached.
func (r *walk) arrivals(start int32) {
	g, dist, list := r.g, r.dist, []arrival(nil)
	best := map[Node]int{}
	for v := range dist {
		if dist[v] >= far || int32(v) == start {
			continue
		}
		at := g.vertex(int32(v))
		x := arrival{v: int32(v)}
		switch at.at {
		case atHeld, atAssumed, atAlone:
			if g.ids[at.a].name == "" || g.implied(r.by, int32(v), r.who) {
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
	list = slices.DeleteFunc(list, func(x arrival) bool { return x.node == r.who.node })
	slices.SortFunc(list, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(dist[a.v], dist[b.v]), a.node.compare(&b.node))
	})
	r.others = list
}

// implied reports whether a vertex is reached only as a group that the name of an identity reached
// before, or of the subject itself, implies.
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

// subject collects what a user and groups hold.
func (c *Closure) subject(user string, groups []string) (who, []holding) {
	w := who{user: user, node: nodeOf(cmp.Or(user, strings.Join(groups, ", ")), user == "")}
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
		if user == "" || x != kubenames.Unauthenticated {
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
