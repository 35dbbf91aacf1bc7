package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func envInt(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// long reports whether the long set was asked for.
func long() bool { return os.Getenv("RETRIAL_FAULTS_LONG") != "" }

// TestSimulated plays schedules from consecutive seeds.
func TestSimulated(t *testing.T) {
	needHost(t)
	failed := 0
	first, n := envInt(t, "RETRIAL_FAULTS_SEED", 1), envInt(t, "RETRIAL_FAULTS_N", 8)
	if testing.Short() {
		n = min(n, 2)
	}
	began, events, fired, heap := time.Now(), 0, map[string]int{}, uint64(0)
	for seed := first; seed < first+n; seed++ {
		s := draw(seed)
		if again := os.Getenv("RETRIAL_FAULTS_SAME"); again != "" {
			s = draw(first) // the same one, as a race may need several attempts
		}
		if file := os.Getenv("RETRIAL_FAULTS_SCHEDULE"); file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s = schedule{}
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
		}
		t0 := time.Now()
		r := play(t, s)
		if testing.Verbose() && os.Getenv("RETRIAL_FAULTS_VERBOSE") != "" {
			fmt.Printf("seed %d: %d steps, %d events, %v, %v\n", seed, len(s.Steps), r.events, time.Since(t0).Round(time.Millisecond),
				r.fired)
		}
		if len(r.wrong) > 0 {
			t.Error(explain(t, s, r, fmt.Sprintf("make faults SEED=%d N=1", seed)))
			if failed++; failed >= 3 {
				t.FailNow()
			}
		}
		events += r.events
		heap = max(heap, r.heap)
		for k, v := range r.fired {
			fired[k] += v
		}
	}
	t.Logf("%d schedules from seed %d, %d events acknowledged, at most %d MiB of heap, in %v; what happened: %s",
		n, first, events, heap>>20, time.Since(began).Round(time.Second), counts(fired))
	if events == 0 || len(fired) == 0 {
		t.Fatal("nothing happened")
	}
}

func counts(m map[string]int) string {
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", k, m[k])
	}
	return b.String()
}

// explain tells everything about a schedule that failed: how to repeat it, and the shortest
// one found that fails as well.
func explain(t *testing.T, s schedule, r result, repeat string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "schedule of seed %d fails:\n  %s\n", s.Seed, strings.Join(r.wrong, "\n  "))
	fmt.Fprintf(&b, "last warnings:\n%s", r.log)
	fmt.Fprintf(&b, "repeat: %s\n", repeat)
	if os.Getenv("RETRIAL_FAULTS_NOSHRINK") == "" {
		short := shrink(s, 40, func(less schedule) bool { return len(play(t, less).wrong) > 0 })
		again := play(t, short)
		fmt.Fprintf(&b, "shrunk to %d of %d steps (RETRIAL_FAULTS_SCHEDULE=FILE plays it):\n%s\nwhich gives:\n  %s\n",
			len(short.Steps), len(s.Steps), short, strings.Join(again.wrong, "\n  "))
	} else {
		fmt.Fprintf(&b, "%s\n", s)
	}
	return b.String()
}
