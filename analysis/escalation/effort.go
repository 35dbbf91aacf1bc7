package escalation

import "github.com/retrial-io/retrial/rbacindex"

// Bounds on how much of a policy is followed. The authors of roles and bindings control what names
// and namespaces multiply to: docs/adr/0075. A step is a name compared or kept, a role or a
// namespace examined; a link counts as linkSteps, so the memory of a closure is bounded too.
const (
	allSteps   = 1 << 25 // of all roles and identities of a closure
	mostSteps  = 1 << 22 // of one, and of the subject of Reach
	leastSteps = 1 << 9  // of one, whatever others used
	linkSteps  = 16
	roleSteps  = 32      // of a role that is kept as one to bind
	tellSteps  = 1 << 22 // of building the paths of an answer
	stepSteps  = 64      // of a step of a path
)

// effort is the remaining budget of one role, one identity or one answer.
type effort struct {
	left int
	open bool // what was followed is itself incomplete
}

// take uses n steps and reports whether that many were left. After the first failure none remain.
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

// spent reports whether the budget was exceeded: what was found is correct, and there may be more.
func (e *effort) spent() bool { return e.left < 0 }

// budget is the steps that the parts of a closure share.
type budget struct{ left, most, least int }

// usual returns the budget of a closure, and of a subject that a request names.
func usual() budget { return budget{left: allSteps, most: mostSteps, least: leastSteps} }

// within runs a part of the work with its share of what remains, and reports whether everything was
// found.
func (b *budget) within(part func(*effort)) bool {
	e := effort{left: max(b.least, min(b.most, b.left))}
	had := e.left
	part(&e)
	b.left -= min(b.left, had-max(e.left, 0))
	return !e.spent() && !e.open
}

// authorize evaluates a policy within the remaining steps.
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
