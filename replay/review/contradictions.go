package review

// Contradictions on recorded answers of reviews. The set is closed; verdicts list them beside those
// on identity.
const (
	ContradictionAnswer = "sar-mismatch"
	ContradictionToken  = "tokenreview-identity-mismatch"
)

// Contradiction is one of them with its one-line explanation.
type Contradiction struct{ Name, Text string }

// Contradictions returns every contradiction of this package, in the order in which they are documented.
func Contradictions() []Contradiction {
	return []Contradiction{
		{ContradictionAnswer, "a review of access was answered otherwise than the policy of that time answers"},
		{ContradictionToken, "a review of a token found a user whom no authenticator can have produced so"},
	}
}
