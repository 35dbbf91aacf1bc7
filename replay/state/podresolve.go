package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// touchPod remembers the steps of a name before its record changes.
func (s *State) touchPod(n podName) {
	if _, ok := s.pods.touched[n]; !ok {
		s.pods.touched[n] = s.podSteps(nil, n)
	}
}

// touchPods does so for all names of a namespace, or everywhere.
func (s *State) touchPods(namespace string) {
	for _, n := range s.pods.all() {
		if namespace == "" || n.namespace == namespace {
			s.touchPod(n)
		}
	}
}

// resolvePods updates the graph with the touched names and returns what changed.
func (s *State) resolvePods() []Effect {
	if len(s.pods.touched) == 0 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(s.pods.touched), func(a, b podName) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	var effects []Effect
	for _, n := range names {
		was, is := s.pods.touched[n], s.podSteps(nil, n)
		head, tail, ok := difference(was, is, (*podStep).equal)
		if !ok {
			continue
		}
		s.graph.Set(graph.Object{Kind: graph.Pod, Namespace: n.namespace, Name: n.name}, graphLife(is))
		effects = append(effects, podEffect(n, was, is, head, tail))
	}
	// The touched names may be all there are: the table would stay as large.
	if len(names) > 1024 {
		s.pods.touched = map[podName][]podStep{}
	} else {
		clear(s.pods.touched)
	}
	return effects
}

// graphLife returns steps in the graph's form.
func graphLife(steps []podStep) []graph.Step {
	out := make([]graph.Step, 0, len(steps))
	for i := range steps {
		st := &steps[i]
		g := graph.Step{NotBefore: st.nb, NotAfter: st.na, Known: graph.Absent}
		switch st.phase {
		case phaseUnknown:
			if !st.loose {
				g.Known = graph.Unknown
			}
		case phasePresent:
			g.Known = graph.Present
			if st.pod != nil {
				g.UID = st.pod.uid
			}
			g.Content = st.graph()
		}
		out = appendStep(out, g) // a deletion is none: what a pod refers to counts until it has gone
	}
	return out
}

// graph returns what the graph needs of a pod, nil if nothing is known.
func (s *podStep) graph() *graph.Content {
	if s.spec == nil && s.bound == instant.None {
		return nil
	}
	c := &graph.Content{Node: s.node, AnyNode: s.bound != instant.None && s.node == "", AnyRefs: s.spec == nil}
	if p := s.spec; p != nil {
		c.Refs, c.Statuses, c.Ephemeral, c.AnyRefs = p.refs, p.statuses, p.ephemeral, p.anyRefs
	}
	return c
}

// podEffect describes the difference between two lines of a name's steps: all but the first head and the
// last tail steps. It concerns only the nodes and service accounts named in the stretch.
func podEffect(n podName, was, is []podStep, head, tail int) Effect {
	// What the graph holds of a pod depends on what it held before, so the rest of the life counts.
	for tail > 0 && tail < len(is) && is[len(is)-tail].phase != phaseAbsent && is[len(is)-tail].pod == is[len(is)-tail-1].pod {
		tail--
	}
	e := Effect{Resource: kept.Pods, Namespace: n.namespace, Name: n.name}
	differ(&e, was, is, head, tail)
	var g gather
	g.s.AllNamespaces = true
	lo := max(0, head-1)
	for _, line := range [][]podStep{was[lo : len(was)-tail], is[lo : len(is)-tail]} {
		for i := range line {
			st := &line[i]
			if st.node != "" {
				g.s.Users = append(g.s.Users, nodeUser(st.node))
			} else if st.bound != instant.None {
				g.s.Groups = append(g.s.Groups, groupNodes)
			}
			if st.spec != nil && st.spec.account != "" {
				g.s.Users = append(g.s.Users, kubenames.ServiceAccount(n.namespace, st.spec.account))
			}
		}
	}
	e.subjects = g.done()
	return e
}
