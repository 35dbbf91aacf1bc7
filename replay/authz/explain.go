package authz

import (
	"cmp"
	"slices"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/verdict"
)

// Explain says of every authorizer of the chain what it would have needed to allow a request,
// with at most limit nearest misses of each kind. It is not made for the hot path.
func (c *Chain) Explain(u *event.User, a *verdict.Attributes, m *Moment, limit int) []Shortfall {
	ans := c.Authorize(u, a, m, nil)
	steps := ans.Steps()
	out := make([]Shortfall, len(steps))
	for i := range steps {
		l := &c.links[i]
		s := Shortfall{Authorizer: l.name, Answer: steps[i].Answer}
		switch steps[i].Answer {
		case verdict.AnswerAllow:
			s.Text = "allows it"
			if ans.Line > 0 {
				s.Text += " by line " + strconv.Itoa(ans.Line) + " of its policy file"
			}
		case verdict.AnswerNotAsked:
			s.Text = "is not asked: " + ans.Authorizer + " decides"
			if ans.by < 0 {
				s.Text = "whether it is asked is not known"
			}
		default:
			l.explain(&s, ans, u, a, m, limit)
		}
		out[i] = s
	}
	return out
}

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
