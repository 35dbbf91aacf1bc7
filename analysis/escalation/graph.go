package escalation

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// place is the kind of a vertex. A namespace's vertex stands between those who reach it and its
// service accounts, so that edges do not multiply.
type place uint8

const (
	atGoal          place = iota // a: which
	atHeld                       // identity a, its credentials held
	atAssumed                    // identity a, impersonated: the same without impersonation
	atAlone                      // group a impersonated, without the groups its name implies
	atBound                      // an identity with the roles of stacks[a] bound to it
	atBoundAssumed               // the same of one that is impersonated
	atEverySpace                 // all rights in each namespace
	atSpace                      // all rights in namespace spaceNames[a]
	atAccounts                   // the credentials of service accounts in spaceNames[a]
	atAccountsTaken              // the same, impersonated
	atAllAccounts
	atAllAccountsTaken
	atAnyUser  // every user, impersonated
	atAnyGroup // every group, impersonated
	atAnybody  // everybody except system:masters, by a certificate
)

type vertex struct {
	at place
	a  int32
}

// everySpace stands for each namespace, where a link leads to all of them.
const everySpace = "*"

const (
	goalAdmin int32 = iota
	goalMasters
	goalOpen // unknown: there more may be reached than the budget of steps could find
)

// link is an edge of the graph. Its way and the other fields determine what it takes.
type link struct {
	from, to int32
	way      int16
	ns       string // namespace where the rights hold
	name     string // the name that is chosen; "" if any does
	role     int32  // the role that is bound or rewritten; -1: none
	by       manner // of bind and escalate
}

// stack is the roles that an identity has bound to itself so far.
type stack struct {
	roles []boundRole
}

// boundRole is a role that an identity may bind to itself.
type boundRole struct {
	holding
	by   manner
	name string // of the binding that is written, "" for any
}

// who is an identity as requests carry it: its name, and its groups.
type who struct {
	node   Node
	user   string
	groups []string
}

// graph is edges between vertices. base is the shared part, which must not be modified; it is empty while that is built.
type graph struct {
	*holdings
	base     *graph
	vertices []vertex
	links    []link
	index    map[vertex]int32
	stacks   []stack
	last     struct { // see together
		roles []int32
		all   []names
	}
}

// vertexOf numbers a vertex.
func (g *graph) vertexOf(v vertex) int32 {
	if i, ok := g.base.index[v]; ok {
		return i
	}
	if i, ok := g.index[v]; ok {
		return i
	}
	i := int32(len(g.base.vertices) + len(g.vertices))
	if g.index == nil {
		g.index = map[vertex]int32{}
	}
	g.index[v] = i
	g.vertices = append(g.vertices, v)
	return i
}

// ofBoth returns an element of two lists, numbered one behind the other.
func ofBoth[T any](base, own []T, i int32) *T {
	if n := int32(len(base)); i >= n {
		return &own[i-n]
	}
	return &base[i]
}

func (g *graph) vertex(i int32) vertex { return *ofBoth(g.base.vertices, g.vertices, i) }
func (g *graph) stack(i int32) *stack  { return ofBoth(g.base.stacks, g.stacks, i) }
func (g *graph) linkAt(i int32) *link  { return ofBoth(g.base.links, g.links, i) }

// newStack numbers the roles bound from a vertex.
func (g *graph) newStack(s stack) int32 {
	g.stacks = append(g.stacks, s)
	return int32(len(g.base.stacks) + len(g.stacks) - 1)
}

func (g *graph) link(l link) { g.links = append(g.links, l) }

// member adds a link at no cost.
func (g *graph) member(from, to int32) {
	g.link(link{from: from, to: to, way: g.book.member, role: -1})
}

// who returns an identity of the policy as requests carry it.
func (h *holdings) who(i int32) who {
	id := &h.ids[i]
	w := who{node: id.node}
	if id.group {
		w.groups = []string{id.name}
	} else {
		w.user = id.name
	}
	for p := id.parent; p >= 0; p = h.ids[p].parent {
		w.groups = append(w.groups, h.ids[p].name)
	}
	return w
}

