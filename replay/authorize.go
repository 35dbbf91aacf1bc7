package replay

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// moment is what the authorizers decide with: the chain, and the policy as of one time.
type moment struct {
	chain *authz.Chain
	authz.Moment
}

// authorize asks the chain as a user. The grants of the answer use buf.
func (m *moment) authorize(u *event.User, a *verdict.Attributes, buf []rbacindex.Grant) authz.Answer {
	return m.chain.Authorize(u, a, &m.Moment, buf)
}

// momentAt returns configuration and policy as of a time.
func (t *trial) momentAt(at time.Time) moment {
	m := moment{chain: t.configure(at).chain, Moment: authz.Moment{At: at, Steps: &t.steps}}
	if t.s != nil {
		t.view = t.s.RBAC(at)
		m.View, m.Graph = &t.view, t.s
	}
	return m
}

// with returns the moment at base under another policy.
func (t *trial) with(view *state.View) moment {
	m := t.base
	m.View = view
	return m
}

// lackClass returns the class of a verdict that lacks something.
func lackClass(l authz.Lack) string {
	switch l {
	case authz.LackNodeGraph:
		return verdict.ClassNodeGraph
	case authz.LackConfig:
		return verdict.ClassConfig
	case authz.LackObject:
		return verdict.ClassUnknown
	case authz.LackTime:
		return verdict.ClassCostly
	}
	return verdict.ClassNoState
}
