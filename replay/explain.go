package replay

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

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
