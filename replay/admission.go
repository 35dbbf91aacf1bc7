package replay

import (
	"time"

	"github.com/retrial-io/retrial/replay/admission"
	"github.com/retrial-io/retrial/replay/authz/node"
)

// admission fills in what admission did: the recorded refusal attributed to its plugin, and
// what can be evaluated again.
func (t *trial) admission(rec *record) {
	if t.uriErr != nil {
		return
	}
	u := t.e.EffectiveUser()
	q := &t.admitted
	*q = admission.Request{
		Attributes: &t.v.Attributes, Node: node.Is(u.Username, u.Groups), Decision: rec.decision, Code: t.e.Code(),
		Received: t.e.RequestReceivedTimestamp, Window: t,
	}
	if t.e.ResponseStatus != nil {
		q.Message = t.e.ResponseStatus.Message
	}
	if t.s != nil {
		q.State = t.s
	}
	t.eng.admission.Judge(q, &t.v.Admission)
}

// Window is window, for those who are handed the trial.
func (t *trial) Window() (from, to time.Time) { return t.window() }
