package escalation

import "github.com/retrial-io/retrial/rbacindex"

// Within is New with other budgets of steps: of all, of one identity, and whatever others took.
func Within(policy *rbacindex.Snapshot, accounts Accounts, all, most, least int) *Closure {
	return within(policy, accounts, budget{all, most, least})
}

// Taken returns the steps that a closure took of those all share.
func (c *Closure) Taken() int { return allSteps - c.g.steps.left }
