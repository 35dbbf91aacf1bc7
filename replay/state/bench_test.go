package state_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// bindings makes n RoleBindings in a hundred namespaces, one a second from start on.
func bindings(n int, start time.Time) []observe.Observation {
	obs := make([]observe.Observation, n)
	for i := range obs {
		at := start.Add(time.Duration(i) * time.Second)
		ns, name, uid, rv := fmt.Sprintf("ns-%d", i%100), fmt.Sprintf("b-%d", i), fmt.Sprintf("6c31089b-aea6-4adc-97c8-%012d",
			i), fmt.Sprint(1000+i)
		obs[i] = observe.Observation{
			Source: observe.SourceAudit, Resource: kept.RoleBindings, Namespace: ns, Name: name, UID: uid, ResourceVersion: rv,
			NotBefore: at, NotAfter: at.Add(5 * time.Millisecond),
			Object: fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":%q,`+
				`"namespace":%q,"uid":%q,"resourceVersion":%q,"creationTimestamp":%q},"subjects":[{`+
				`"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"user-%d"},{"kind":"ServiceAccount","name":"robot",`+
				`"namespace":%q}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`,
				name, ns, uid, rv, at.Format(time.RFC3339), i%1000, ns),
		}
	}
	return obs
}

var benchStart = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// The rule: nothing changed in the window, at the newest state and somewhere in the past.
func BenchmarkRBACWindow(b *testing.B) {
	s := state.New("c")
	s.Apply(bindings(10_000, benchStart)...)
	for _, where := range []struct {
		name string
		at   time.Time
	}{
		{"now", benchStart.Add(20_000 * time.Second)},
		{"past", benchStart.Add(5_000*time.Second + 500*time.Millisecond)},
	} {
		b.Run("changes=10k/at="+where.name, func(b *testing.B) {
			s.RBAC(where.at) // the first asker works it out
			b.ReportAllocs()
			for b.Loop() {
				if v := s.RBACWindow(where.at, where.at.Add(100*time.Millisecond)); len(v) != 1 {
					b.Fatal(len(v))
				}
			}
		})
	}
	b.Run("changes=10k/at=past/changed=1", func(b *testing.B) {
		b.ReportAllocs()
		at := benchStart.Add(5_000 * time.Second)
		for b.Loop() {
			if v := s.RBACWindow(at, at.Add(100*time.Millisecond)); len(v) != 2 {
				b.Fatal(len(v))
			}
		}
	})
}

// One binding applied to ten thousand: in order, and some changes late. The view of the
// present is asked for after each, as judging would.
func BenchmarkApply(b *testing.B) {
	for _, late := range []int{0, 10, 1000} {
		b.Run(fmt.Sprintf("changes=10k/late=%d", late), func(b *testing.B) {
			all := bindings(30_000, benchStart)
			s := state.New("c")
			s.Apply(all[:10_000]...)
			s.RBAC(future)
			b.ReportAllocs()
			i := 10_000
			for b.Loop() {
				o := all[i]
				at := benchStart.Add(time.Duration(i-late)*time.Second + 100*time.Millisecond)
				o.NotBefore, o.NotAfter = at, at.Add(time.Millisecond)
				s.Apply(o)
				s.RBAC(future)
				if i++; i == len(all) {
					b.StopTimer()
					i = 10_000
					s = state.New("c")
					s.Apply(all[:10_000]...)
					s.RBAC(future)
					b.StartTimer()
				}
			}
		})
	}
}

// Fifty thousand objects loaded at once, first view included, and what they weigh.
func BenchmarkLoad(b *testing.B) {
	obs := bindings(50_000, benchStart)
	for i := range obs {
		obs[i].Source = observe.SourceSnapshot
	}
	snap := observe.Snapshot{Began: benchStart.Add(50_000 * time.Second), Ended: benchStart.Add(50_001 * time.Second),
		Kinds: kept.Resources(), Objects: obs}
	b.ReportAllocs()
	var s *state.State
	for b.Loop() {
		s = state.New("c")
		if _, err := s.LoadSnapshot(snap); err != nil {
			b.Fatal(err)
		}
		s.RBAC(future)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/object")
	runtime.KeepAlive(s)
}

// One name made and deleted over and over: what a write costs grows with the name's
// history, which Prune bounds.
func BenchmarkHotName(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprintf("incarnations=%d", n), func(b *testing.B) {
			s := state.New("c")
			all := bindings(n+1, benchStart)
			for i := range all {
				o := &all[i]
				o.Namespace, o.Name = "ns-0", "b-0"
				s.Apply(*o)
				s.Apply(observe.Observation{Source: observe.SourceAudit, Resource: o.Resource, Namespace: "ns-0", Name: "b-0", UID: o.UID,
					Deleted:   true,
					NotBefore: o.NotAfter.Add(time.Millisecond), NotAfter: o.NotAfter.Add(2 * time.Millisecond)})
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				// A further version of the last incarnation, ended already: the line is
				// worked out anew.
				o := all[n]
				o.ResourceVersion = fmt.Sprint(10_000_000 + i)
				i++
				s.Apply(o)
			}
		})
	}
}

// What one version costs in memory, beside the view of the present.
func BenchmarkVersionMemory(b *testing.B) {
	obs := bindings(50_000, benchStart)
	var before, stored, viewed runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := state.New("c")
		for i := range obs {
			s.Apply(obs[i])
		}
		runtime.GC()
		runtime.ReadMemStats(&stored)
		s.RBAC(future)
		runtime.GC()
		runtime.ReadMemStats(&viewed)
		runtime.KeepAlive(s)
	}
	b.ReportMetric(float64(stored.HeapAlloc-before.HeapAlloc)/50_000, "bytes/version")
	b.ReportMetric(float64(viewed.HeapAlloc-stored.HeapAlloc)/50_000, "view-bytes/version")
}

// The window lookup must stay free of allocations: it runs for every request.
func TestRBACWindowAllocates(t *testing.T) {
	s := state.New("c")
	s.Apply(bindings(1000, benchStart)...)
	at := benchStart.Add(500*time.Second + 500*time.Millisecond)
	if n := testing.AllocsPerRun(100, func() { s.RBACWindow(at, at.Add(100*time.Millisecond)) }); n != 0 {
		t.Errorf("%v allocations without a change", n)
	}
}

// Readers see whole states while the writer goes on: a binding seen once is seen for good.
func TestReadersBesideWriter(t *testing.T) {
	all := bindings(1500, benchStart)
	s := state.New("c")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for r := range 3 {
		wg.Go(func() {
			last := 0
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				v := s.RBAC(future)
				if _, _, n, _ := v.RBAC.Len(); n < last {
					t.Errorf("reader %d saw %d bindings after %d", r, n, last)
					return
				} else {
					last = n
				}
				at := benchStart.Add(time.Duration(i%1500) * time.Second)
				s.RBACWindow(at, at.Add(3*time.Second))
				s.Namespace("ns-1", at, at)
				s.ServiceAccount("ns-1", "robot", at)
				s.Stats()
			}
		})
	}
	for i := range all {
		s.Apply(all[(i*7)%len(all)])
	}
	close(done)
	wg.Wait()
	if _, _, n, _ := s.RBAC(future).RBAC.Len(); n != len(all) {
		t.Errorf("%d bindings at the end, want %d", n, len(all))
	}
}
