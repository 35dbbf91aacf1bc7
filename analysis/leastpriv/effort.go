package leastpriv

import rbacv1 "k8s.io/api/rbac/v1"

// How much of policies is weighed. Whoever writes a role decides what its lists multiply to.
const (
	allSteps   = 1 << 26 // of all subjects of an Advisor
	mostSteps  = 1 << 22 // of one subject, for each of what it holds, what its groups give, and what is left
	leastSteps = 1 << 16 // of one, whatever others took
	mostAtoms  = 1 << 16 // weighed for one subject
	ruleAtoms  = 1 << 13 // weighed of one rule; real ones have some hundreds
)

// effort is what is left for weighing one subject. A step is a string that is compared, or an
// atom looked at.
type effort struct {
	left, atoms int
	all         *int // of allSteps
}

// effort returns what may be spent on a subject.
func (a *Advisor) effort() *effort {
	return &effort{left: max(leastSteps, min(mostSteps, a.steps)), atoms: mostAtoms, all: &a.steps}
}

// take uses n steps and reports whether that many were left; otherwise it uses none.
func (e *effort) take(n int) bool {
	if n > e.left {
		return false
	}
	e.left -= n
	*e.all -= min(n, *e.all)
	return true
}

// weighs tells whether a rule may be taken apart.
func (e *effort) weighs(r *rbacv1.PolicyRule) bool {
	n := atomCount(r)
	if n > ruleAtoms || n > e.atoms || !e.take(n) {
		return false
	}
	e.atoms -= n
	return true
}

// atomCount is how many atoms a rule stands for.
func atomCount(r *rbacv1.PolicyRule) int {
	return len(r.Verbs) * (len(r.NonResourceURLs) + len(r.APIGroups)*len(r.Resources)*max(1, len(r.ResourceNames)))
}

// length is how much there is to compare an atom with in a rule.
func length(r *rbacv1.PolicyRule) int {
	return 1 + len(r.Verbs) + len(r.NonResourceURLs) + len(r.APIGroups) + len(r.Resources) + len(r.ResourceNames)
}

// lengths is length of several rules.
func lengths(rules []rbacv1.PolicyRule) int {
	n := 0
	for i := range rules {
		n += length(&rules[i])
	}
	return n
}
