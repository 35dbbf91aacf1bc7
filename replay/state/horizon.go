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
	policy, horizon int64  // before which nothing is known of RBAC objects, and of all others
	nothing         *State // of the same cluster, never told anything
}

// Horizon returns the moment before which a State answers nothing about RBAC objects, and so nothing about requests: the latest that Prune
// or PrunePolicy was called with, zero if neither ever was.
func (s *State) Horizon() time.Time {
	if p := s.past.Load(); p != nil {
		return instant.Time(p.policy)
	}
	return time.Time{}
}

// horizonOf returns the moment before which nothing is known of a resource.
func (s *State) horizonOf(res kept.Resource) int64 {
	if res.RBACKind() != 0 {
		return s.policy
	}
	return s.horizon
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
	if p := s.past.Load(); p != nil && at < p.policy {
		return p.nothing
	}
	return nil
}

// unrelated reports whether nothing is known of pods, nodes and what they refer to at a moment; readers without the lock call it likewise.
func (s *State) unrelated(at int64) bool {
	p := s.past.Load()
	return p != nil && at < p.horizon
}

// forget moves the horizons, those that are not further on already.
func (s *State) forget(policy, horizon int64) {
	p := s.past.Load()
	if p == nil {
		p = &past{nothing: New(s.cluster)}
	}
	s.policy, s.horizon = max(s.policy, policy), max(s.horizon, horizon)
	s.past.Store(&past{policy: s.policy, horizon: s.horizon, nothing: p.nothing})
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
		if i := stepAt(obj.line, s.horizonOf(res)); i > 0 && obj.line[i-1].phase == phasePresent {
			return out
		}
	}
	out.Object, out.UID, out.ResourceVersion, out.Unknown = nil, "", "", true
	return out
}
