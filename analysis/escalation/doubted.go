package escalation

import (
	"maps"
	"slices"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
)

// Bounds are what every identity can reach under a policy in which some objects have one of two
// contents: for certain, and if the content that grants more holds. They are immutable and safe for
// concurrent use.
type Bounds struct {
	certain *Closure
	most    *Closure // nil if nothing is in doubt
	view    state.View
}

// NewBounds computes the closures of a view.
func NewBounds(view state.View, accounts Accounts) *Bounds {
	b := &Bounds{certain: New(view.RBAC, accounts), view: view}
	if view.Most != nil {
		b.most = New(view.Most, accounts)
	}
	return b
}

// Reaching is [Closure.Reaching] of what is certain, followed by the identities that reach a goal
// only by what is in doubt: their paths name it.
func (b *Bounds) Reaching(want func(Node) bool, limit int) (paths []Path, count int) {
	paths, count = b.certain.Reaching(want, limit)
	if b.most == nil {
		return paths, count
	}
	surely := b.certain.reaching()
	perhaps, more := b.most.Reaching(func(n Node) bool { return !surely[n] && (want == nil || want(n)) }, limit)
	if len(paths) == count || limit > 0 && len(paths) == limit { // none was left out
		paths = first(append(paths, b.mark(perhaps)...), limit)
	}
	return paths, count + more
}

// TooLarge is [Closure.TooLarge] of what objects grant at most, which takes more steps.
func (b *Bounds) TooLarge(want func(Node) bool, limit int) (nodes []Node, count int) {
	if b.most == nil {
		return b.certain.TooLarge(want, limit)
	}
	return b.most.TooLarge(want, limit)
}

// All returns every identity that reaches a goal, be it only by what is in doubt.
func (b *Bounds) All() map[Node]bool {
	out := b.certain.reaching()
	if b.most != nil {
		maps.Copy(out, b.most.reaching())
	}
	return out
}

// reaching returns every identity that reaches a goal.
func (c *Closure) reaching() map[Node]bool {
	out := map[Node]bool{}
	for i := range c.g.ids {
		if c.dist[c.g.index[vertex{at: atHeld, a: int32(i)}]] < far {
			out[c.g.ids[i].node] = true
		}
	}
	return out
}

// Reach is [Closure.Reach] of what is certain, followed by what is reached only by what is in
// doubt.
func (b *Bounds) Reach(user string, groups []string, limit int) Reached {
	out := b.certain.Reach(user, groups, limit)
	if b.most == nil {
		return out
	}
	there := map[Node]bool{}
	for _, x := range b.certain.walk(user, groups).others {
		there[x.node] = true
	}
	r := b.most.walk(user, append(slices.Clip(groups), content.GroupAnybody))
	r.others = slices.DeleteFunc(r.others, func(x arrival) bool { return there[x.node] })
	e := effort{left: tellSteps}
	if len(out.Goals) == 0 {
		out.Goals = b.mark(r.tell(&e, r.goals, 0))
	}
	if len(out.Others) == out.Count && (limit == 0 || out.Count < limit) {
		rest := limit
		if limit > 0 {
			rest -= out.Count
		}
		out.Others = append(out.Others, b.mark(r.tell(&e, r.others, rest))...)
	}
	out.Count += len(r.others)
	out.TooLarge = out.TooLarge || r.tooLarge()
	return out
}

// first returns the first elements of a list, all of them if there is no limit.
func first[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}

// mark records on paths the objects in doubt that they rest on.
func (b *Bounds) mark(paths []Path) []Path {
	for i := range paths {
		p := &paths[i]
		for j := range p.Steps {
			p.rests(&b.view, p.Steps[j].Requests)
		}
		p.rests(&b.view, p.Holds)
	}
	return paths
}

// rests records the objects in doubt without which requests would not be granted.
func (p *Path) rests(view *state.View, requests []Request) {
	for i := range requests {
		var on []rbacindex.Key
		for j := range requests[i].Grants {
			g := &requests[i].Grants[j]
			found := false
			for _, k := range [...]rbacindex.Key{g.BindingKey(), g.RoleKey()} {
				if object, ok := view.InDoubt(k); ok {
					on, found = append(on, object), true
				}
			}
			if !found {
				on = nil
				break
			}
		}
		for _, k := range on {
			if !slices.Contains(p.Doubted, k) {
				p.Doubted = append(p.Doubted, k)
			}
		}
	}
}
