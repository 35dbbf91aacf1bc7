package state

import (
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// forgotten is why a State cannot tell what was at a moment before its horizon.
const forgotten = "it is older than the kept history"

// past is what a State says of what it has forgotten.
type past struct {
	horizon int64
	nothing *State // of the same cluster, never told anything
}

// Horizon returns the moment before which a State answers nothing any more: the latest Prune
// was called with. Zero when nothing was ever forgotten.
func (s *State) Horizon() time.Time {
	if p := s.past.Load(); p != nil {
		return instant.Time(p.horizon)
	}
	return time.Time{}
}

// AsOf returns the State to ask about a moment and all later ones: s itself, or, when the
// moment lies before the horizon, one of the same cluster to which everything is unknown. What
// is asked of a single moment needs no AsOf; it is for answers that take several questions.
func (s *State) AsOf(at time.Time) (of *State, kept bool) {
	if n := s.before(instant.Of(at)); n != nil {
		return n, false
	}
	return s, true
}

// before returns a State to which everything is unknown for a moment before the horizon, else
// nil. Readers without the lock ask it after they have read: Prune moves the horizon before it
// drops anything.
func (s *State) before(at int64) *State {
	if p := s.past.Load(); p != nil && at < p.horizon {
		return p.nothing
	}
	return nil
}

// forget moves the horizon; false when it is further on already.
func (s *State) forget(horizon int64) bool {
	p := s.past.Load()
	switch {
	case horizon < s.horizon:
		return false
	case p == nil:
		p = &past{nothing: New(s.cluster)}
	}
	s.horizon = horizon
	s.past.Store(&past{horizon: horizon, nothing: p.nothing})
	return true
}

// late makes of an observation from before the horizon what can still be said. What an object
// was that is kept, and that something ended, takes its place as ever. But whether the rest was
// over by the horizon, and is forgotten, or is there still, cannot be told: an object is unknown
// from then on, until it is seen again or a listing does not show it.
func (s *State) late(o *observe.Observation, res kept.Resource) observe.Observation {
	out := *o
	if o.Deleted || o.AllOf || res == kept.ResCredential {
		return out
	}
	if res == kept.ResPod {
		n := podName{o.Namespace, o.Name}
		if s.pods.uids[o.UID] != nil {
			return out
		}
		// A listing from before the horizon does not show that it is no more, hence the bound.
		out = observe.Observation{Source: o.Source, Resource: o.Resource, Namespace: o.Namespace, Unknown: true, NotBefore: o.NotBefore,
			NotAfter: instant.Time(s.horizon)}
		if out.Name = o.Name; s.pods.names[n] == nil {
			out.Name, out.AllOf = "", true
		}
		return out
	}
	if obj := s.objects[res][kept.Key{Resource: res, Namespace: o.Namespace, Name: o.Name}]; obj != nil {
		if i := stepAt(obj.line, s.horizon); i > 0 && obj.line[i-1].phase == phasePresent {
			return out
		}
	}
	out.Object, out.UID, out.ResourceVersion, out.Unknown = nil, "", "", true
	return out
}
