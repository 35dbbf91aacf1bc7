package verdict

// Decision is an authorization outcome, recorded or replayed. The zero value is "none", so a
// forgotten assignment never reads as an allow.
type Decision uint8

// Decisions.
const (
	DecisionNone   Decision = iota // no decision recorded, or none could be reached
	DecisionAllow                  // an authorizer allowed it
	DecisionForbid                 // one refused it, or none allowed it
	DecisionError                  // an authorizer failed and none allowed it: 500, and no decision
)

// String returns "none", "allow", "forbid" or "error"; allow and forbid are the audit
// annotation's own words.
func (d Decision) String() string {
	switch d {
	case DecisionAllow:
		return "allow"
	case DecisionForbid:
		return "forbid"
	case DecisionError:
		return "error"
	}
	return "none"
}
