package state_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// TestRest: a state that rests takes less memory, and answers as before.
func TestRest(t *testing.T) {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	writes := newDay(7, time.Second).writes(5_000)
	began := heap()
	s := state.New("c")
	s.Apply(writes...)
	loaded := heap()
	ask := func() (counts []int) {
		for i, w := range writes {
			request := &rbacindex.Attributes{User: fmt.Sprint("person-", i%400), Verb: "get", Resource: "pods", ResourceRequest: true}
			n := 0
			for _, v := range s.RBACWindow(w.NotAfter, w.NotAfter.Add(100*time.Millisecond)) {
				if v.RBAC.Authorize(request, nil).Allowed {
					n++
				}
			}
			counts = append(counts, n)
		}
		return counts
	}
	before := ask()
	asked := heap()
	s.Rest()
	rested := heap()
	t.Logf("%.1f MB of versions, %.1f of views, of which %.1f after a rest", loaded-began, asked-loaded, rested-loaded)
	if rested-loaded > (asked-loaded)/2 {
		t.Errorf("a state holds %.1f MB of views, and %.1f after a rest", asked-loaded, rested-loaded)
	}
	if after := ask(); !slices.Equal(after, before) {
		t.Error("a state that rested answers otherwise")
	}
}
