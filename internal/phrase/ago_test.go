package phrase

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", time.Second: "just now", 119 * time.Second: "119 s ago", 5 * time.Minute: "5 min ago",
		3 * time.Hour: "3 h ago", 49 * time.Hour: "on 2026-11-18",
	} {
		if got := Ago(now, now.Add(-d)); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
