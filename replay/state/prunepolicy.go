package state

import (
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// PrunePolicy forgets, of roles and bindings alone, the versions that others had certainly replaced by a moment. As after Prune, every
// answer about that moment or a later one stays, and of RBAC nothing is known before it. Besides:
//
//   - Whatever becomes known of the moment or later has the same effects as if nothing had been forgotten. So an object of which anything
//     was in doubt by then is kept as it is, and of one that had ended its end.
//   - What answers tell of who made a request, credentials, accounts, pods and nodes, which may rest on what was over long before, is not
//     touched.
//
// What comes later and may have been done before the moment needs a State that has forgotten nothing: see Older.
func (s *State) PrunePolicy(before time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	horizon := instant.Of(before)
	if horizon < s.policy {
		return 0
	}
	s.forget(horizon, s.horizon)
	dropped := 0
	var dirty []kept.Key
	for res := kept.ResNone + 1; res < kept.ResCount; res++ {
		if res.RBACKind() == 0 {
			continue
		}
		for k, obj := range s.objects[res] {
			if n := s.cut(k, obj, horizon, (*object).settle); n > 0 {
				dropped += n
				dirty = append(dirty, k)
			}
		}
	}
	s.resolve(dirty)
	s.versions -= dropped
	s.recount()
	s.in.Forget()
	return dropped
}

// Older reports whether an observation tells of roles or bindings what may have been done before a moment.
func Older(o *observe.Observation, at time.Time) bool {
	return kept.ResourceOf(o.Resource).RBACKind() != 0 && o.NotBefore.Before(at)
}

// settle drops what came before the step in force at the horizon, if that step is certain; it returns false if nothing can go.
func (o *object) settle(horizon int64) bool {
	i := stepAt(o.line, horizon) - 1
	if i < 0 || len(o.blinds) > 0 {
		return false
	}
	base := &o.line[i]
	uid, first := base.uid, 0 // of what is or was there; the first version that stays
	switch {
	case base.mayEnd || base.ending:
		return false
	case base.phase == phaseAbsent:
		e := slices.IndexFunc(o.ends, func(e end) bool { return !e.perhaps && e.span() == base.span })
		if e < 0 {
			return false
		}
		uid, first = o.ends[e].uid, len(o.versions)
		for first > 0 && o.versions[first-1].uid != uid {
			first--
		}
	case base.phase == phasePresent && base.rv != 0 && uid != "":
		first = slices.IndexFunc(o.versions, func(v version) bool { return v.rv == base.rv && v.uid == uid })
		for first > 0 && o.versions[first].unchanged {
			first-- // which says what it holds
		}
	default:
		return false
	}
	had, n := o.size(), 0
	var last uint64
	alive := map[string]bool{uid: true}
	o.versions = without(o.versions, func(v version) bool {
		if n++; n <= first && max(v.seen.last.na, v.seen.na) <= base.na {
			if v.uid == uid {
				last = v.rv
			}
			return true
		}
		alive[v.uid] = true
		return false
	})
	over := func(p span) bool { return p.na <= base.nb }
	o.missing, o.shown = without(o.missing, over), without(o.shown, over)
	o.ends = without(o.ends, func(e end) bool { return over(e.span()) && !alive[e.uid] })
	if at, known := o.endOf(uid); known && base.phase == phaseAbsent && last > 0 {
		o.ends[at].rv = last // by it the end has its place among other uids
	}
	return o.size() < had
}
