package leastpriv

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/policyshape"
)

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestWeighingProducts: rules that stand for millions of grants are not expanded. The suggestion
// says so and uses what is known, and other subjects are weighed as usual.
func TestWeighingProducts(t *testing.T) {
	objects := append(policyshape.Products().Objects, clusterRole("small", rule("get list", "", "pods secrets")),
		everywhere("small", "small", user("ann"), user("zed")),
		everywhere("group", "role-0", group("devs")))
	cl := newCluster(t, objects...)
	cl.ask("ann", []string{"devs"}, "list", "/api/v1/pods")
	advisor := cl.collector.Advise(cl.state, newest, Options{Strict: true})
	var unseen []Unseen
	if n := allocated(func() { unseen = advisor.Unseen() }); n > 1<<30 {
		t.Errorf("%d MiB to weigh %d unseen subjects", n>>20, len(unseen))
	}
	small := 0
	for _, u := range unseen {
		if strings.HasPrefix(u.Subject, "user-") != u.TooLarge || u.Excess == 0 {
			t.Errorf("%s: excess %d, too large %t", u.Subject, u.Excess, u.TooLarge)
		}
		if u.Subject == "zed" {
			small = u.Excess
		}
	}
	if len(unseen) != 101 || small <= 1 {
		t.Errorf("%d unseen, excess of the small role %d", len(unseen), small)
	}
	var s *Suggestion
	if n := allocated(func() {
		var err error
		if s, err = advisor.Suggest("user-1"); err != nil {
			t.Fatal(err)
		}
	}); n > 256<<20 {
		t.Errorf("%d MiB for a suggestion", n>>20)
	}
	if len(s.Remove) != 300 || !s.Proof.Holds || !slices.ContainsFunc(s.Gaps, func(g string) bool {
		return strings.Contains(g, "too large to weigh")
	}) {
		t.Errorf("%d removals, proof %+v, gaps %q; want it taken out of 300 bindings", len(s.Remove), s.Proof, s.Gaps)
	}
	if s, err := advisor.Suggest("ann"); err != nil || s.Excess.Before != small-weight(&atom{verb: "list", resource: "pods"})*clusterWide ||
		len(s.Keeps) != 1 || !s.Keeps[0].TooLarge {
		t.Errorf("beside it: %+v, %v", s, err)
	}
}
