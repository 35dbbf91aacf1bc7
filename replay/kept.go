package replay

import (
	"time"

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
