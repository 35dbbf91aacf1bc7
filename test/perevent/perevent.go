// Package perevent has benchmarks of every room report the same figures, so that they can be
// held against each other and against the budgets in docs/bench.md: events/s and MB/s by the
// clock, and CPU (of the whole process, by the operating system, garbage collection included)
// and allocations an event.
package perevent

import (
	"runtime"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/procstat"
)

// Meter measures a stretch of a benchmark.
type Meter struct {
	b       *testing.B
	began   time.Time
	cpu     time.Duration
	mallocs uint64
}

// CPU is the user and system time this process has used. It is 0 where the system does not
// account for it.
func CPU() time.Duration {
	return procstat.Own()
}

// Start begins to measure; what was done before does not count.
func Start(b *testing.B) *Meter {
	b.Helper()
	b.ResetTimer()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return &Meter{b: b, began: time.Now(), cpu: CPU(), mallocs: mem.Mallocs}
}

// Report ends measuring and reports the figures of so many events, of so many bytes together
// as JSON; with 0 bytes there is no MB/s.
func (m *Meter) Report(events int, bytes int64) {
	used, took := CPU()-m.cpu, time.Since(m.began).Seconds()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	n := float64(events)
	m.b.ReportMetric(n/took, "events/s")
	if bytes > 0 {
		m.b.ReportMetric(float64(bytes)/1e6/took, "MB/s")
	}
	m.b.ReportMetric(float64(used.Nanoseconds())/1e3/n, "cpu-µs/event")
	m.b.ReportMetric(float64(mem.Mallocs-m.mallocs)/n, "allocs/event")
}
