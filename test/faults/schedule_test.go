package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// schedule is what happens to an installation. It follows from its seed.
type schedule struct {
	Seed uint64
	// One has everything in one process, which takes the broker along when it dies, as
	// `retrial serve` does. Otherwise receiver, runners and broker live and die apart.
	One   bool
	Steps []step
}

// step is one thing that happens. Which members mean something depends on its kind.
type step struct {
	Kind string
	On   string        `json:",omitempty"` // what a fault waits for
	What string        `json:",omitempty"` // what it does then
	N    int           `json:",omitempty"`
	Per  int           `json:",omitempty"` // partitions of a cluster
	Skip int           `json:",omitempty"` // how many occasions a fault lets pass
	For  time.Duration `json:",omitempty"`
	Seed uint64        `json:",omitempty"`
	Then time.Duration `json:",omitempty"` // the pause after it
}

// Kinds of steps.
const (
	stepPost     = "post"     // a batch of new events; N of them
	stepImport   = "import"   // the same events again through the importer's door
	stepRepeat   = "repeat"   // events that were sent, again, in another order and other batches
	stepBinding  = "binding"  // a write of policy among requests it decides, or that came before it
	stepListing  = "listing"  // the cluster's state, early or late
	stepHuge     = "huge"     // a batch with an event of 10 MiB
	stepGarbage  = "garbage"  // a batch with an entry that is not an event
	stepPoison   = "poison"   // a record in the log that cannot be read
	stepFault    = "fault"    // something breaks at the next exchange of a kind
	stepStore    = "store"    // the store fails all statements of a kind for a while
	stepBroker   = "broker"   // the broker ends, and comes back after a while
	stepGone     = "gone"     // the broker cannot be reached for a while
	stepStop     = "stop"     // a process stands still for a while
	stepKill     = "kill"     // a process is killed
	stepDisk     = "disk"     // the spool's disk is full, or fails, for a while
	stepClock    = "clock"    // the receiver's clock is set
	stepJoin     = "join"     // a second runner joins, or the second leaves
	stepTruncate = "truncate" // when all is consumed, the end of the log is lost
	stepRecreate = "recreate" // when all is consumed, the topic is made anew
	stepLayout   = "layout"   // partitions are added, up to N, and clusters spread over Per of them
)

// draw makes the schedule of a seed.
func draw(seed uint64) schedule {
	rng := rand.New(rand.NewPCG(seed, 0xfa017))
	s := schedule{Seed: seed, One: rng.IntN(2) == 0}
	pause := func() time.Duration {
		switch rng.IntN(4) {
		case 0:
			return 0
		case 1:
			return time.Duration(rng.IntN(5000)) * time.Millisecond
		}
		return time.Duration(rng.IntN(600)) * time.Millisecond
	}
	for range 8 + rng.IntN(12) {
		st := s.step(rng)
		st.Seed, st.Then = uint64(rng.Uint32()), pause()
		s.Steps = append(s.Steps, st)
	}
	s.relayout()
	return s
}

// relayout has the layout change in some of the schedules; all else in them stays as it was drawn.
func (s *schedule) relayout() {
	rng := rand.New(rand.NewPCG(s.Seed, 0x1a707))
	for range max(0, rng.IntN(5)-2) {
		n := eventPartitions + rng.IntN(mostPartitions-eventPartitions+1)
		s.Steps = slices.Insert(s.Steps, rng.IntN(len(s.Steps)), step{Kind: stepLayout, N: n, Per: 1 + rng.IntN(n),
			On: pick(rng, "", "replay"), Seed: uint64(rng.Uint32()), Then: time.Duration(rng.IntN(12_000)) * time.Millisecond})
	}
}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

func (s *schedule) step(rng *rand.Rand) step {
	seconds := func(n int) time.Duration { return time.Duration(1+rng.IntN(n)) * time.Second }
	switch n := rng.IntN(100); {
	case n < 28:
		return step{Kind: stepPost, N: 1 + rng.IntN(30), What: pick(rng, "", "", "skew")}
	case n < 31:
		return step{Kind: stepImport}
	case n < 39:
		return step{Kind: stepRepeat, N: 1 + rng.IntN(3)}
	case n < 47:
		return step{Kind: stepBinding, N: rng.IntN(8)}
	case n < 50:
		return step{Kind: stepListing}
	case n < 51:
		return step{Kind: stepHuge}
	case n < 53:
		return step{Kind: stepGarbage}
	case n < 55:
		return step{Kind: stepPoison}
	case n < 67:
		f := step{Kind: stepFault, Skip: rng.IntN(4), N: rng.IntN(16),
			On: pick(rng, onInsert, onInsert, onInsert, onPolicy, onLetters, onRepair, onLookUp, onQuery)}
		f.What = pick(rng, doRefuse, doCut, doLose, doLose, doCutAnswer, doSlow, doMemory, doDisk, doReadOnly, doPartial, doDie, doDieMid,
			doDieAfter, doStop)
		f.For = seconds(30)
		return f
	case n < 78:
		f := step{Kind: stepFault, Skip: rng.IntN(4), On: pick(rng, onProduce, onProduce, onCommit, onCommit, onCommit, onFetch, onOffsets,
			onGroup)}
		f.What = pick(rng, doRefuse, doCut, doLose, doLose, doCutAnswer, doSlow, doMute, doDie, doDieMid, doDieAfter, doStop)
		f.For = seconds(30)
		return f
	case n < 83:
		return step{Kind: stepStore, On: pick(rng, "", onInsert, onQuery), What: pick(rng, doRefuse, doMemory, doDisk, doReadOnly, doSlow),
			For: seconds(40)}
	case n < 87:
		return step{Kind: stepBroker, What: pick(rng, endClosed, endKilled, endPower, endPower), For: seconds(10)}
	case n < 90:
		f := step{Kind: stepGone, What: pick(rng, doRefuse, doMute), For: seconds(40)}
		if rng.IntN(6) == 0 {
			f.For = 15 * time.Minute
		}
		return f
	case n < 92:
		return step{Kind: stepStop, For: seconds(40)}
	case n < 93:
		return step{Kind: stepDisk, What: pick(rng, diskFull, diskBad), For: seconds(30)}
	case n < 95:
		return step{Kind: stepKill, N: rng.IntN(3), What: pick(rng, endKilled, endPower)}
	case n < 96:
		return step{Kind: stepClock, For: time.Duration(rng.IntN(96)-48) * time.Hour}
	case n < 98:
		return step{Kind: stepJoin}
	case n < 99:
		return step{Kind: stepTruncate, N: rng.IntN(100)}
	}
	return step{Kind: stepRecreate}
}

// String prints the schedule, a step a line, as parse reads it.
func (s schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\"Seed\":%d,\"One\":%t,\"Steps\":[\n", s.Seed, s.One)
	for i, st := range s.Steps {
		line, _ := json.Marshal(st)
		b.WriteString("  ")
		b.Write(line)
		if i < len(s.Steps)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]}")
	return b.String()
}

// shrink drops steps for as long as the schedule still fails, and returns the shortest it
// found within so many runs.
func shrink(s schedule, runs int, fails func(schedule) bool) schedule {
	for size := max(1, len(s.Steps)/2); ; size /= 2 {
		for from := 0; from < len(s.Steps) && runs > 0; {
			less := s
			less.Steps = append(append([]step(nil), s.Steps[:from]...), s.Steps[min(from+size, len(s.Steps)):]...)
			runs--
			if fails(less) {
				s = less
			} else {
				from += size
			}
		}
		if size <= 1 || runs <= 0 {
			return s
		}
	}
}
