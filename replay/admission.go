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
		Attributes: &t.v.Attributes, Body: t.e.RequestObject, Node: node.Is(u.Username, u.Groups), Decision: rec.decision, Code: t.e.Code(),
		Received: t.e.RequestReceivedTimestamp, Window: t,
	}
	if code := t.e.Code(); code >= 200 && code < 300 {
		q.Written = t.e.ResponseObject
	}
	if t.e.ResponseStatus != nil {
		q.Message = t.e.ResponseStatus.Message
	}
	if t.s != nil {
		q.State = t.s
	}
	t.in.admission.Judge(q, &t.v.Admission)
}

// Window is window, for those who are handed the trial.
func (t *trial) Window() (from, to time.Time) { return t.window() }
