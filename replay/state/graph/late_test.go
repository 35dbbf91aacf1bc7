package graph_test

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// TestLate: what a pod refers to since an ephemeral container came is late, until the pod's
// references are taken anew by every release.
func TestLate(t *testing.T) {
	const (
		bound = `{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"envFrom":[{"secretRef":{"name":"own"}}]}]}}`
		debug = `{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"envFrom":[{"secretRef":{"name":"own"}}]}],` +
			`"ephemeralContainers":[{"envFrom":[{"secretRef":{"name":"own"}},{"secretRef":{"name":"debug"}},{"configMapRef":{` +
			`"name":"debug"}}]}]}}`
		claimed = `"status":{"resourceClaimStatuses":[{"name":"r","resourceClaimName":"c"}]}}`
	)
	after := strings.TrimSuffix(debug, "}") + "," + claimed
	g := known()
	g.Set(graph.Object{Kind: graph.Pod, Namespace: "d", Name: "p"}, []graph.Step{
		step(10, graph.Present, podOf(t, bound)), step(20, graph.Present, podOf(t, debug)), step(30, graph.Present,
			podOf(t, after)), step(40, graph.Absent, nil),
	})
	for _, tc := range []struct {
		at             int
		resource, name string
		want           graph.Known
	}{
		{15, "secrets", "own", graph.Present}, {15, "secrets", "debug", graph.Absent},
		{25, "secrets", "own", graph.Present}, {25, "secrets", "debug", graph.Late}, {25, "configmaps", "debug", graph.Late}, {25,
			"configmaps", "own", graph.Absent},
		{35, "secrets", "own", graph.Present}, {35, "secrets", "debug", graph.Present}, {35, "configmaps", "debug", graph.Present},
		{45, "secrets", "own", graph.Absent}, {45, "secrets", "debug", graph.Absent},
	} {
		if got := g.Related(at(tc.at), "n1", "", tc.resource, "d", tc.name); got != tc.want {
			t.Errorf("at %d %s/%s: %v, want %v", tc.at, tc.resource, tc.name, got, tc.want)
		}
		if got := g.Related(at(tc.at), "n2", "", tc.resource, "d", tc.name); got != graph.Absent {
			t.Errorf("at %d %s/%s of another node: %v", tc.at, tc.resource, tc.name, got)
		}
	}
	if a := g.RelatedWithin(at(22), at(25), "n1", "", "secrets", "d", "debug"); !a.Has(graph.Present) || !a.Has(graph.Absent) ||
		a.Has(graph.Unknown) {
		t.Errorf("a late path within a window: %b", a)
	}
	// Bound with its ephemeral container there is nothing late about it.
	g.Set(graph.Object{Kind: graph.Pod, Namespace: "d", Name: "p"}, from(10, podOf(t, debug)))
	if got := g.Related(at(15), "n1", "", "secrets", "d", "debug"); got != graph.Present {
		t.Errorf("seen first with its ephemeral container: %v", got)
	}
}
