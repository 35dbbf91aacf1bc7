package faults

import (
	"fmt"
	"testing"
	"time"
)

// named is a schedule that is written down rather than drawn.
type named struct {
	name string
	schedule
	short bool // in the short set
}

// steered returns the schedules that leave nothing to chance: a kill at every step of the
// protocol, in both ways to run the product, and the constellations each safeguard is for.
func steered() (out []named) {
	steps := []struct {
		on    string
		short bool
	}{{onInsert, true}, {onCommit, true}, {onLookUp, false}, {onPolicy, true}, {onLetters, false}, {onRepair, true}, {onQuery, false},
		{onProduce, true}, {onFetch, false}, {onOffsets, false}}
	for _, one := range []bool{true, false} {
		where := "apart"
		if one {
			where = "one"
		}
		for _, at := range steps {
			for _, what := range []string{doDie, doDieMid, doDieAfter} {
				s := schedule{Seed: uint64(len(out)), One: one, Steps: []step{
					{Kind: stepListing, Seed: 1},
					{Kind: stepPost, N: 12, Seed: 2, Then: 2 * time.Second},
					{Kind: stepFault, On: at.on, What: what, Seed: 3},
					{Kind: stepBinding, N: 6, Seed: 4},
					{Kind: stepPost, N: 12, Seed: 5},
					{Kind: stepPoison, Seed: 6}, {Kind: stepGarbage, Seed: 7, Then: time.Second},
					{Kind: stepRepeat, N: 2, Seed: 8, Then: 10 * time.Second},
				}}
				if at.on == onRepair { // there is something to repair
					s.Steps[2].Seed = 30
					s.Steps = append(s.Steps[:2:2], append([]step{{Kind: stepFault, On: onInsert, What: doPartial, Seed: 31}},
						s.Steps[2:]...)...)
				}
				out = append(out, named{fmt.Sprintf("kill/%s/%s/%s", where, at.on, what), s,
					at.short && (what == doDieMid || what == doDieAfter && !one)})
			}
		}
	}
	// Rows are counted, and something happens at one of the statements: the process dies, or goes on.
	for _, what := range []string{doDie, doDieAfter, doLose, doRefuse} {
		for _, skip := range []int{1, 5} { // the first says that counting begins
			out = append(out, named{fmt.Sprintf("count/%s/%d", what, skip), schedule{Seed: uint64(len(out)), One: true, Steps: []step{
				{Kind: stepListing, Seed: 1},
				{Kind: stepPost, N: 12, Seed: 2, Then: 40 * time.Second},
				{Kind: stepFault, On: onRepair, What: what, Skip: skip, Seed: 3},
				{Kind: stepPost, N: 12, Seed: 4, Then: 50 * time.Second},
				{Kind: stepPost, N: 12, Seed: 5, Then: 50 * time.Second},
			}}, skip == 5})
		}
	}
	wide := func(n int) (list []step) { // enough events for every partition to have a block under way
		for i := range n {
			list = append(list, step{Kind: stepPost, N: 20, Seed: 100 + uint64(i), Then: 20 * time.Millisecond})
		}
		return list
	}
	add := func(name string, short, one bool, steps ...step) {
		out = append(out, named{name, schedule{Seed: uint64(len(out)), One: one, Steps: steps}, short})
	}
	// A runner is stopped with its block on the way; another one takes the partition over and
	// stores the block; the first goes on and sends it as well.
	add("stopped-owner-comes-back", true, false, append([]step{{Kind: stepJoin, Then: 30 * time.Second},
		{Kind: stepFault, On: onInsert, What: doStop, For: 50 * time.Second, Seed: 1}}, append(wide(2), step{Kind: stepPost, N: 1, Seed: 9,
		Then: 2 * time.Minute})...)...)
	add("stopped-owner-commits", false, false, append([]step{{Kind: stepJoin, Then: 30 * time.Second},
		{Kind: stepFault, On: onCommit, What: doStop, For: 50 * time.Second, Seed: 1}}, append(wide(2), step{Kind: stepPost, N: 1, Seed: 9,
		Then: 2 * time.Minute})...)...)
	// Policy comes after the requests it decides, and the process dies when it begins to
	// correct them.
	for _, one := range []bool{true, false} {
		add(fmt.Sprint("late-policy-and-kill/", map[bool]string{true: "one", false: "apart"}[one]), one, one,
			step{Kind: stepPost, N: 25, Seed: 1, Then: 3 * time.Second},
			step{Kind: stepPost, N: 25, Seed: 11, Then: 3 * time.Second},
			step{Kind: stepFault, On: onQuery, What: doDie, Seed: 2},
			step{Kind: stepListing, Seed: 1}, step{Kind: stepListing, Seed: 11},
			step{Kind: stepBinding, N: 1, Seed: 3}, step{Kind: stepBinding, N: 1, Seed: 4, Then: time.Second},
			step{Kind: stepBinding, N: 1, Seed: 5}, step{Kind: stepBinding, N: 1, Seed: 6, Then: 20 * time.Second})
	}
	// The lights go out.
	for _, one := range []bool{true, false} {
		add(fmt.Sprint("power/", map[bool]string{true: "one", false: "apart"}[one]), one, one, append(wide(3),
			step{Kind: stepBroker, What: endPower, Seed: 1, Then: 20 * time.Second}, step{Kind: stepPost, N: 9, Seed: 2},
			step{Kind: stepBroker, What: endPower, Seed: 3, Then: 20 * time.Second}, step{Kind: stepRepeat, N: 3, Seed: 4,
				Then: 5 * time.Second})...)
	}
	// The broker is away, and then the receiver's lights go out, or the receiver is killed.
	for _, end := range []string{endPower, endKilled} {
		add("spooled/"+end, end == endPower, false, append([]step{{Kind: stepPost, N: 5, Seed: 1, Then: 2 * time.Second},
			{Kind: stepGone, What: doRefuse, For: 50 * time.Second, Seed: 2, Then: time.Second}}, append(wide(4),
			step{Kind: stepPost, N: 9, Seed: 5, Then: 3 * time.Second}, step{Kind: stepKill, On: "ingest", What: end, N: 1, Seed: 3,
				Then: 5 * time.Second}, step{Kind: stepPost, N: 9, Seed: 6, Then: 70 * time.Second})...)...)
	}
	// Neither the broker nor the spool's disk takes anything: nothing may be acknowledged.
	for _, how := range []string{diskFull, diskBad} {
		add("nowhere-to-go/"+how, how == diskFull, false, append([]step{{Kind: stepPost, N: 5, Seed: 1, Then: 2 * time.Second},
			{Kind: stepGone, What: doRefuse, For: 80 * time.Second, Seed: 2},
			{Kind: stepDisk, What: how, For: 80 * time.Second, Seed: 3}}, append(wide(3), step{Kind: stepPost, N: 9, Seed: 5,
			Then: 90 * time.Second}, step{Kind: stepRepeat, N: 2, Seed: 6, Then: 5 * time.Second})...)...)
	}
	add("broker-gone-for-a-quarter-of-an-hour", true, false, append(wide(1),
		step{Kind: stepGone, What: doRefuse, For: 15 * time.Minute, Seed: 1, Then: time.Second}, step{Kind: stepRepeat, N: 2, Seed: 2,
			Then: time.Minute})...)
	add("broker-half-open-for-a-quarter-of-an-hour", false, false, append(wide(1),
		step{Kind: stepGone, What: doMute, For: 15 * time.Minute, Seed: 1, Then: time.Second}, step{Kind: stepRepeat, N: 2, Seed: 2,
			Then: time.Minute})...)
	for _, one := range []bool{true, false} {
		where := map[bool]string{true: "one", false: "apart"}[one]
		add("log-truncated/"+where, false, one, append(wide(3), step{Kind: stepTruncate, N: 30, Seed: 1}, step{Kind: stepPost, N: 30,
			Seed: 2, Then: time.Second}, step{Kind: stepRepeat, N: 2, Seed: 3, Then: time.Second})...)
		add("topic-made-anew/"+where, one, one, append(wide(3), step{Kind: stepRecreate, Seed: 1}, step{Kind: stepPost, N: 30, Seed: 2,
			Then: time.Second}, step{Kind: stepRepeat, N: 2, Seed: 3, Then: time.Second})...)
		add("store-out-for-minutes/"+where, false, one, append([]step{{Kind: stepStore, What: doRefuse, For: 3 * time.Minute, Seed: 1}},
			append(wide(4), step{Kind: stepRepeat, N: 2, Seed: 2, Then: 4 * time.Minute})...)...)
		add("disk-of-the-store-full/"+where, false, one, append([]step{{Kind: stepStore, What: doDisk, For: 3 * time.Minute, Seed: 1}},
			append(wide(4), step{Kind: stepRepeat, N: 2, Seed: 2, Then: 4 * time.Minute})...)...)
	}
	// A topic made anew gets records at the offsets of others, block by block: long enough for
	// the store to trust its memory of blocks again, and to take new ones for repetitions.
	alone := func(seed uint64) (list []step) {
		for i := range uint64(30) {
			list = append(list, step{Kind: stepPost, N: 1, Seed: seed + i, Then: 2 * time.Second})
		}
		return list
	}
	add("blocks-made-anew/apart", false, false, append(append(alone(100), step{Kind: stepRecreate, Seed: 1}), alone(200)...)...)
	// A log that lost its end grows past what was consumed before its consumers, who are slow to
	// join, look.
	regrown := append(wide(3), step{Kind: stepTruncate, N: 61, Seed: 1})
	for range 6 {
		regrown = append(regrown, step{Kind: stepFault, On: onGroup, What: doSlow, For: 5 * time.Second, Seed: 2})
	}
	add("log-regrown/apart", true, false, append(regrown, step{Kind: stepPost, N: 60, Seed: 3, Then: 3 * time.Second},
		step{Kind: stepPost, N: 9, Seed: 4, Then: 5 * time.Second})...)
	for _, what := range []string{doRefuse, doCut, doLose, doCutAnswer, doSlow, doMute, doMemory, doDisk, doReadOnly, doPartial} {
		add("insert/"+what, what == doLose || what == doPartial, true,
			append([]step{{Kind: stepFault, On: onInsert, What: what, For: 20 * time.Second, Seed: 1}},
				append(wide(2), step{Kind: stepRepeat, N: 2, Seed: 2, Then: 30 * time.Second})...)...)
	}
	// What a dead process has counted in some of the rollups is not counted there again by the next one, which may have nothing else to
	// recover.
	for _, skip := range []int{5, 6, 7, 8} {
		add(fmt.Sprintf("counted-in-part/%d", skip), skip == 6, true, step{Kind: stepPost, N: 12, Seed: 2, Then: 40 * time.Second},
			step{Kind: stepFault, On: onRepair, What: doDieAfter, Skip: skip, Seed: 3},
			step{Kind: stepPost, N: 12, Seed: 4, Then: 50 * time.Second}, step{Kind: stepPost, N: 12, Seed: 5, Then: 50 * time.Second})
	}
	// Rows that nobody has counted are taken back, and merged with those that do it before anybody counts.
	merged := []step{{Kind: stepPost, N: 25, Seed: 1, Then: 3 * time.Second}, {Kind: stepPost, N: 25, Seed: 11, Then: 3 * time.Second}}
	for range 8 {
		merged = append(merged, step{Kind: stepFault, On: onInsert, What: doMerge})
	}
	add("late-policy-and-merge", true, true, append(merged, step{Kind: stepListing, Seed: 1}, step{Kind: stepListing, Seed: 11},
		step{Kind: stepBinding, N: 1, Seed: 3}, step{Kind: stepBinding, N: 1, Seed: 4, Then: 30 * time.Second})...)
	// An insert takes its time, and what is being inserted comes again: by the receiver that has changed the layout meanwhile, or by one
	// that had not noticed yet that it was changed when it took it in first.
	for seed := range uint64(3) {
		slow := step{Kind: stepFault, On: onInsert, What: doSlow, For: time.Minute, Seed: 1}
		first := step{Kind: stepPost, N: 20, Seed: 10 + seed, Then: 2 * time.Second}
		change := step{Kind: stepLayout, N: 3, Per: 1, Seed: 3, Then: 2 * time.Second}
		again := func(seed uint64, then time.Duration) step {
			return step{Kind: stepRepeat, N: 3, Seed: seed, Then: then}
		}
		add(fmt.Sprint("layout/by-receiver/", seed), seed == 0, false, append(wide(1), slow, slow, first, change,
			again(20+seed, 15*time.Second),
			again(30+seed, 12*time.Second), again(40+seed, 100*time.Second))...)
		change = step{Kind: stepLayout, On: "replay", N: 2, Per: 1, Seed: 3, Then: 3 * time.Second}
		first.Then, slow.For = 12*time.Second, 25*time.Second
		add(fmt.Sprint("layout/by-runner/", seed), false, false, append(wide(1), step{Kind: stepBinding, N: 3, Seed: 4, Then: time.Second},
			change, slow, first, again(20+seed, 5*time.Second), again(30+seed, 4*time.Second), again(40+seed, 4*time.Second),
			again(50+seed, 4*time.Second), again(60+seed, 90*time.Second))...)
	}
	// The same where two processes have a partition each: the request is inserted into one, and belongs into the other when it comes again.
	for _, seed := range []uint64{11, 12, 15} {
		again := step{Kind: stepRepeat, N: 3, Seed: 10 + seed, Then: 13 * time.Second}
		last := again
		last.Then = 100 * time.Second
		add(fmt.Sprint("layout/two-processes/", seed), seed == 11, false, step{Kind: stepJoin, Then: 30 * time.Second},
			step{Kind: stepFault, On: onInsert, What: doSlow, For: time.Minute, Seed: 1},
			step{Kind: stepPost, N: 1, Seed: seed, Then: 2 * time.Second},
			step{Kind: stepLayout, N: 2, Per: 1, Seed: 3, Then: 2 * time.Second}, again, again, last)
	}
	for _, one := range []bool{true, false} {
		where := map[bool]string{true: "one", false: "apart"}[one]
		for _, what := range []string{doDie, doDieAfter} {
			for _, at := range []string{onProduce, onCommit} {
				add("layout/"+where+"/"+at+"/"+what, false, one, append(wide(2),
					step{Kind: stepFault, On: at, What: what, Skip: 2, Seed: 1}, step{Kind: stepLayout, N: 4, Per: 2, Seed: 2},
					step{Kind: stepPost, N: 20, Seed: 3, Then: 12 * time.Second}, step{Kind: stepRepeat, N: 3, Seed: 4,
						Then: time.Minute})...)
			}
		}
		add("layout-and-log-truncated/"+where, false, one, append(wide(2),
			step{Kind: stepLayout, N: 4, Per: 1, Seed: 2, Then: 30 * time.Second},
			step{Kind: stepPost, N: 30, Seed: 3, Then: 5 * time.Second}, step{Kind: stepTruncate, N: 90, Seed: 5},
			step{Kind: stepLayout, Per: 4, Seed: 6, Then: time.Second}, step{Kind: stepPost, N: 30, Seed: 7, Then: time.Second},
			step{Kind: stepRepeat, N: 3, Seed: 8, Then: time.Minute})...)
	}
	return out
}

// TestSteered plays the schedules that are written down.
func TestSteered(t *testing.T) {
	needHost(t)
	events, played := 0, 0
	for _, s := range steered() {
		if !s.short && !long() || testing.Short() && played >= 4 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			r := play(t, s.schedule)
			if len(r.wrong) > 0 {
				t.Error(explain(t, s.schedule, r, "go test ./test/faults -run 'TestSteered/"+s.name+"$'"))
			}
			events, played = events+r.events, played+1
		})
	}
	t.Logf("%d schedules, %d events acknowledged", played, events)
}
