// Package heap paces the garbage collector of a server by the size of its live heap.
//
// Go collects when the heap has doubled. While a server's live heap is small and events
// stream through it, that is several times a second and costs a tenth of all processor time;
// once the heap is large, doubling it is all one wants to spend. [Pace] lets the heap grow by a
// fixed amount of memory however small it is, and by no more than Go's own rule beyond that.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/retrial-io/retrial/internal/sleep"
)

// goPercent is Go's own setting: collect when the heap has doubled.
const goPercent = 100

// interval is how often the pace is adjusted to the heap.
const interval = time.Second

// Pace lets the heap, until ctx ends, grow by headroom bytes before it is collected, or double if
// that is more. It does nothing if GOGC or GOMEMLIMIT is set in the environment: these take
// precedence. A process has one heap, so it makes at most one call.
func Pace(ctx context.Context, headroom uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := goPercent
	defer debug.SetGCPercent(debug.SetGCPercent(set))
	for ended := false; !ended; ended = sleep.For(ctx, interval) != nil {
		metrics.Read(live)
		// Setting it stops the world for a moment, which small changes are not worth.
		if want := percent(live[0].Value.Uint64(), headroom); want > set+set/8 || want < set-set/8 {
			debug.SetGCPercent(want)
			set = want
		}
	}
}

// percent returns the GOGC with which a heap of live bytes grows by the headroom.
func percent(live, headroom uint64) int {
	// A heap that was never collected, or holds next to nothing, does not predict the next.
	const least = 16 << 20
	return int(max(goPercent, min(headroom*100/max(live, least), 100*100)))
}
