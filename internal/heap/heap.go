// Package heap paces the garbage collector of a server by what its heap holds.
//
// Go collects when the heap has doubled. While a server's live heap is small and events
// stream through it that is several times a second, and a tenth of all processor time; once
// it is large, doubling is all one wants to pay. [Pace] lets the heap grow by the same
// amount of memory however small what is live, and by no more than Go's own rule beyond it.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// goPercent is Go's own setting: collect when the heap has doubled.
const goPercent = 100

// interval is how often the pace follows the heap.
const interval = time.Second

// Pace sees to it, until ctx ends, that the heap may grow by so many bytes before it is
// collected, or double if that is more. It does nothing when GOGC or GOMEMLIMIT is set in
// the environment: who sets them knows better. There is one heap in a process, and so at most
// one call.
func Pace(ctx context.Context, headroom uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := goPercent
	defer debug.SetGCPercent(debug.SetGCPercent(set))
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		metrics.Read(live)
		// Setting it stops the world for a moment: small changes are not worth that.
		if want := percent(live[0].Value.Uint64(), headroom); want > set+set/8 || want < set-set/8 {
			debug.SetGCPercent(want)
			set = want
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// percent returns the GOGC with which a heap that was live after the last collection grows by
// the headroom.
func percent(live, headroom uint64) int {
	// A heap that was never collected, or holds next to nothing, says nothing of the next.
	const least = 16 << 20
	return int(max(goPercent, min(headroom*100/max(live, least), 100*100)))
}
