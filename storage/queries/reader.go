// Package queries reads the store: every named question, and whatever else is asked of events, verdicts,
// usage, findings and policy. Its [Reader] changes nothing; package storage embeds it in its Store.
package queries

import (
	"github.com/retrial-io/retrial/storage/statement"
)

// Reader answers questions of a store: it reads and changes nothing.
type Reader struct{ at statement.DB }

// New returns the Reader of a database.
func New(at statement.DB) *Reader { return &Reader{at} }
