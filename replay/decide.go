package replay

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// DecideAt decides an event's request as if it came at another time: by the policy as it was
// then. Of the verdict are set the attributes, the replica's decision with its authorizer,
// grants, errors and what is missing, the impersonation check and the implied checks; it is
// compared with nothing, and the event's record of an answer is not read. s may be nil, as in Replay.
func (eng *Engine) DecideAt(e *event.Event, s *state.State, at time.Time) *verdict.Verdict {
	var v *verdict.Verdict
	eng.decideAt(e, s, at, func(t *trial, _ bool) { v = t.v })
	return v
}

// decideAt hands the trial to done before it goes back to rest; decided reports whether there
// was somebody and something to decide about.
func (eng *Engine) decideAt(e *event.Event, s *state.State, at time.Time, done func(t *trial, decided bool)) {
	v := &verdict.Verdict{}
	s, _ = asOf(s, at)
	t := eng.begin(e, s, v)
	defer t.end()
	t.base = t.momentAt(at)
	decided := t.decide()
	if decided && t.ans.Free() {
		v.Missing = t.ans.Missing()
	}
	t.impersonation()
	if decided {
		t.impliedChecks()
	}
	v.Identity, v.Evidence = nil, nil
	done(t, decided)
}

// Denial says why a request is not allowed: the decision, and what each authorizer of the
// chain would have needed.
type Denial struct {
	// Verdict is DecideAt's on the request.
	Verdict *verdict.Verdict
	// Chain are the authorizers in the order in which they are asked; nil if nobody is
	// there to be authorized.
	Chain []authz.Shortfall
}

// ExplainDeny says what would have allowed an event's request at a time, with at most limit
// nearest misses of each kind: of RBAC rules that lack one thing, roles and bindings that
// would do, of the lines of an ABAC policy file those that differ in one thing, of a webhook
// which condition keeps it out. Of a request that is allowed it says by whom. The event's
// record of an answer is not read. s may be nil, as in Replay.
func (eng *Engine) ExplainDeny(e *event.Event, s *state.State, at time.Time, limit int) *Denial {
	d := &Denial{}
	eng.decideAt(e, s, at, func(t *trial, decided bool) {
		if d.Verdict = t.v; decided {
			d.Chain = t.base.chain.Explain(e.EffectiveUser(), &t.v.Attributes, &t.base.Moment, limit)
		}
	})
	return d
}

// moment is what the authorizers decide with: the chain, and the policy as of one time.
type moment struct {
	chain *authz.Chain
	authz.Moment
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
