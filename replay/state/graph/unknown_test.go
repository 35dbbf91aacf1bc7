package graph_test

import (
	"sync"
	"testing"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// asks is a question with its answer at second 20.
type asks struct {
	node string
	q    question
	want graph.Known
}

func check(t *testing.T, g *graph.Graph, list []asks) {
	t.Helper()
	for _, a := range list {
		if got := g.Related(at(20), a.node, a.q.group, a.q.resource, a.q.namespace, a.q.name); got != a.want {
			t.Errorf("%v from %s: %v, want %v", a.q, a.node, got, a.want)
		}
	}
}

// TestUnknownMattersOnlyWhereItCould tells what each sort of ignorance leaves certain.
func TestUnknownMattersOnlyWhereItCould(t *testing.T) {
	secret := func(ns, name string) question { return question{"", "secrets", ns, name} }
	volume := question{"", "persistentvolumes", "", "pv"}
	pod := func(ns, name string) graph.Object {
		return graph.Object{Kind: graph.Pod, Namespace: ns, Name: name}
	}
	bound := volumeOf(t, `{"spec":{"claimRef":{"namespace":"d","name":"data"},"csi":{"nodeStageSecretRef":{"namespace":"k",`+
		`"name":"ceph"}}}}`)
	for name, tc := range map[string]struct {
		facts func(g *graph.Graph)
		want  []asks
	}{
		"a pod of which nothing is known": {func(g *graph.Graph) {
			g.Set(pod("d", "p"), []graph.Step{step(10, graph.Unknown, nil)})
			g.Set(graph.Object{Kind: graph.Volume, Name: "pv"}, from(10, bound))
		}, []asks{
			{"n1", secret("d", "s"), graph.Unknown},
			{"n1", secret("e", "s"), graph.Absent},
			{"n1", question{"", "pods", "d", "p"}, graph.Unknown},
			{"n1", question{"", "pods", "d", "q"}, graph.Absent},
			{"n1", volume, graph.Unknown},
			{"n1", secret("k", "ceph"), graph.Unknown},
			{"n1", secret("k", "other"), graph.Absent},
		}},
		"a pod whose node is known": {func(g *graph.Graph) {
			g.Set(pod("d", "p"), from(10, &graph.Content{Node: "n1", AnyRefs: true}))
			g.Set(graph.Object{Kind: graph.Volume, Name: "pv"}, from(10, bound))
		}, []asks{
			{"n1", secret("d", "s"), graph.Unknown},
			{"n2", secret("d", "s"), graph.Absent},
			{"n1", question{"", "pods", "d", "p"}, graph.Present},
			{"n2", question{"", "pods", "d", "p"}, graph.Absent},
			{"n1", volume, graph.Unknown},
			{"n2", volume, graph.Absent},
			{"n1", secret("k", "ceph"), graph.Unknown},
			{"n2", secret("k", "ceph"), graph.Absent},
		}},
		"a pod whose references are known": {func(g *graph.Graph) {
			g.Set(pod("d", "p"), from(10, &graph.Content{AnyNode: true, Refs: "p4:datas1:s"}))
			g.Set(graph.Object{Kind: graph.Volume, Name: "pv"}, from(10, bound))
		}, []asks{
			{"n1", secret("d", "s"), graph.Unknown},
			{"n1", secret("d", "t"), graph.Absent},
			{"n1", volume, graph.Unknown},
			{"n1", secret("k", "ceph"), graph.Unknown},
			{"n1", question{"", "pods", "d", "p"}, graph.Unknown},
		}},
		"a volume of which nothing is known": {func(g *graph.Graph) {
			g.Set(graph.Object{Kind: graph.Volume, Name: "pv"}, []graph.Step{step(10, graph.Unknown, nil)})
			g.Set(pod("d", "p"), from(10, &graph.Content{Node: "n1", Refs: "p4:data"}))
			g.Set(pod("d", "q"), from(10, &graph.Content{Node: "n2", Refs: "s1:s"}))
		}, []asks{
			{"n1", volume, graph.Unknown},
			{"n2", volume, graph.Absent}, // no pod of n2 has a claim
			{"n1", question{"", "persistentvolumes", "", "other"}, graph.Absent},
			{"n1", secret("k", "any"), graph.Unknown},
			{"n2", secret("k", "any"), graph.Absent},
			{"n1", question{"", "configmaps", "k", "any"}, graph.Absent},
			{"n1", question{"", "persistentvolumeclaims", "d", "data"}, graph.Present},
		}},
		"pods of one namespace were not seen": {func(g *graph.Graph) {
			g.SetScope(graph.Pod, "d", []graph.Step{step(10, graph.Unknown, nil)})
			g.Set(pod("d", "p"), from(10, &graph.Content{Node: "n1", Refs: "s1:s"}))
		}, []asks{
			{"n1", secret("d", "s"), graph.Present},
			{"n2", secret("d", "s"), graph.Unknown},
			{"n2", secret("e", "s"), graph.Absent},
			{"n2", question{"", "pods", "d", "p"}, graph.Absent}, // that one is known
			{"n2", question{"", "pods", "d", "q"}, graph.Unknown},
			{"n2", question{"storage.k8s.io", "volumeattachments", "", "va"}, graph.Absent},
		}},
		"they were seen again": {func(g *graph.Graph) {
			g.SetScope(graph.Pod, "d", []graph.Step{step(10, graph.Unknown, nil), step(20, graph.Absent, nil)})
		}, []asks{{"n1", secret("d", "s"), graph.Absent}}},
		"slices were not seen": {func(g *graph.Graph) {
			g.SetScope(graph.Slice, "", []graph.Step{step(10, graph.Unknown, nil)})
			g.Set(graph.Object{Kind: graph.Slice, Name: "known"}, from(10, &graph.Content{Node: "n1"}))
			g.Set(graph.Object{Kind: graph.Slice, Name: "network"}, from(10, &graph.Content{}))
		}, []asks{
			{"n1", question{"resource.k8s.io", "resourceslices", "", "known"}, graph.Present},
			{"n2", question{"resource.k8s.io", "resourceslices", "", "known"}, graph.Absent},
			{"n2", question{"resource.k8s.io", "resourceslices", "", "network"}, graph.Absent},
			{"n2", question{"resource.k8s.io", "resourceslices", "", "other"}, graph.Unknown},
			{"n2", secret("d", "s"), graph.Absent},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := known()
			tc.facts(g)
			check(t, g, tc.want)
		})
	}
	t.Run("nothing was told", func(t *testing.T) {
		g := graph.New()
		check(t, g, []asks{
			{"n1", secret("d", "s"), graph.Unknown}, {"n1", volume, graph.Unknown}, {"n1", question{"", "pods", "d", "p"}, graph.Unknown},
			{"n1", question{"storage.k8s.io", "volumeattachments", "", "va"}, graph.Unknown},
			{"n1", question{"certificates.k8s.io", "podcertificaterequests", "d", "pcr"}, graph.Unknown},
		})
	})
}

// TestRefresh: the apiserver takes a pod's references anew only for some of its changes.
func TestRefresh(t *testing.T) {
	first := &graph.Content{Node: "n1", Refs: "r3:old"}
	next := func(change func(c *graph.Content)) *graph.Content {
		c := *first
		c.Refs = "r3:new"
		if change != nil {
			change(&c)
		}
		return &c
	}
	for name, tc := range map[string]struct {
		life     []graph.Step
		old, new graph.Known
	}{
		"another field": {[]graph.Step{step(1, graph.Present, first), step(2, graph.Present, next(nil))}, graph.Present,
			graph.Absent},
		"an ephemeral container": {[]graph.Step{step(1, graph.Present, first), step(2, graph.Present,
			next(func(c *graph.Content) { c.Ephemeral = 1 }))}, graph.Absent, graph.Present},
		"claim statuses": {[]graph.Step{step(1, graph.Present, first), step(2, graph.Present,
			next(func(c *graph.Content) { c.Statuses = 7 }))}, graph.Absent, graph.Present},
		"another pod": {[]graph.Step{step(1, graph.Present, first), {NotBefore: sec(2), NotAfter: sec(2),
			Known: graph.Present, UID: "other", Content: next(nil)}}, graph.Absent, graph.Present},
		"it had gone": {[]graph.Step{step(1, graph.Present, first), step(2, graph.Absent, nil), step(3, graph.Present,
			next(nil))}, graph.Absent, graph.Present},
		"first without a node": {[]graph.Step{step(1, graph.Present, &graph.Content{Refs: "r3:old"}), step(2, graph.Present,
			next(nil))}, graph.Absent, graph.Present},
		"another field, then both": {[]graph.Step{step(1, graph.Present, first), step(2, graph.Present, next(nil)),
			step(3, graph.Present, next(func(c *graph.Content) { c.Statuses = 7 }))}, graph.Absent, graph.Present},
		"another field, twice over": {[]graph.Step{step(1, graph.Present, first), step(2, graph.Present, next(nil)),
			step(3, graph.Present, next(nil))}, graph.Present, graph.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			g := known()
			g.Set(graph.Object{Kind: graph.Pod, Namespace: "d", Name: "p"}, tc.life)
			check(t, g, []asks{{"n1", question{"resource.k8s.io", "resourceclaims", "d", "old"}, tc.old},
				{"n1", question{"resource.k8s.io", "resourceclaims", "d", "new"}, tc.new}})
		})
	}
}

