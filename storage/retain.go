package storage

import (
	"context"
	"fmt"
)

// horizonKey is the entry of meta that holds the last ingest day dropped from events.
const horizonKey = "events_horizon"

// horizon returns the last ingest day (days since 1970) whose events have been dropped; 0
// when none have.
func (s *Store) horizon(ctx context.Context) (uint16, error) {
	var h uint16
	err := s.conn.QueryRow(ctx, "SELECT toUInt16(ifNull(max(toUInt16OrZero(value)), 0)) FROM "+s.table("meta")+" WHERE key = '"+horizonKey+"'").Scan(&h)
	if err != nil {
		return 0, fmt.Errorf("read retention horizon: %w", err)
	}
	return h, nil
}
