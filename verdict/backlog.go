package verdict

// Backlog is how far the runner is behind, in records, as far as it knows locally.
type Backlog struct {
	Events      int64 // of the owned partitions, not settled
	Policy      int64 // not applied
	DeadLetters int64 // of the owned partitions, not stored
	Corrections int64 // owned partitions with policy changes to process
}
