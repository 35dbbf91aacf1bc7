package verdict

import (
	"time"
)

// This file holds the types detections and the store exchange: what a rule noted of a
// request, the sums of such notes, and what was found. The store looks into none of the
// names.

// Mark says that a detection rule selects a request. A row carries at most one mark of a
// rule.
type Mark struct {
	// Name is the rule's identifier, and after a slash what the rule wants to know of the
	// request without reading it again: the thresholds it counts for, or MarkFirst.
	Name string
	// Key is a hash of the group the request belongs to.
	Key uint64
}

// MarkFirst ends the name of marks whose keys are looked for in the whole history.
const MarkFirst = "/first"

// MarkSlot is the stretch of time marks are summed over.
const MarkSlot = 10 * time.Minute

// MarkSum sums the marks of one rule on the standing rows of a stretch of request time: a
// MarkSlot, or a UTC day for marks that end with MarkFirst.
type MarkSum struct {
	Cluster, Rule string
	Slot          time.Time // its begin
	Count         int64     // marks
	// Digest differs when the marked rows do. It sums a hash over the rows, modulo 2⁶⁴, so that
	// sums of stretches that adjoin are the sum of both.
	Digest int64
}

// MarkFilter selects standing rows with a mark of a rule.
type MarkFilter struct {
	Cluster, Rule string
	From, To      time.Time // of the request: From inclusive, To exclusive
	// Reads are the properties of requests, by their names in rules, that rows are read for.
	Reads []string
	// Every and Panes, when Panes is not empty, restrict to requests whose key and pane, the
	// number of whole Every since 1970, are listed.
	Every time.Duration
	Panes []Pane
}

// Pane is a part of a window of one group.
type Pane struct {
	Key    uint64
	Number int64 // times Every since 1970
}

// Threshold is how often requests have to count for a rule.
type Threshold struct {
	AtLeast int
	// Distinct, when not empty, are the properties that what is counted follows from: requests
	// that agree in all of them count once.
	Distinct []string
}

// mostValues bounds the values that are told apart; more are counted by requests.
const mostValues = 1000

// ByValue tells whether different values are counted, not requests.
func (t Threshold) ByValue() bool { return len(t.Distinct) > 0 && t.AtLeast <= mostValues }

// PaneCounts are the requests of the panes of one group. Counts has per pane and threshold of
// the rule how many requests count; Values, of one by value, hashes of the values that do, no
// more than it takes.
type PaneCounts struct {
	Key    uint64
	Panes  []int64
	Counts [][]int64
	Values [][][]uint64
}

// Tally counts panes of one group for all thresholds of a rule.
type Tally struct {
	thresholds []Threshold
	counts     []int64
	values     []map[uint64]int // in how many panes
}

// NewTally returns a tally of no panes.
func NewTally(thresholds []Threshold) *Tally {
	t := &Tally{thresholds: thresholds, counts: make([]int64, len(thresholds)), values: make([]map[uint64]int, len(thresholds))}
	for i := range t.values {
		t.values[i] = map[uint64]int{}
	}
	return t
}

// Add counts the i-th pane of a group.
func (t *Tally) Add(g *PaneCounts, i int) {
	for n, threshold := range t.thresholds {
		t.counts[n] += g.Counts[i][n]
		if threshold.ByValue() {
			for _, v := range g.Values[i][n] {
				t.values[n][v]++
			}
		}
	}
}

// Remove takes back what Add counted.
func (t *Tally) Remove(g *PaneCounts, i int) {
	for n, threshold := range t.thresholds {
		t.counts[n] -= g.Counts[i][n]
		if threshold.ByValue() {
			for _, v := range g.Values[i][n] {
				if t.values[n][v]--; t.values[n][v] == 0 {
					delete(t.values[n], v)
				}
			}
		}
	}
}

// Enough tells whether what was counted reaches every threshold.
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

// StoredFinding is a finding as it is kept. Cluster, Rule and ID name it.
type StoredFinding struct {
	Cluster, Rule, ID string
	Severity, Subject string
	AuditID           string    // of its earliest request
	First, Last       time.Time // of its requests
	Count             int64     // requests
	// Span is the begin of the stretch of time it was worked out in.
	Span time.Time
	Body []byte // JSON, as analysis/detect writes it
	// Withdrawn says that the requests that made it up no longer do.
	Withdrawn bool
	Updated   time.Time // orders what is known of it; the newest stands
}

// SpanDone says which marks a rule's findings of a span were worked out from.
type SpanDone struct {
	Cluster, Rule string
	Span          time.Time
	Digest        int64
	Updated       time.Time
}
