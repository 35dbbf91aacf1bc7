package escalation

import "github.com/retrial-io/retrial/rbacindex"

// How much of a policy is followed. Whoever writes roles and bindings decides what names and
// namespaces multiply to: docs/adr/0075. A step is a name compared or kept, a role or a namespace
// looked at; a link counts as linkSteps, so that the memory of a closure is bounded as well.
const (
	allSteps   = 1 << 25 // of all roles and identities of a closure
	mostSteps  = 1 << 22 // of one, and of the subject of Reach
	leastSteps = 1 << 9  // of one, whatever others took
	linkSteps  = 16
	roleSteps  = 32      // of a role that is kept as one to bind
	tellSteps  = 1 << 22 // of telling the paths of an answer
	stepSteps  = 64      // of a step told
)

// effort is what is left for one role, one identity or one answer.
type effort struct {
	left int
	open bool // what was looked at is itself not known to its end
}

// take uses n steps and reports whether that many were left. From the first time that they were
// not, there are none.
func (e *effort) take(n int) bool {
	if e.left < n {
		e.left = -1
	}
	if e.left < 0 {
		return false
	}
	e.left -= n
	return true
}

// spent reports that more was wanted than there was: what was found is so, and there may be
// more.
func (e *effort) spent() bool { return e.left < 0 }

// budget is the steps that the parts of a closure share.
type budget struct{ left, most, least int }

// usual is the budget of a closure, and of a subject that is asked about.
func usual() budget { return budget{left: allSteps, most: mostSteps, least: leastSteps} }

// within runs a part of the work with its share of what is left, and reports whether all was
// found.
func (b *budget) within(part func(*effort)) bool {
	e := effort{left: max(b.least, min(b.most, b.left))}
	had := e.left
	part(&e)
	b.left -= min(b.left, had-max(e.left, 0))
	return !e.spent() && !e.open
}

// authorize asks a policy with the steps that are left.
func (e *effort) authorize(policy *rbacindex.Snapshot, a *rbacindex.Attributes) []rbacindex.Grant {
	if e.spent() {
		return nil
	}
	steps := rbacindex.NewSteps(e.left)
	asked := *a
	asked.Steps = steps
	grants := policy.Authorize(&asked, nil).Grants
	e.take(e.left - steps.Left())
	return grants
}
