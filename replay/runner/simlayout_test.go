package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// changeLayouts changes the layout while the schedule goes on: partitions are added, barriers appended one by one, and then it is put in
// force, unless whoever does that is interrupted. Some producers notice late.
func (w *simWorld) changeLayouts(working *sync.WaitGroup) {
	if w.plan.layouts == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(w.plan.seed, 3))
	for i := range w.expected.deliveries {
		if d := &w.expected.deliveries[i]; rng.IntN(3) == 0 {
			d.missed = 1 + rng.IntN(2)
		}
	}
	working.Go(func() {
		for range w.plan.layouts {
			time.Sleep(time.Duration(rng.IntN(6000)) * time.Millisecond)
			w.log.mu.Lock()
			epoch, n := w.log.layouts[len(w.log.layouts)-1].Epoch, w.log.counts[stream.TopicEvents]
			w.log.mu.Unlock()
			n += rng.IntN(3)
			w.log.grow(n)
			l := stream.Layout{Epoch: epoch + 1, Partitions: int32(n), PerCluster: int32(1 + rng.IntN(n))}
			until := n
			if rng.IntN(3) == 0 {
				until = rng.IntN(n)
			}
			for _, p := range rng.Perm(n)[:until] {
				w.log.announce(l, int32(p))
				time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			}
			if until == n {
				w.log.use(l)
			}
		}
	})
}

// kept returns the records of audit.events that are stored where they stand, in the order in which any two of one request are, and what
// stands elsewhere alone. Before the first barrier that is all; behind it, what stands in its own partition by the last barrier.
func (w *simWorld) kept() (records []stream.Record, lost []string) {
	type standing struct {
		stream.Record
		by stream.Layout
	}
	var all []standing
	elsewhere, here := map[event.Hash128]event.Position{}, map[event.Hash128]bool{}
	for _, p := range w.log.partitions(stream.TopicEvents) {
		var by stream.Layout
		for _, rec := range w.log.logs[place{stream.TopicEvents, p}] {
			if l, ok := stream.DecodeLayout(&rec); ok {
				if l.Compare(by) > 0 {
					by = l
				}
				continue
			}
			row, err := decodeRecord(new(event.Decoder), &rec, simEpoch)
			if misplaced(by, &rec) {
				if err == nil {
					elsewhere[row.EventKey] = row.Position
				}
				continue
			}
			if err == nil {
				here[row.EventKey] = true
			}
			all = append(all, standing{rec, by})
		}
	}
	for key, at := range elsewhere {
		if !here[key] {
			lost = append(lost, fmt.Sprintf("the event at %v was not sent on to its partition", at))
		}
	}
	slices.SortStableFunc(all, func(a, b standing) int { return a.by.Compare(b.by) })
	for _, s := range all {
		records = append(records, s.Record)
	}
	return records, lost
}

// While the layout changes, a process crashes after every single step.
func TestCrashAtEveryStepOfALayout(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 5
	}
	for _, seed := range []uint64{5, 12} {
		plan := simPlan{seed: seed, faults: seed == 12, events: 12, layouts: 2, crashAt: []int{1 << 30}}
		_, steps := simulate(t, plan)
		for at := 1; at <= steps; at += stride {
			plan.crashAt = []int{at}
			if violations, _ := simulate(t, plan); len(violations) > 0 {
				t.Fatalf("seed %d, crash at step %d of %d:\n%s", seed, at, steps, violations)
			}
		}
		t.Logf("seed %d: %d steps", seed, steps)
	}
}
