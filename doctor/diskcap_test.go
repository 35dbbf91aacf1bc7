package doctor

import (
	"testing"
)

// TestCapOf: a store has what it uses and what is free, less a rest; on a disk that others filled
// it gives up room, and its newest day is left by whoever sheds.
func TestCapOf(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name                    string
		used, free, total, want int64
	}{
		{"a large disk", 10 * gib, 90 * gib, 200 * gib, 96 * gib},
		{"a small disk", 2 * gib, 8 * gib, 20 * gib, 9 * gib},
		{"just the rest is free", 50 * gib, 4 * gib, 100 * gib, 50 * gib},
		{"less than the rest is free", 50 * gib, 1 * gib, 100 * gib, 47 * gib},
		{"filled by others", 1 * gib, 0, 100 * gib, 1},
	} {
		if got := capOf(c.used, c.free, c.total); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
