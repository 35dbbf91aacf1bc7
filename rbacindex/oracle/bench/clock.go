package main

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// cpu returns the CPU time of the process, user and system, garbage collection included:
// other processes on the machine disturb it little.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is what one operation takes.
type cost struct{ ns, allocs, bytes float64 }

// measure runs f, which does count operations, once for every round, and takes the median of
// each figure. prepare comes before every round and is not measured.
func measure(rounds, count int, prepare func(round int), f func()) cost {
	var ns, allocs, bytes []float64
	for r := range rounds {
		if prepare != nil {
			prepare(r)
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpu()
		f()
		took := cpu() - began
		runtime.ReadMemStats(&after)
		ns = append(ns, float64(took)/float64(count))
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/float64(count))
		bytes = append(bytes, float64(after.TotalAlloc-before.TotalAlloc)/float64(count))
	}
	return cost{median(ns), median(allocs), median(bytes)}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
