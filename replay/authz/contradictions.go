package authz

// Contradictions on what is recorded of the authorizers. The set is closed; verdicts list them
// beside the contradictions on identity of package authn.
const (
	ContradictionMastersAsked = "masters-not-shortcut"
	ContradictionUnrecorded   = "authz-annotation-missing"
	ContradictionVersion      = "version-differs"
)

// Contradiction is one of them with its one-line explanation.
type Contradiction struct{ Name, Text string }

// Contradictions returns every contradiction of this package, in the order in which they are documented.
func Contradictions() []Contradiction {
	return []Contradiction{
		{ContradictionMastersAsked, "the group system:masters is let through before RBAC is asked, and the record names an RBAC grant"},
		{ContradictionUnrecorded,
			"the request succeeded and no authorization is recorded: authorization is off, or the annotations are gone"},
		{ContradictionVersion, "the apiserver's own requests show another version of Kubernetes than its configuration says"},
	}
}
