package verdict

import "time"

// This file holds the types that detections and the store exchange: marks on requests, sums of
// marks, and findings. The names are opaque to the store.

// Mark says that a detection rule selects a request. A row carries at most one mark per rule.
type Mark struct {
	// Name is the rule's identifier and, after a slash, what the rule needs to know of the request
	// without reading it again: the thresholds it counts towards, or MarkFirst.
	Name string
	// Key is a hash of the group the request belongs to.
	Key uint64
}

// MarkFirst is the suffix of the names of marks whose keys are looked up in the whole history.
const MarkFirst = "/first"

// MarkSlot is the length of time over which marks are summed.
const MarkSlot = 10 * time.Minute

// MarkSum sums the marks of one rule on the standing rows of a stretch of request time: a
// MarkSlot, or a UTC day for marks that end with MarkFirst.
type MarkSum struct {
	Cluster, Rule string
	Slot          time.Time // its begin
	Count         int64     // marks
	// Digest changes if the marked rows do. It sums a hash over the rows, modulo 2⁶⁴, so the
	// digests of adjoining stretches add up.
	Digest int64
}

// MarkFilter selects standing rows with a mark of a rule.
type MarkFilter struct {
	Cluster, Rule string
	From, To      time.Time // of the request: From inclusive, To exclusive
	// Reads are the properties to read of each request, by their names in rules.
	Reads []string
	// If Panes is not empty, only requests are selected whose key and pane are listed; a pane is
	// the number of whole Every since 1970.
	Every time.Duration
	Panes []Pane
}

// Pane is a part of a window of one group.
type Pane struct {
	Key    uint64
	Number int64 // times Every since 1970
}

// Threshold is how many requests must count for a rule to fire.
type Threshold struct {
	AtLeast int
	// Distinct, if not empty, are the properties that determine the counted value: requests that
	// agree in all of them count once.
	Distinct []string
}

// mostValues bounds the distinct values that are counted; beyond it requests are counted.
const mostValues = 1000

// ByValue reports whether distinct values are counted rather than requests.
func (t Threshold) ByValue() bool { return len(t.Distinct) > 0 && t.AtLeast <= mostValues }

// PaneCounts are the counts of the panes of one group. Counts has, per pane and threshold of the
// rule, how many requests count; Values has, for a threshold by value, hashes of the values that
// count, at most as many as the threshold needs.
type PaneCounts struct {
	Key    uint64
	Panes  []int64
	Counts [][]int64
	Values [][][]uint64
}

// Tally sums panes of one group for all thresholds of a rule.
type Tally struct {
	thresholds []Threshold
	counts     []int64
	values     []map[uint64]int // in how many panes
}

// NewTally returns an empty tally.
func NewTally(thresholds []Threshold) *Tally {
	t := &Tally{thresholds: thresholds, counts: make([]int64, len(thresholds)), values: make([]map[uint64]int, len(thresholds))}
	for i := range t.values {
		t.values[i] = map[uint64]int{}
	}
	return t
}

// Add counts the i-th pane of a group.
func (t *Tally) Add(g *PaneCounts, i int) { t.count(g, i, 1) }

// Remove undoes Add.
func (t *Tally) Remove(g *PaneCounts, i int) { t.count(g, i, -1) }

func (t *Tally) count(g *PaneCounts, i, sign int) {
	for n, threshold := range t.thresholds {
		t.counts[n] += int64(sign) * g.Counts[i][n]
		if threshold.ByValue() {
			for _, v := range g.Values[i][n] {
				if t.values[n][v] += sign; t.values[n][v] == 0 {
					delete(t.values[n], v)
				}
			}
		}
	}
}

// Enough reports whether every threshold is reached.
func (t *Tally) Enough() bool {
	for n, threshold := range t.thresholds {
		if t.counts[n] < int64(threshold.AtLeast) || threshold.ByValue() && len(t.values[n]) < threshold.AtLeast {
			return false
		}
	}
	return true
}

// KeyTime is when a key was first seen.
type KeyTime struct {
	Key   uint64
	First time.Time
}

// FirstLimits say how many keys that a day sees first are told one by one: the earliest. Of the rest
// of each user Examples are.
type FirstLimits struct {
	User     int // of one user, as it authenticated: not whom it acted as
	Cluster  int // of all users, of those that are within User
	Examples int
}

// FirstSeen is what a day sees first: the keys to be told, examples of the others among them, and how
// many others there are.
type FirstSeen struct {
	Keys []KeyTime
	Rest []FirstRest
}

// FirstRest are keys that are not told one by one. Those of users of whom no key is told are counted
// together.
type FirstRest struct {
	User           string
	Everybody      bool
	Keys, Requests int64     // the requests are of the hour each key is seen first in
	First, Last    time.Time // of the requests
}

// StoredFinding is a stored finding, identified by Cluster, Rule and ID.
type StoredFinding struct {
	Cluster, Rule, ID string
	Severity, Subject string
	AuditID           string    // of its earliest request
	First, Last       time.Time // of its requests
	Count             int64     // requests
	// Span is the start of the stretch of time it was computed in.
	Span time.Time
	Body []byte // JSON, as analysis/detect writes it
	// Withdrawn means that the requests behind it no longer stand.
	Withdrawn bool
	Updated   time.Time // orders versions of a finding; the newest stands
}

// SpanDone records which marks the findings of a rule's span were computed from.
type SpanDone struct {
	Cluster, Rule string
	Span          time.Time
	Digest        int64
	Updated       time.Time
}
