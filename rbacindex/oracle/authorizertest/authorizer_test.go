package authorizertest

import (
	"flag"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/retrial-io/retrial/rbacindex"
)

var (
	steps = flag.Int("steps", 60, "generated policy changes")
	seed  = flag.Uint64("seed", 1, "of what is generated")
)

// TestSameAnswersWhilePoliciesChange changes a cluster step by step, sometimes by bursts, and
// sends the same generated requests to both apiservers after each.
func TestSameAnswersWhilePoliciesChange(t *testing.T) {
	role, binding := reviewers()
	w := newWorld(t, []runtime.Object{role, binding}...)
	g := generator{rand.New(rand.NewPCG(*seed, 5))}
	var n tally
	writes := 0
	for step := range *steps {
		changes := make([]rbacindex.Change, 1+g.IntN(4))
		if step == 0 || g.IntN(10) == 0 {
			changes = make([]rbacindex.Change, 40)
		}
		for i := range changes {
			changes[i] = g.write()
		}
		w.write(changes...)
		writes += len(changes)
		for range 25 {
			c := g.call(w)
			if text := w.ask(c, &n); text != "" {
				t.Fatalf("seed %d, step %d: %+v: %s", *seed, step, *c, text)
			}
		}
	}
	t.Logf("seed %d, %d writes: %+v", *seed, writes, n)
	if n.allowed < n.decisions/10 || n.refused < n.decisions/10 || n.withErrors == 0 || n.rules == 0 || n.impersonations == 0 {
		t.Errorf("the requests are too much of one kind: %+v", n)
	}
}
