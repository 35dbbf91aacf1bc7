package codec

import (
	"iter"
	"strings"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// Use is an access as rollups count it: a request, or a check behind requests, of one subject with one set of groups, and what came of it.
type Use struct {
	Subject string
	Groups  []string // sorted, each once
	// Told is false where who asked or what was asked is not told apart: Subject, Groups, or verb and path are Other then. A name that is
	// Other stands for any object of its kind and namespace.
	Told       bool
	Check      string             // empty: the request itself; else the check behind it, see verdict.Implied
	Attributes verdict.Attributes // names and paths as FoldName and FoldPath leave them
	Recorded   verdict.Decision
	Replayed   verdict.Decision
	Outcome    verdict.Outcome // of the request
	Class      string
	Covered    bool  // of a check: it passed without the verb
	Granted    bool  // RBAC grants let it pass, at some time
	Requests   int64 // how many there are
	First      time.Time
	Last       time.Time // with First: bounds, which a correction does not narrow
	Days       []uint16  // on which there are any, as Day counts them, in no order
}

// UseScan reads uses: what columns of accesses and of their counts hold, in the order of Targets.
type UseScan struct {
	u                           Use
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
func (s *UseScan) Use() Use {
	u := s.u
	groups, told := s.sets[s.set]
	u.Groups, u.Told = groups, told && GroupsTold(s.set) && u.Attributes.Path != Other
	u.Attributes.ResourceRequest = u.Attributes.Path == ""
	u.Recorded, u.Replayed, u.Outcome = verdict.DecisionOf(s.recorded), verdict.DecisionOf(s.replayed), verdict.OutcomeOf(s.outcome)
	u.Covered, u.Granted, u.First, u.Last = s.covered != 0, s.granted != 0, FromMicro(s.first), FromMicro(s.last)
	return u
}

// Folded reports whether a name stands for several.
func Folded(name string) bool { return name == Other || len(name) > 0 && name[len(name)-1] == '*' }

// UsesOf visits what rollups count of a judged request, while no cap folds anything. Groups are as recorded.
func UsesOf(row *verdict.Row) iter.Seq[Use] {
	return func(yield func(Use) bool) {
		e, v := row.Event, row.Verdict
		who, at := e.EffectiveUser(), FromMicro(row.Event.RequestReceivedTimestamp.UnixMicro())
		u := Use{Subject: who.Username, Groups: who.Groups, Told: !refusedNobody(who.Username, v), Attributes: v.Attributes,
			Recorded: v.Recorded, Replayed: v.Replayed, Outcome: v.Outcome, Class: v.Class,
			Granted:  len(v.Grants) > 0 || strings.HasPrefix(v.RecordedReason, "RBAC: allowed by "),
			Requests: 1, First: at, Last: at, Days: []uint16{Day(at)}}
		u.fold()
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
			u.fold()
			if !yield(u) {
				return
			}
		}
	}
}

// Untold reports whether a request needed more than its uses tell: its content decides what, as it wrote roles, bindings or
// certificates, or somebody was allowed to act as another who was refused.
func Untold(v *verdict.Verdict) bool {
	if v.Outcome != verdict.OutcomeMatch && v.Outcome != verdict.OutcomeAmbiguous {
		return false
	}
	return v.Recorded == verdict.DecisionForbid && v.Impersonation != nil && v.Impersonation.Replayed == verdict.DecisionAllow ||
		contentDecides(v.Recorded, &v.Attributes)
}

// Untold reports whether requests among the uses may need more than they tell, as their content decides it.
func (u *Use) Untold() bool { return u.Check == "" && contentDecides(u.Recorded, &u.Attributes) }

func contentDecides(recorded verdict.Decision, a *verdict.Attributes) bool {
	return recorded == verdict.DecisionAllow && a.ResourceRequest && (a.Verb == "create" || a.Verb == "update" || a.Verb == "patch") &&
		(a.APIGroup == "rbac.authorization.k8s.io" || a.APIGroup == "certificates.k8s.io")
}

func (u *Use) fold() {
	u.Attributes.Name, u.Attributes.Path = FoldName(u.Attributes.Name), FoldPath(u.Attributes.Path)
}
