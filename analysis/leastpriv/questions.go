package leastpriv

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// Question is one check that a proof makes against a final state, for callers that want to put it
// to another authorizer.
type Question struct {
	Attributes rbacindex.Attributes
	Requests   int64
	// Needed checks must be allowed. The others are refusals on record.
	Needed bool
	// Explained refusals may be allowed, as Proof counts them: they were allowed at another time,
	// are allowed by the groups by now, or by any policy that allows the needs.
	Explained bool
	// Alternative: holding all of Rules, as a role's writer has to, also suffices.
	Alternative bool
	Rules       []rbacv1.PolicyRule
}

// Questions returns everything that the proofs of a subject check, in a fixed order, except what no
// exact rule can allow.
func (a *Advisor) Questions(subject string) ([]Question, error) {
	if _, _, err := a.usageOf(subject); err != nil {
		return nil, err
	}
	h := a.historyOf(subject)
	on, err := a.ground(subject, h)
	if err != nil {
		return nil, err
	}
	out := make([]Question, 0, len(h.needs)+len(h.refusals))
	for i := range h.needs {
		n := &h.needs[i]
		if a.strict || n.allowed(a.view.RBAC) {
			out = append(out, Question{Attributes: n.attrs, Requests: n.count, Needed: true, Alternative: n.alternative, Rules: n.rules})
		}
	}
	for i := range h.refusals {
		n := &h.refusals[i]
		out = append(out, Question{Attributes: n.attrs, Requests: n.count, Explained: h.explains(n, on) != nothingExplains,
			Alternative: n.alternative, Rules: n.rules})
	}
	return out, nil
}
