package replay

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// reach is how long before a request what is asked of a state about it may lie: caches of the
// apiserver, nodes that were there lately, requests that were under way for long.
const reach = time.Hour

// Forgotten is the cause of verdicts on requests from before what a state remembers.
const Forgotten = "older than the kept history"

// Kept reports whether a state reaches back far enough for a request that came at a time. One that
// does not answers nothing about it: the verdict is what follows from event and configuration
// alone, or indeterminate, of class ClassNoState, with the cause Forgotten.
func Kept(s *state.State, received time.Time) bool {
	_, kept := asOf(s, received)
	return kept
}

// asOf returns the state to ask about a request; s may be nil.
func asOf(s *state.State, received time.Time) (of *state.State, kept bool) {
	if s == nil {
		return nil, true
	}
	return s.AsOf(received.Add(-reach))
}

// forgotten says in a verdict that the policy was forgotten, and not never known.
func (t *trial) forgotten() {
	v := t.v
	if v.Outcome != verdict.OutcomeIndeterminate {
		return
	}
	switch v.Class {
	case verdict.ClassNoState, verdict.ClassUnknown, verdict.ClassNodeGraph:
		v.Class, v.Cause = verdict.ClassNoState, Forgotten
	}
}

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
