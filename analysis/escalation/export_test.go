package escalation

import (
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
)

// Within is New with other budgets of steps: of all, of one identity, and whatever others took.
func Within(policy *rbacindex.Snapshot, accounts Accounts, all, most, least int) *Closure {
	return within(policy, accounts, budget{all, most, least})
}

// Taken returns the steps that a closure took of those all share.
func (c *Closure) Taken() int { return allSteps - c.g.steps.left }

// Sizes describes the graph behind a closure.
type Sizes struct{ Identities, Nodes, Edges int }

// Sizes returns the sizes of the graph behind the closure.
func (c *Closure) Sizes() Sizes {
	return Sizes{len(c.g.ids), len(c.g.vertices), len(c.g.links)}
}

// UserName returns the name requests of a User or ServiceAccount carry, "" for other nodes.
func (n Node) UserName() string {
	switch n.Kind {
	case User:
		return n.Name
	case ServiceAccount:
		return kubenames.ServiceAccount(n.Namespace, n.Name)
	}
	return ""
}
