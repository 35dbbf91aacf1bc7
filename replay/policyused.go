package replay

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
)

// PolicyUsed tells which policy an event is judged by.
type PolicyUsed struct {
	// Revision of the state, as Verdict.Revision.
	Revision uint64
	// Newest is the newest change in the policy at the time the request came, by the moment it
	// was certainly done; zero if nothing had changed since the beginning of what is known.
	Newest time.Time
	// From and To are the window in which the apiserver may have taken its policy from.
	From, To time.Time
	// Changes are those inside the window, oldest first: each could have come before or after
	// the decision. Nil when there is one policy only.
	Changes []state.Version
	// Configurations that may have been in force inside the window besides the one used, in
	// words.
	Configurations []string
}

// PolicyUsed returns which policy Replay judges an event by, for people who ask how sure the
// verdict is. s must not be nil.
func (eng *Engine) PolicyUsed(e *event.Event, s *state.State) PolicyUsed {
	var p PolicyUsed
	eng.decideAt(e, s, e.RequestReceivedTimestamp, func(t *trial, _ bool) {
		p.Revision, p.Newest = t.v.Revision, t.view.At
		p.From, p.To = t.window()
		views := t.s.RBACWindow(p.From, p.To)
		for i := range views {
			if i > 0 {
				p.Changes = append(p.Changes, views[i].Changed...)
			}
		}
		for _, c := range t.otherConfigurations(p.From, p.To) {
			p.Configurations = append(p.Configurations, c.text)
		}
	})
	return p
}
