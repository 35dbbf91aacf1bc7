package graph_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// fleet is a large cluster: pods of workloads of 20 replicas, 200 pods a namespace, 100 a node.
// Each refers to its service account, kube-root-ca.crt, a config map and two secrets of its
// workload; one in five has a volume of its own.
type fleet struct {
	pods, volumes []graph.Object
	contents      []*graph.Content // of pods, then of volumes
}

func newFleet(n int) *fleet {
	f := &fleet{}
	refs := map[graph.Refs]graph.Refs{} // as whoever feeds the graph shares them
	for i := range n {
		ns, work, node := fmt.Sprintf("team-%d", i/200), i/20, fmt.Sprintf("node-%d", i%max(1, n/100))
		name := fmt.Sprintf("workload-%d-7d9f8c6b5d-x%d", work, i)
		c := &graph.Content{Node: node}
		text := "a7:default"
		for _, m := range []string{fmt.Sprintf("settings-%d", work), "kube-root-ca.crt"} {
			text += fmt.Sprintf("c%d:%s", len(m), m)
		}
		if i%5 == 0 {
			claim := "data-" + name
			text += fmt.Sprintf("p%d:%s", len(claim), claim)
			v := &graph.Content{Refs: graph.Refs(fmt.Sprintf("P%d:%s%d:%sS7:storage8:ceph-csi", len(ns), ns, len(claim), claim))}
			f.volumes = append(f.volumes, graph.Object{Kind: graph.Volume, Name: fmt.Sprintf("pvc-%032d", i)})
			f.contents = append(f.contents, v)
		}
		for _, s := range []string{"registry", fmt.Sprintf("password-%d", work)} {
			text += fmt.Sprintf("s%d:%s", len(s), s)
		}
		if _, ok := refs[graph.Refs(text)]; !ok {
			refs[graph.Refs(text)] = graph.Refs(text)
		}
		c.Refs = refs[graph.Refs(text)]
		f.pods = append(f.pods, graph.Object{Kind: graph.Pod, Namespace: ns, Name: name})
		f.contents = append(f.contents, c)
	}
	pods := make([]*graph.Content, 0, n)
	volumes := make([]*graph.Content, 0, len(f.volumes))
	for _, c := range f.contents {
		if c.Node == "" {
			volumes = append(volumes, c)
		} else {
			pods = append(pods, c)
		}
	}
	f.contents = append(pods, volumes...)
	return f
}

// feed tells a graph what there is, as it would be read of a log: made, bound, and so on.
func (f *fleet) feed(g *graph.Graph) {
	bare := &graph.Content{}
	for i, o := range f.pods {
		t := int64(i) * int64(time.Millisecond)
		g.Set(o, []graph.Step{
			{NotBefore: t, NotAfter: t + 1000, Known: graph.Present, UID: "u", Content: bare},
			{NotBefore: t + 2000, NotAfter: t + 3000, Known: graph.Present, UID: "u", Content: f.contents[i]},
		})
	}
	for i, o := range f.volumes {
		t := int64(i) * int64(time.Millisecond)
		g.Set(o, []graph.Step{{NotBefore: t, NotAfter: t + 1000, Known: graph.Present, UID: "v", Content: f.contents[len(f.pods)+i]}})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestBytesPerPod keeps the graph small: what it holds of a pod besides the strings it was
// handed.
func TestBytesPerPod(t *testing.T) {
	const n = 50_000
	f := newFleet(n)
	before := heap()
	g := known()
	f.feed(g)
	used := heap() - before
	t.Logf("%d bytes a pod, %+v", used/n, g.Stats())
	if used/n > 360 {
		t.Errorf("%d bytes a pod", used/n)
	}
	runtime.KeepAlive(f)
	runtime.KeepAlive(g)
}

func BenchmarkFeed(b *testing.B) {
	f := newFleet(100_000)
	b.ReportAllocs()
	for b.Loop() {
		g := known()
		f.feed(g)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(f.pods)), "ns/pod")
}

func BenchmarkPrune(b *testing.B) {
	f := newFleet(100_000)
	for b.Loop() {
		b.StopTimer()
		g := known()
		f.feed(g)
		for i, o := range f.pods {
			t := int64(i) * int64(time.Millisecond)
			g.Set(o, []graph.Step{
				{NotBefore: t, NotAfter: t, Known: graph.Present, UID: "u", Content: f.contents[i]},
				{NotBefore: t + 10, NotAfter: t + 10, Known: graph.Absent},
			})
		}
		b.StartTimer()
		if n := g.Prune(time.Unix(0, int64(50_000)*int64(time.Millisecond))); n < 50_000 {
			b.Fatalf("%d dropped", n)
		}
	}
}

func BenchmarkRelated(b *testing.B) {
	f := newFleet(100_000)
	g := known()
	f.feed(g)
	now := time.Unix(1000, 0)
	o, v := f.pods[55_555], f.volumes[11_111]
	node := f.contents[55_555].Node
	for _, bc := range []struct {
		name               string
		node               string
		resource, ns, what string
		want               graph.Known
	}{
		{"pod", node, "pods", o.Namespace, o.Name, graph.Present},
		{"secret", node, "secrets", o.Namespace, "password-2777", graph.Present},
		{"everybody's configmap", node, "configmaps", o.Namespace, "kube-root-ca.crt", graph.Present},
		{"volume", node, "persistentvolumes", "", v.Name, graph.Present},
		{"secret of 20,000 volumes", node, "secrets", "storage", "ceph-csi", graph.Present},
		{"foreign secret", "node-3", "secrets", o.Namespace, "password-2777", graph.Absent},
		{"foreign volume", "node-3", "persistentvolumes", "", v.Name, graph.Absent},
		{"secret nobody has", node, "secrets", o.Namespace, "x", graph.Absent},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := g.Related(now, bc.node, "", bc.resource, bc.ns, bc.what); got != bc.want {
					b.Fatalf("%v, want %v", got, bc.want)
				}
			}
		})
	}
}
