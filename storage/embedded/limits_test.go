package embedded

import "testing"

func TestUsualMemory(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ process, want int64 }{
		{0, 1536 * mib}, {64 << 10 * mib, 1536 * mib}, {4096 * mib, 1024 * mib}, {1024 * mib, 512 * mib},
	} {
		if got := usualMemory(c.process); got != c.want {
			t.Errorf("a process with %d MiB has an engine of %d, want %d", c.process/mib, got/mib, c.want/mib)
		}
	}
}
