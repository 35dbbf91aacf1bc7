package codec

import (
	"iter"

	"github.com/retrial-io/retrial/verdict"
)

// UseScan reads uses: what columns of accesses and of their counts hold, in the order of Targets.
type UseScan struct {
	u                           verdict.Use
	sets                        map[uint64][]string
	set                         uint64
	outcome, recorded, replayed string
	covered, granted            uint8
	first, last                 int64
	to                          []any
}

// NewUseScan returns a scan; sets are the groups by the keys of their sets.
func NewUseScan(sets map[uint64][]string) *UseScan {
	s := &UseScan{sets: sets}
	u, a := &s.u, &s.u.Attributes
	s.to = []any{&u.Subject, &s.set, &a.Verb, &a.APIGroup, &a.Resource, &a.Subresource, &a.Namespace, &a.Name, &a.Path,
		&u.Check, &s.recorded, &s.replayed, &s.outcome, &u.Class, &s.covered, &s.granted, &u.Requests, &s.first, &s.last, &u.Days}
	return s
}

// Targets returns where the next use goes: subject, key of the set of groups, verb, API group, resource, subresource, namespace, name,
// path, check, recorded, replayed, outcome, class, covered, granted, count, first and last in microseconds, days.
func (s *UseScan) Targets() []any {
	s.u.Days = nil
	return s.to
}

// Use returns what was read.
func (s *UseScan) Use() verdict.Use {
	u := s.u
	groups, told := s.sets[s.set]
	u.Groups, u.Told = groups, told && GroupsTold(s.set) && u.Attributes.Path != Other
	u.Attributes.ResourceRequest = u.Attributes.Path == ""
	u.Recorded, u.Replayed, u.Outcome = verdict.DecisionOf(s.recorded), verdict.DecisionOf(s.replayed), verdict.OutcomeOf(s.outcome)
	u.Covered, u.Granted, u.First, u.Last = s.covered != 0, s.granted != 0, FromMicro(s.first), FromMicro(s.last)
	return u
}

// UsesOf visits what rollups count of a judged request, while no cap folds anything. Groups are as recorded.
func UsesOf(row *verdict.Row) iter.Seq[verdict.Use] {
	return func(yield func(verdict.Use) bool) {
		e, v := row.Event, row.Verdict
		who, at := e.EffectiveUser(), FromMicro(row.Event.RequestReceivedTimestamp.UnixMicro())
		u := verdict.Use{Subject: who.Username, Groups: who.Groups, Told: !refusedNobody(who.Username, v), Attributes: v.Attributes,
			Recorded: v.Recorded, Replayed: v.Replayed, Outcome: v.Outcome, Class: v.Class,
			Granted:  len(v.Grants) > 0 || v.RecordedByRBAC(),
			Requests: 1, First: at, Last: at, Days: []uint16{Day(at)}}
		fold(&u)
		if !yield(u) || v.Recorded == verdict.DecisionForbid { // refused, it came to none of its checks
			return
		}
		for i := range v.Implied {
			c := &v.Implied[i]
			if c.Attributes.Verb == "" {
				continue
			}
			u.Subject, u.Groups = who.Username, who.Groups
			if c.ByRequestor() {
				u.Subject, u.Groups = e.User.Username, e.User.Groups
			}
			u.Check, u.Attributes, u.Recorded, u.Replayed, u.Covered = c.Check, c.Attributes, c.Recorded, c.Replayed, c.Covered
			u.Granted = len(c.Grants) > 0
			fold(&u)
			if !yield(u) {
				return
			}
		}
	}
}

func fold(u *verdict.Use) {
	u.Attributes.Name, u.Attributes.Path = FoldName(u.Attributes.Name), FoldPath(u.Attributes.Path)
}
