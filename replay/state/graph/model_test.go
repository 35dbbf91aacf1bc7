package graph_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// world is the definition the graph is held against: the facts as they were put in, and
// questions answered by going through all of them.
type world struct {
	lives  map[graph.Object][]graph.Step
	scopes map[graph.Object][]graph.Step // objects without a name
}

// fact is an object at a moment; content nil when nothing of it is known.
type fact struct {
	graph.Object
	content *graph.Content
}

// inForce returns the step that was certainly the newest at t.
func inForce(life []graph.Step, t int64) (graph.Step, bool) {
	found := -1
	for i := range life {
		if life[i].NotAfter <= t {
			found = i
		}
	}
	if found < 0 {
		return graph.Step{}, false
	}
	return life[found], true
}

// facts returns all objects of a kind that were there or may have been.
func (w *world) facts(k graph.Kind, t int64) (list []fact) {
	for o, life := range w.lives {
		if o.Kind != k {
			continue
		}
		switch st, ok := inForce(life, t); {
		case !ok || st.Known == graph.Absent:
		case st.Known == graph.Unknown:
			list = append(list, fact{Object: o})
		default:
			list = append(list, fact{o, st.Content})
		}
	}
	for o, life := range w.scopes {
		st, ok := inForce(life, t)
		if o.Kind == k && (ok && st.Known == graph.Unknown || !ok && o.Namespace == "") {
			list = append(list, fact{Object: o})
		}
	}
	return list
}

func (f *fact) everywhere() bool { return f.Name == "" && f.Namespace == "" }

// on says whether a pod is on the node: Present, Unknown or Absent.
func (f *fact) on(node string) graph.Known {
	switch {
	case f.content == nil || f.content.AnyNode:
		return graph.Unknown
	case node != "" && f.content.Node == node:
		return graph.Present
	}
	return graph.Absent
}

func (f *fact) refers(text string) graph.Known {
	switch {
	case f.content != nil && strings.Contains(string(f.content.Refs), text):
		return graph.Present
	case f.content == nil || f.content.AnyRefs:
		return graph.Unknown
	}
	return graph.Absent
}

// both is the three-valued and, either the three-valued or.
func both(a, b graph.Known) graph.Known {
	switch {
	case a == graph.Absent || b == graph.Absent:
		return graph.Absent
	case a == graph.Present && b == graph.Present:
		return graph.Present
	}
	return graph.Unknown
}

func either(a, b graph.Known) graph.Known {
	switch {
	case a == graph.Present || b == graph.Present:
		return graph.Present
	case a == graph.Unknown || b == graph.Unknown:
		return graph.Unknown
	}
	return graph.Absent
}

func text(kind string, names ...string) string {
	for _, n := range names {
		kind += fmt.Sprintf("%d:%s", len(n), n)
	}
	return kind
}

// referred is the answer for what pods of a namespace refer to.
func (w *world) referred(t int64, node, namespace, ref string) graph.Known {
	answer := graph.Absent
	for _, p := range w.facts(graph.Pod, t) {
		if p.Namespace == namespace || p.everywhere() {
			answer = either(answer, both(p.on(node), p.refers(ref)))
		}
	}
	return answer
}

// claims reports whether some pod on the node has a claim.
func (w *world) claims(t int64, node string) graph.Known {
	answer := graph.Absent
	for _, p := range w.facts(graph.Pod, t) {
		answer = either(answer, both(p.on(node), p.refers("p2:")))
	}
	return answer
}

// behind is the answer for a volume: what its claim is related to.
func (w *world) behind(t int64, node string, v *fact) graph.Known {
	if v.content == nil {
		return both(graph.Unknown, w.claims(t, node))
	}
	for _, ns := range namespaces {
		for _, c := range claimNames {
			if strings.HasPrefix(string(v.content.Refs), text("P", ns, c)) {
				return w.referred(t, node, ns, text("p", c))
			}
		}
	}
	return graph.Absent
}

func (w *world) related(t int64, node string, q question) graph.Known {
	switch q.resource {
	case "configmaps":
		return w.referred(t, node, q.namespace, text("c", q.name))
	case "persistentvolumeclaims":
		return w.referred(t, node, q.namespace, text("p", q.name))
	case "secrets":
		answer := w.referred(t, node, q.namespace, text("s", q.name))
		for _, v := range w.facts(graph.Volume, t) {
			answer = either(answer, both(v.refers(text("S", q.namespace, q.name)), w.behind(t, node, &v)))
		}
		return answer
	case "persistentvolumes":
		answer, named := graph.Absent, false
		all := w.facts(graph.Volume, t)
		for _, v := range all {
			if v.Name == q.name {
				answer, named = either(answer, w.behind(t, node, &v)), true
			}
		}
		for _, v := range all {
			if v.Name == "" && !named {
				answer = either(answer, w.behind(t, node, &v))
			}
		}
		return answer
	}
	kind := graph.Pod
	if q.resource == "volumeattachments" {
		kind = graph.Attachment
	}
	answer, named := graph.Absent, false
	all := w.facts(kind, t)
	for _, f := range all {
		if f.Name == q.name && f.Namespace == q.namespace {
			answer, named = f.on(node), kind != graph.Pod || f.content == nil || f.content.AnyNode || f.content.Node != ""
		}
	}
	for _, f := range all {
		if f.Name == "" && (f.Namespace == q.namespace || f.everywhere()) && !named {
			answer = either(answer, graph.Unknown)
		}
	}
	return answer
}

