// Package heap paces the garbage collector of a server by the size of its live heap and by how fast it allocates.
//
// Go collects when the heap has doubled. While a server's live heap is small and events
// stream through it, that is several times a second and costs a tenth of all processor time;
// once the heap is large, doubling it is all one wants to spend. [Pace] lets the heap grow by what
// is allocated in some seconds, within bounds, however small it is, and beyond that by nearly as
// much as Go's own rule: a server with little to do takes little memory.
package heap

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// interval is how often the pace is adjusted to the heap, and at every collection: a block of
// events falls into each where these come steadily.
const interval = 2 * time.Second

// spacing is how far apart collections are, as far as the headroom allows: a multiple of the interval.
const spacing = 3 * interval

// least is the smallest headroom: below it, collections of a small heap would be frequent and save nothing.
const least = 32 << 20

// Pace lets the heap, until ctx ends, grow before it is collected by what is allocated in some
// seconds, headroom bytes at most, or nearly double if that is more. It does nothing if GOGC or
// GOMEMLIMIT is set in the environment: these take precedence. A process has one heap, so it makes
// at most one call.
func Pace(ctx context.Context, headroom uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	collected := afterCollections(ctx)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	set := 100 // Go's own: collect when the heap has doubled
	defer debug.SetGCPercent(debug.SetGCPercent(set))
	p := pace{most: headroom}
	for turns, ended := false, false; !ended; {
		metrics.Read(sample)
		if turns {
			p.turn(sample[1].Value.Uint64())
		}
		room := p.headroom(sample[1].Value.Uint64())
		// Setting it stops the world for a moment, which small changes are not worth.
		if want := percent(sample[0].Value.Uint64(), room); want > set+set/8 || want < set-set/8 {
			debug.SetGCPercent(want)
			set = want
		}
		turns = false
		select {
		case <-ctx.Done():
			ended = true
		case <-collected:
		case <-tick.C:
			turns = true
		}
	}
}

// pace is how fast the process allocates.
type pace struct {
	most    uint64 // bytes of headroom
	allowed uint64 // bytes of headroom in this interval
	begun   bool
	began   uint64                       // bytes allocated when this interval began
	earlier [spacing/interval - 1]uint64 // bytes that the intervals before allocated, the last one first
}

// headroom returns by how much the heap may grow, now that so many bytes have been allocated: what was in the last intervals, this one
// included, so that a server whose blocks are as far apart as collections has room for one. It at most doubles from one interval to the
// next: a burst is collected a few times more, and takes that much less memory unless it goes on.
func (p *pace) headroom(allocated uint64) uint64 {
	if !p.begun {
		p.begun, p.began, p.allowed = true, allocated, 2*least
	}
	sum := allocated - p.began
	for _, bytes := range p.earlier {
		sum += bytes
	}
	return min(max(sum, least), p.allowed, p.most)
}

// turn begins another interval.
func (p *pace) turn(allocated uint64) {
	p.allowed = 2 * p.headroom(allocated)
	copy(p.earlier[1:], p.earlier[:])
	p.earlier[0], p.began = allocated-p.began, allocated
}

// afterCollections returns a channel that has an element after a collection, until ctx ends.
func afterCollections(ctx context.Context) <-chan struct{} {
	collected := make(chan struct{}, 1)
	var arm func()
	arm = func() {
		sentinel := new([16]byte) // not of the allocator for tiny objects, which live as long as their neighbours
		runtime.AddCleanup(sentinel, func(struct{}) {
			if ctx.Err() != nil {
				return
			}
			select {
			case collected <- struct{}{}:
			default:
			}
			arm()
		}, struct{}{})
	}
	arm()
	return collected
}

// few is how much of a live heap does not count: a smaller one may be collected before it has doubled.
const few = 64 << 20

// percent returns the GOGC with which a heap of live bytes grows by the headroom, or by what it has beyond a few: marking what lives costs
// a second for each gigabyte or two.
func percent(live, headroom uint64) int {
	// A heap that was never collected, or holds next to nothing, does not predict the next.
	const small = 16 << 20
	live = max(live, small)
	return int(min(max(headroom, live-min(live, few))*100/live, 100*100))
}