// TestWindows: what may have been the answer at some moment of a window.
func TestWindows(t *testing.T) {
	const p, a, u = graph.Answers(1 << graph.Present), graph.Answers(1 << graph.Absent), graph.Answers(1 << graph.Unknown)
	c := &graph.Content{Node: "n1", Refs: "s1:s"}
	blurred := func(from, to int, k graph.Known, c *graph.Content) graph.Step {
		return graph.Step{NotBefore: sec(from), NotAfter: sec(to), Known: k, UID: "u", Content: c}
	}
	for name, tc := range map[string]struct {
		life     []graph.Step
		from, to int
		want     graph.Answers
	}{
		"long before":              {[]graph.Step{blurred(10, 12, graph.Present, c)}, 1, 5, a},
		"while it comes":           {[]graph.Step{blurred(10, 12, graph.Present, c)}, 11, 11, p | a},
		"before it certainly came": {[]graph.Step{blurred(10, 12, graph.Present, c)}, 5, 10, p | a},
		"since":                    {[]graph.Step{blurred(10, 12, graph.Present, c)}, 12, 20, p},
		"across":                   {[]graph.Step{blurred(10, 12, graph.Present, c)}, 5, 20, p | a},
		"as it goes":               {[]graph.Step{blurred(10, 12, graph.Present, c), blurred(20, 22, graph.Absent, nil)}, 15, 20, p | a},
		"after it went":            {[]graph.Step{blurred(10, 12, graph.Present, c), blurred(20, 22, graph.Absent, nil)}, 22, 30, a},
		"gone and back inside": {[]graph.Step{blurred(10, 12, graph.Present, c), blurred(20, 22, graph.Absent, nil),
			blurred(24, 26, graph.Present, c)}, 15, 30, p | a},
		"unknown for a while":   {[]graph.Step{blurred(10, 10, graph.Unknown, nil), blurred(20, 20, graph.Absent, nil)}, 5, 15, a | u},
		"unknown all the while": {[]graph.Step{blurred(10, 10, graph.Unknown, nil)}, 12, 15, u},
		"turned around":         {[]graph.Step{blurred(10, 12, graph.Present, c)}, 20, 5, p},
	} {
		t.Run(name, func(t *testing.T) {
			g := known()
			g.Set(graph.Object{Kind: graph.Pod, Namespace: "d", Name: "p"}, tc.life)
			if got := g.RelatedWithin(at(tc.from), at(tc.to), "n1", "", "secrets", "d", "s"); got != tc.want {
				t.Errorf("answers %03b, want %03b", got, tc.want)
			}
		})
	}
}

