package runner

import "time"

// slack is how long before the oldest stored request of a cluster its policy is kept: what an event's judgement asks about earlier, and
// policy that comes a little late, need nothing loaded.
const slack = 24 * time.Hour

// margin is how long before a request, or another moment that is asked about, policy may matter.
const margin = 2 * time.Hour

// forgetStep is by how much the horizon of a cluster moves at least: what is forgotten costs
// that everything else is looked at.
const forgetStep = 24 * time.Hour

// needs says how far back somebody needs the state of a cluster, by partition.
type needs struct {
	rows  map[int32]time.Time // the oldest request that is stored
	under map[int32]time.Time // the oldest that is being judged
	limit time.Time           // rows from before are not judged again
}

// store notes that rows are stored, and that nothing is being judged.
func (n *needs) store(partition int32, oldest time.Time) {
	if was, ok := n.rows[partition]; ok && was.Before(oldest) {
		oldest = was
	}
	n.set(partition, oldest)
	delete(n.under, partition)
}

// set notes which stored row of a partition is the oldest.
func (n *needs) set(partition int32, oldest time.Time) {
	if n.rows == nil {
		n.rows = map[int32]time.Time{}
	}
	n.rows[partition] = oldest
}

// judge notes that requests are being judged.
func (n *needs) judge(partition int32, oldest time.Time) {
	if n.under == nil {
		n.under = map[int32]time.Time{}
	}
	if was, ok := n.under[partition]; !ok || oldest.Before(was) {
		n.under[partition] = oldest
	}
}

// leave forgets a partition.
func (n *needs) leave(partition int32) {
	delete(n.rows, partition)
	delete(n.under, partition)
}

// horizon returns the moment before which nobody needs policy, zero if it is all needed.
func (n *needs) horizon() time.Time {
	var oldest time.Time
	for _, list := range [...]map[int32]time.Time{n.rows, n.under} {
		for _, at := range list {
			if at.IsZero() {
				return at
			}
			if oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	if oldest.IsZero() {
		return oldest
	}
	if oldest = oldest.Add(-slack); oldest.Before(n.limit) {
		oldest = n.limit
	}
	return n.bound(oldest)
}

// bound returns a moment, or an earlier one if what is being judged needs that.
func (n *needs) bound(at time.Time) time.Time {
	for _, from := range n.under {
		if from = back(from); from.Before(at) {
			at = from
		}
	}
	return at
}

// back returns since when policy matters for a request.
func back(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(-margin)
}
