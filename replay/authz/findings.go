package authz

// Findings on what is recorded of the authorizers. The set is closed; verdicts list them
// beside the findings on identity of package authn.
const (
	FindingMastersAsked = "masters-not-shortcut"
	FindingUnrecorded   = "authz-annotation-missing"
	FindingVersion      = "version-differs"
)

// Finding is a finding with its one-line explanation.
type Finding struct{ Name, Text string }

// Findings returns every finding of this package, in the order in which they are documented.
func Findings() []Finding {
	return []Finding{
		{FindingMastersAsked, "the group system:masters is let through before RBAC is asked, and the record names an RBAC grant"},
		{FindingUnrecorded, "the request succeeded and no authorization is recorded: authorization is off, or the annotations are gone"},
		{FindingVersion, "the apiserver's own requests show another version of Kubernetes than its configuration says"},
	}
}
