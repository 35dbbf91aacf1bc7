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

// Strings runs a query of one text column.
func (s *Store) Strings(t testing.TB, sql string) []string {
	t.Helper()
	out, err := collect(context.Background(), s, sql+" AND '%s' != ''", nil, func(v *string) ([]any, func()) { return []any{v}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}
