package authz

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
)

// Holding reports whether a subject holds rules: it does, it lacks some, or neither is known.
type Holding struct {
	Held bool
	// Lacks are the first pieces that it does not hold, whatever is in doubt.
	Lacks []rbacv1.PolicyRule
	// Missing is what of its own bindings and roles would have to be known to tell.
	Missing []string
}

// heldTooCostly is what is missing when a comparison takes more steps than there are.
const heldTooCostly = "whether its rules cover those of the role: too large to check"

// Holds reports whether a subject's own rules, of RBAC alone, cover others, of which least are wanted for
// certain, and at the most most, which has the least too. It holds them if what it is certain to have covers most of
// them, and does not if nothing that it may have covers the least; see rbacindex.Covers for pieces and steps.
func Holds(view *state.View, user string, groups []string, namespace string, least, most []rbacv1.PolicyRule, pieces int,
	steps *rbacindex.Steps) Holding {
	surely := view.RBAC.Covers(user, groups, namespace, most, pieces, steps)
	switch {
	case surely.TooCostly:
		return Holding{Missing: []string{heldTooCostly}}
	case surely.Covered():
		return Holding{Held: true}
	}
	if view.Most == nil && len(least) == len(most) {
		return Holding{Lacks: surely.Uncovered}
	}
	policy := cmp.Or(view.Most, view.RBAC)
	groups = append(slices.Clip(groups), content.GroupAnybody)
	perhaps := policy.Covers(user, groups, namespace, least, pieces, steps)
	switch {
	case perhaps.TooCostly:
		return Holding{Missing: []string{heldTooCostly}}
	case !perhaps.Covered():
		return Holding{Lacks: perhaps.Uncovered}
	}
	var missing names
	policy.BindingsOf(user, groups, namespace, func(binding, role rbacindex.Key, _ rbacv1.Subject) bool {
		missing.doubted(view, binding)
		missing.doubted(view, role)
		return len(missing) <= maxMissing
	})
	return Holding{Missing: missing}
}