var (
	namespaces = []string{"ns", "nt", "nu"}
	nodes      = []string{"n1", "n2", "n3", ""}
	claimNames = []string{"d1", "d2", "d3"}
	names      = []string{"x1", "x2", "x3", "x4"}
)

// generator makes worlds. All names of a sort are of the same length, so that no reference is
// the beginning of another.
type generator struct {
	*rand.Rand
	serial  uint32
	unknown bool // put in what is not known
	exact   bool // changes have no width
}

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

const span = 40

func (g *generator) content(k graph.Kind) *graph.Content {
	c := &graph.Content{}
	g.serial++
	switch k {
	case graph.Volume:
		if g.IntN(6) > 0 {
			c.Refs = graph.Refs(text("P", pick(g, namespaces), pick(g, claimNames)))
			for _, n := range namespaces {
				if g.IntN(3) == 0 {
					c.Refs += graph.Refs(text("S", n, pick(g, names)))
				}
			}
		}
	case graph.Pod:
		c.Statuses = g.serial // every version counts
		for _, kind := range []string{"c", "p", "s"} {
			for _, n := range map[string][]string{"c": names, "p": claimNames, "s": names}[kind] {
				if g.IntN(4) == 0 {
					c.Refs += graph.Refs(text(kind, n))
				}
			}
		}
		c.AnyRefs = g.unknown && g.IntN(10) == 0
		fallthrough
	default:
		c.Node = pick(g, nodes)
		c.AnyNode = g.unknown && g.IntN(10) == 0
	}
	return c
}

func (g *generator) life(k graph.Kind) []graph.Step {
	var life []graph.Step
	t := g.IntN(span)
	for range g.IntN(5) {
		st := graph.Step{NotBefore: int64(t), UID: "u"}
		if !g.exact {
			t += g.IntN(3)
		}
		st.NotAfter = int64(t)
		t += g.IntN(span / 4)
		switch n := g.IntN(8); {
		case n < 2:
			st.Known = graph.Absent
		case n == 2 && g.unknown:
			st.Known = graph.Unknown
		default:
			st.Known = graph.Present
			st.Content = g.content(k)
		}
		life = append(life, st)
	}
	if g.unknown && g.IntN(8) == 0 && len(life) > 0 {
		life[0].NotBefore = graph.Always
	}
	return life
}

func (g *generator) scope() []graph.Step {
	life := []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}}
	if !g.unknown {
		return life
	}
	if g.IntN(4) == 0 {
		life = life[:0]
	}
	t := int64(g.IntN(span))
	for range g.IntN(3) {
		life = append(life, graph.Step{NotBefore: t, NotAfter: t, Known: graph.Unknown}, graph.Step{NotBefore: t + 5, NotAfter: t + 5,
			Known: graph.Absent})
		t += 5 + int64(g.IntN(span/2))
	}
	return life
}

func (g *generator) object() graph.Object {
	switch g.IntN(5) {
	case 0, 1:
		return graph.Object{Kind: graph.Volume, Name: pick(g, names)}
	case 2:
		return graph.Object{Kind: graph.Attachment, Name: pick(g, names)}
	}
	return graph.Object{Kind: graph.Pod, Namespace: pick(g, namespaces), Name: pick(g, names)}
}

func (g *generator) question() question {
	switch g.IntN(6) {
	case 0:
		return question{"", "configmaps", pick(g, namespaces), pick(g, names)}
	case 1:
		return question{"", "persistentvolumeclaims", pick(g, namespaces), pick(g, claimNames)}
	case 2:
		return question{"", "persistentvolumes", "", pick(g, names)}
	case 3:
		return question{"", "pods", pick(g, namespaces), pick(g, names)}
	case 4:
		return question{"storage.k8s.io", "volumeattachments", "", pick(g, names)}
	}
	return question{"", "secrets", pick(g, namespaces), pick(g, names)}
}

