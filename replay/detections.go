package replay

import "time"

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
	// NoBodies leaves request and response objects out of the rows: most of what there is to
	// read.
	NoBodies bool
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

// PaneCounts are the requests of the panes of one group; Counts has per pane how many
// requests count for each threshold of the rule.
type PaneCounts struct {
	Key    uint64
	Panes  []int64
	Counts [][]int64
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
