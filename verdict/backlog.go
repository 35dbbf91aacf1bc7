package verdict

// Backlog is how far the runner is behind, in records, as far as it knows without asking
// anybody.
type Backlog struct {
	Events      int64 // of the owned partitions, not settled
	Policy      int64 // not applied
	DeadLetters int64 // of the owned partitions, not stored
	Corrections int64 // owned partitions that have changes of policy to look at
}
