package escalation

import (
	"slices"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// Bounds are what everybody can reach under a policy of which some objects are one of two contents:
// for certain, and if what grants more holds. They are immutable and safe for concurrent use.
type Bounds struct {
	certain *Closure
	most    *Closure // nil where nothing is doubted
	view    state.View
}

// NewBounds works out the closures of a view.
func NewBounds(view state.View, accounts Accounts) *Bounds {
	b := &Bounds{certain: New(view.RBAC, accounts), view: view}
	if view.Most != nil {
		b.most = New(view.Most, accounts)
	}
	return b
}

// Reaching is [Closure.Reaching] of what is certain, and behind it of those that reach a goal only
// by what is in doubt: their paths say by what.
func (b *Bounds) Reaching(want func(Node) bool, limit int) (paths []Path, count int) {
	paths, count = b.certain.Reaching(want, limit)
	if b.most == nil {
		return paths, count
	}
	surely := b.certain.reaching()
	perhaps, more := b.most.Reaching(func(n Node) bool { return !surely[n] && (want == nil || want(n)) }, limit)
	return first(append(paths, b.mark(perhaps)...), limit), count + more
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

// Reach is [Closure.Reach] of what is certain, and behind it of what is reached only by what is in
// doubt.
func (b *Bounds) Reach(user string, groups []string, limit int) Reached {
	if b.most == nil {
		return b.certain.Reach(user, groups, limit)
	}
	out, perhaps := b.certain.Reach(user, groups, 0), b.most.Reach(user, append(slices.Clip(groups), state.GroupAnybody), 0)
	perhaps.Others = without(perhaps.Others, out.Others)
	if len(out.Goals) == 0 {
		out.Goals = b.mark(perhaps.Goals)
	}
	out.Count += len(perhaps.Others)
	out.Others = first(append(out.Others, b.mark(perhaps.Others)...), limit)
	return out
}

// first returns the first paths, all of them where there is no limit.
func first(paths []Path, limit int) []Path {
	if limit > 0 && len(paths) > limit {
		return paths[:limit]
	}
	return paths
}

// without returns the paths to whom none of others leads.
func without(paths, others []Path) []Path {
	there := make(map[Node]bool, len(others))
	for i := range others {
		there[others[i].To] = true
	}
	return slices.DeleteFunc(paths, func(p Path) bool { return there[p.To] })
}

// mark notes on paths the objects in doubt that they rest on.
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

// rests notes the objects in doubt without which requests would not be granted.
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
