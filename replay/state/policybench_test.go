package state_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// BenchmarkPrunePolicy measures what 400 days of policy writes, 200 a day, take in memory, whole and with the last 31 days alone: each of
// 200 roles is written daily, or every day 200 others are made and deleted.
func BenchmarkPrunePolicy(b *testing.B) {
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	const days, daily = 400, 200
	for _, shape := range []string{"written", "made"} {
		b.Run(shape, func(b *testing.B) {
			for range b.N {
				before := heap()
				s := state.New("c")
				for day := range days {
					for i := range daily {
						n := day*daily + i
						name := fmt.Sprint("role", i)
						if shape == "made" {
							name = fmt.Sprint("role", n)
						}
						at := start.AddDate(0, 0, day).Add(time.Duration(i) * time.Minute)
						o := observe.Observation{Source: observe.SourceAudit, Resource: kept.Roles, Namespace: "a", Name: name, UID: name,
							ResourceVersion: fmt.Sprint(n + 1), NotBefore: at, NotAfter: at.Add(time.Millisecond)}
						gone := o
						o.Object = fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":%q,`+
							`"namespace":"a","resourceVersion":"%d","uid":%q},"rules":[{"apiGroups":[""],"resources":["kind%d","pods"],`+
							`"verbs":["get","list"]}]}`, name, n+1, name, n)
						s.Apply(o)
						if shape == "made" {
							gone.ResourceVersion, gone.Deleted = "", true
							gone.NotBefore, gone.NotAfter = at.Add(time.Hour), at.Add(time.Hour+time.Millisecond)
							s.Apply(gone)
						}
					}
				}
				s.Prepare()
				whole := heap()
				began := time.Now()
				s.PrunePolicy(start.AddDate(0, 0, days-31))
				b.ReportMetric(time.Since(began).Seconds()*1e3, "ms-to-forget")
				b.ReportMetric((whole-before)/1e6, "MB-whole")
				b.ReportMetric((heap()-before)/1e6, "MB-31-days")
				runtime.KeepAlive(s)
			}
		})
	}
}
