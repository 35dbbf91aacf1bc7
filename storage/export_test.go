package storage

import (
	"context"
	"testing"
)

// Exec runs a statement as an operator or a crash would; for tests alone.
func (s *Store) Exec(t testing.TB, sql string) {
	t.Helper()
	if err := s.conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
