package state

import (
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// forgotten is the reason given for a moment before the horizon.
const forgotten = "it is older than the kept history"

// past is what a State answers about what it has forgotten.
type past struct {
	horizon int64
	nothing *State // of the same cluster, never told anything
}

// Horizon returns the moment before which a State answers nothing: the latest that Prune was called with, zero if it never was.
func (s *State) Horizon() time.Time {
	if p := s.past.Load(); p != nil {
		return instant.Time(p.horizon)
	}
	return time.Time{}
}

// AsOf returns the State to ask about a moment and all later ones: s itself, or, when the moment lies before the horizon, one of the same
// cluster to which everything is unknown. A question about a single moment needs no AsOf; it is for answers that take several questions.
func (s *State) AsOf(at time.Time) (of *State, kept bool) {
	if n := s.before(instant.Of(at)); n != nil {
		return n, false
	}
	return s, true
}

// before returns a State to which everything is unknown for a moment before the horizon, else nil. Readers without the lock call it after
// reading: Prune moves the horizon before it drops anything.
func (s *State) before(at int64) *State {
	if p := s.past.Load(); p != nil && at < p.horizon {
		return p.nothing
	}
	return nil
}

// forget moves the horizon; it returns false if that is further on already.
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

// late returns what an observation from before the horizon still says. Content of an object that is kept, and ends, take their place as
// usual. Of other objects it cannot be told whether they had ended by the horizon, and were forgotten, or still exist: they are unknown
// from then on, until they are seen again or a listing does not show them.
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
		// A listing from before the horizon does not show that it has ended, hence the bound.
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
