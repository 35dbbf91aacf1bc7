package leastpriv

import rbacv1 "k8s.io/api/rbac/v1"

// Bounds on how much of a policy is weighed. The author of a role controls what its lists multiply
// to.
const (
	allSteps   = 1 << 26 // of all subjects of an Advisor
	mostSteps  = 1 << 22 // of one subject, for each of: what it holds, what its groups grant, and what remains
	leastSteps = 1 << 16 // of one subject, whatever others used
	mostAtoms  = 1 << 16 // weighed for one subject
	ruleAtoms  = 1 << 13 // weighed of one rule; real rules have some hundreds
)

// effort is the budget that remains for weighing one subject. A step is a string compared or an
// atom examined.
type effort struct {
	left, atoms int
	all         *int // of allSteps
}

// effort returns the budget of a subject.
func (a *Advisor) effort() *effort {
	return &effort{left: max(leastSteps, min(mostSteps, a.steps)), atoms: mostAtoms, all: &a.steps}
}

// take uses n steps and reports whether that many remained; otherwise it uses none.
func (e *effort) take(n int) bool {
	if n > e.left {
		return false
	}
	e.left -= n
	*e.all -= min(n, *e.all)
	return true
}

// weighs reports whether a rule may be split into atoms.
func (e *effort) weighs(r *rbacv1.PolicyRule) bool {
	n := atomCount(r)
	if n > ruleAtoms || n > e.atoms || !e.take(n) {
		return false
	}
	e.atoms -= n
	return true
}

// atomCount returns how many atoms a rule stands for.
func atomCount(r *rbacv1.PolicyRule) int {
	return len(r.Verbs) * (len(r.NonResourceURLs) + len(r.APIGroups)*len(r.Resources)*max(1, len(r.ResourceNames)))
}

// length returns how many strings of a rule an atom is compared with.
func length(r *rbacv1.PolicyRule) int {
	return 1 + len(r.Verbs) + len(r.NonResourceURLs) + len(r.APIGroups) + len(r.Resources) + len(r.ResourceNames)
}

// lengths returns the sum of length over several rules.
func lengths(rules []rbacv1.PolicyRule) int {
	n := 0
	for i := range rules {
		n += length(&rules[i])
	}
	return n
}
