package review

// Findings on recorded answers of reviews. The set is closed; verdicts list them beside those
// on identity.
const (
	FindingAnswer = "sar-mismatch"
	FindingToken  = "tokenreview-identity-mismatch"
)

// Finding is a finding with its one-line explanation.
type Finding struct{ Name, Text string }

// Findings returns every finding of this package, in the order in which they are documented.
func Findings() []Finding {
	return []Finding{
		{FindingAnswer, "a review of access was answered otherwise than the policy of that time answers"},
		{FindingToken, "a review of a token found a user whom no authenticator can have produced so"},
	}
}
