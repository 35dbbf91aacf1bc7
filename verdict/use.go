package verdict

import (
	"strings"
	"time"
)

// Other stands for what is not counted individually: as the name of an access, for any object of its kind and namespace; as verb and path,
// for anything. No method or path is spelled so.
const Other = "(other)"

// Use is an access as rollups count it: a request, or a check behind requests, of one subject with one set of groups, and what came of it.
type Use struct {
	Subject string
	Groups  []string // sorted, each once
	// Told is false where who asked or what was asked is not told apart: Subject, Groups, or verb and path are Other then. A name that is
	// Other stands for any object of its kind and namespace.
	Told       bool
	Check      string     // empty: the request itself; else the check behind it, see Implied
	Attributes Attributes // names and paths without their generated part or end, which are * then
	Recorded   Decision
	Replayed   Decision
	Outcome    Outcome // of the request
	Class      string
	Covered    bool  // of a check: it passed without the verb
	Granted    bool  // RBAC grants let it pass, at some time
	Requests   int64 // how many there are
	First      time.Time
	Last       time.Time // with First: bounds, which a correction does not narrow
	Days       []uint16  // on which there are any, days since 1970 in UTC, in no order
}

// Folded reports whether a name stands for several.
func Folded(name string) bool { return name == Other || len(name) > 0 && name[len(name)-1] == '*' }

// RecordedByRBAC reports whether the record says that RBAC allowed the request.
func (v *Verdict) RecordedByRBAC() bool {
	return strings.HasPrefix(v.RecordedReason, "RBAC: allowed by ")
}

// Untold reports whether a request needed more than its uses tell: its content decides what, as it wrote roles, bindings or
// certificates, or somebody was allowed to act as another who was refused.
func (v *Verdict) Untold() bool {
	if v.Outcome != OutcomeMatch && v.Outcome != OutcomeAmbiguous {
		return false
	}
	return v.Recorded == DecisionForbid && v.Impersonation != nil && v.Impersonation.Replayed == DecisionAllow ||
		contentDecides(v.Recorded, &v.Attributes)
}

// Untold reports whether requests among the uses may need more than they tell, as their content decides it.
func (u *Use) Untold() bool { return u.Check == "" && contentDecides(u.Recorded, &u.Attributes) }

func contentDecides(recorded Decision, a *Attributes) bool {
	return recorded == DecisionAllow && a.ResourceRequest && (a.Verb == "create" || a.Verb == "update" || a.Verb == "patch") &&
		(a.APIGroup == "rbac.authorization.k8s.io" || a.APIGroup == "certificates.k8s.io")
}