// change puts one fact into both.
func (g *generator) change(w *world, gr *graph.Graph) {
	if g.IntN(12) == 0 {
		o := graph.Object{Kind: pick(g, []graph.Kind{graph.Pod, graph.Volume, graph.Attachment})}
		if o.Kind == graph.Pod && g.IntN(2) == 0 {
			o.Namespace = pick(g, namespaces)
		}
		life := g.scope()
		w.scopes[o] = life
		gr.SetScope(o.Kind, o.Namespace, life)
		return
	}
	o := g.object()
	life := g.life(o.Kind)
	w.lives[o] = life
	gr.Set(o, life)
}

func newWorld(g *generator) (*world, *graph.Graph) {
	w, gr := &world{map[graph.Object][]graph.Step{}, map[graph.Object][]graph.Step{}}, graph.New()
	for _, k := range []graph.Kind{graph.Pod, graph.Volume, graph.Attachment} {
		life := g.scope()
		w.scopes[graph.Object{Kind: k}] = life
		gr.SetScope(k, "", life)
	}
	return w, gr
}

// TestModel holds random graphs, built in random order with corrections, against the
// definition.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), unknown: seed%3 > 0, exact: seed%2 == 0}
		w, gr := newWorld(g)
		seen := map[graph.Known]int{}
		for range 60 {
			g.change(w, gr)
			for range 30 {
				q, node, when := g.question(), pick(g, nodes), int64(g.IntN(2*span))
				want := w.related(when, node, q)
				got := gr.Related(at(0).Add(nano(when)), node, q.group, q.resource, q.namespace, q.name)
				if got != want {
					t.Fatalf("seed %d: %v from node %q at %d: %v, want %v\n%s", seed, q, node, when, got, want, w)
				}
				seen[want]++
			}
		}
		if seen[graph.Present] == 0 || seen[graph.Absent] == 0 || g.unknown && seen[graph.Unknown] == 0 {
			t.Errorf("seed %d: answers %v: the worlds ask nothing", seed, seen)
		}
	}
}

// TestModelWindows holds windows against the moments in them: every answer of a moment is
// among those of the window.
func TestModelWindows(t *testing.T) {
	var wide, all int
	for seed := range uint64(40) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2)), unknown: seed%2 > 0, exact: seed%4 < 2}
		w, gr := newWorld(g)
		for range 40 {
			g.change(w, gr)
			for range 10 {
				q, node, lo := g.question(), pick(g, nodes), int64(g.IntN(2*span))
				hi := lo + int64(g.IntN(6))
				got := gr.RelatedWithin(at(0).Add(nano(lo)), at(0).Add(nano(hi)), node, q.group, q.resource, q.namespace, q.name)
				var want graph.Answers
				for when := lo; when <= hi; when++ {
					want |= 1 << w.related(when, node, q)
				}
				if got&want != want {
					t.Fatalf("seed %d: %v from node %q in [%d,%d]: %b, the moments in it give %b\n%s", seed, q, node, lo, hi, got, want, w)
				}
				all++
				if g.exact && got != want {
					wide++
				}
			}
		}
	}
	// Some windows say more than their moments: a path that ends as another begins.
	if wide*20 > all {
		t.Errorf("%d of %d windows are wider than needed", wide, all)
	}
}

// TestModelPruned holds a pruned graph against the definition, and shows that nothing stays of
// what is over.
func TestModelPruned(t *testing.T) {
	for seed := range uint64(40) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 3)), unknown: seed%2 > 0}
		w, gr := newWorld(g)
		for range 60 {
			g.change(w, gr)
		}
		horizon := int64(g.IntN(2 * span))
		gr.Prune(at(0).Add(nano(horizon)))
		for range 400 {
			q, node, when := g.question(), pick(g, nodes), horizon+int64(g.IntN(span))
			if got, want := gr.Related(at(0).Add(nano(when)), node, q.group, q.resource, q.namespace, q.name), w.related(when, node,
				q); got != want {
				t.Fatalf("seed %d: %v from node %q at %d, pruned to %d: %v, want %v\n%s", seed, q, node, when, horizon, got, want, w)
			}
		}
		for o := range w.lives {
			gr.Set(o, nil)
		}
		for o := range w.scopes {
			gr.SetScope(o.Kind, o.Namespace, []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}})
		}
		gr.SetScope(graph.Slice, "", []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}})
		gr.SetScope(graph.CertificateRequest, "", []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}})
		if st := gr.Stats(); st != (graph.Stats{}) {
			t.Fatalf("seed %d: left over of an emptied graph: %+v", seed, st)
		}
	}
}

func (w *world) String() string {
	var b strings.Builder
	for _, m := range []map[graph.Object][]graph.Step{w.lives, w.scopes} {
		for o, life := range m {
			fmt.Fprintf(&b, "%d %s/%s:", o.Kind, o.Namespace, o.Name)
			for _, st := range life {
				fmt.Fprintf(&b, " [%d,%d] %v", st.NotBefore, st.NotAfter, st.Known)
				if st.Content != nil {
					fmt.Fprintf(&b, " %+v", *st.Content)
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