// alone reports whether a group impersonated is less than one whose name implies others.
func alone(id *identity) bool {
	return id.group && strings.HasPrefix(id.name, kubenames.ServiceAccountsOf(""))
}

// assumed returns the vertex of an identity that is impersonated.
func (g *graph) assumed(i int32) int32 {
	if alone(&g.ids[i]) {
		return g.vertexOf(vertex{at: atAlone, a: i})
	}
	return g.vertexOf(vertex{at: atAssumed, a: i})
}

// newGraph builds the graph of a policy.
func newGraph(h *holdings) *graph {
	g := &graph{holdings: h, base: &graph{}}
	for goal := range []int32{goalAdmin, goalMasters, goalOpen} {
		g.vertexOf(vertex{at: atGoal, a: int32(goal)})
	}
	authenticated := h.at[identityKey{kubenames.Authenticated, true}]
	anyUser, anyGroup, anybody := g.vertexOf(vertex{at: atAnyUser}), g.vertexOf(vertex{at: atAnyGroup}), g.vertexOf(vertex{at: atAnybody})
	for i := range h.ids {
		id := &h.ids[i]
		held, assumed := g.vertexOf(vertex{at: atHeld, a: int32(i)}), g.vertexOf(vertex{at: atAssumed, a: int32(i)})
		g.member(held, assumed)
		if id.parent >= 0 {
			g.member(held, g.vertexOf(vertex{at: atHeld, a: id.parent}))
			g.member(assumed, g.vertexOf(vertex{at: atAssumed, a: id.parent}))
		}
		if !h.steps.within(func(e *effort) { g.leave(e, h.who(int32(i)), held, assumed, id.own, h.inherited(int32(i), e), nil) }) {
			g.member(assumed, goalOpen)
		}
		if alone(id) {
			// An impersonated group comes with system:authenticated and no other.
			v := g.vertexOf(vertex{at: atAlone, a: int32(i)})
			g.member(v, g.vertexOf(vertex{at: atAssumed, a: authenticated}))
			alone := who{node: id.node, groups: []string{id.name, kubenames.Authenticated}}
			if !h.steps.within(func(e *effort) { g.leave(e, alone, -1, v, id.own, h.ids[authenticated].own, nil) }) {
				g.member(v, goalOpen)
			}
		}
		if id.name == "" || id.group && id.name == Masters {
			continue
		}
		if id.group {
			g.member(anyGroup, g.assumed(int32(i)))
		} else if id.node.Kind == User {
			g.member(anyUser, assumed)
		}
		g.member(anybody, held)
	}
	g.member(anyGroup, goalMasters)
	every := g.vertexOf(vertex{at: atEverySpace})
	all, allTaken := g.vertexOf(vertex{at: atAllAccounts}), g.vertexOf(vertex{at: atAllAccountsTaken})
	for _, ns := range h.spaces {
		space, held, taken := g.space(ns, atSpace), g.space(ns, atAccounts), g.space(ns, atAccountsTaken)
		g.member(all, held)
		g.member(allTaken, taken)
		g.member(every, space)
		g.link(link{from: space, to: held, way: h.book.adminToken, ns: ns, role: -1})
		g.link(link{from: space, to: taken, way: h.book.adminAssume, ns: ns, role: -1})
		for _, i := range h.accounts[ns] {
			g.member(held, g.vertexOf(vertex{at: atHeld, a: i}))
			g.member(taken, g.vertexOf(vertex{at: atAssumed, a: i}))
		}
	}
	return g
}

// space returns a vertex of a namespace.
func (g *graph) space(ns string, at place) int32 {
	i, _ := slices.BinarySearch(g.spaces, ns)
	return g.vertexOf(vertex{at: at, a: int32(i)})
}