func TestContentThatIsNone(t *testing.T) {
	for _, object := range []string{"", "null?", "[]", `{"spec":[]}`, `{"spec":{"nodeName":3}}`} {
		for _, k := range []graph.Kind{graph.Pod, graph.Attachment} {
			if c, err := graph.ContentOf(k, []byte(object)); err == nil {
				t.Errorf("kind %d: %q is read as %+v", k, object, c)
			}
		}
	}
	if c, err := graph.ContentOf(graph.Volume, []byte(`{"spec":{"claimRef":3}}`)); err == nil {
		t.Errorf("a volume bound to a number: %+v", c)
	}
	// Keys are told apart by case: an annotation that looks like the mirror's is none.
	c := podOf(t, `{"metadata":{"name":"p","annotations":{"kubernetes.io/Config.mirror":"x"}},"spec":{"nodeName":"n1",`+
		`"serviceAccountName":"sa"}}`)
	if c.Refs == "" {
		t.Error("an annotation of another name made a mirror pod")
	}
}

// TestReadersBesideTheWriter is for the race detector: answers come while facts go in.
func TestReadersBesideTheWriter(t *testing.T) {
	f := newFleet(2000)
	g := known()
	var wg sync.WaitGroup
	for r := range 4 {
		wg.Go(func() {
			for i := range 4000 {
				o := f.pods[(i*7+r)%len(f.pods)]
				g.Related(at(1000), "node-3", "", "secrets", "storage", "ceph-csi")
				g.RelatedWithin(at(1), at(2), "node-3", "", "configmaps", o.Namespace, "kube-root-ca.crt")
				g.Stats()
			}
		})
	}
	f.feed(g)
	g.Prune(at(1))
	wg.Wait()
	if got := g.Related(at(1000), f.contents[5].Node, "", "pods", f.pods[5].Namespace, f.pods[5].Name); got != graph.Present {
		t.Errorf("a pod that was put in: %v", got)
	}
}

func FuzzPodContent(f *testing.F) {
	f.Add([]byte(busyPod))
	f.Add([]byte(`{"spec":{"nodeName":"n","imagePullSecrets":[{"name":"a:1\n"}]}}`))
	f.Fuzz(func(t *testing.T, object []byte) {
		c, err := graph.PodContent(object)
		if err != nil {
			return
		}
		g := known()
		o := graph.Object{Kind: graph.Pod, Namespace: "d", Name: "p"}
		g.Set(o, from(1, &c))
		want := graph.Absent
		if c.Node != "" {
			want = graph.Present
		}
		if got := g.Related(at(2), c.Node, "", "pods", "d", "p"); got != want {
			t.Fatalf("a pod on node %q: %v", c.Node, got)
		}
		g.Set(o, nil)
		if st := g.Stats(); st.Objects+st.Vertices != 0 {
			t.Fatalf("left of it: %+v", st)
		}
	})
}
