package rbacindex_test

import (
	"testing"

	"github.com/retrial-io/retrial/rbacindex"
)

// TestVersionsAgainstRebuild grows a tree of versions, asks any of them in any order, and holds
// each answer against that of a policy built from the version's objects alone: what is
// remembered of one version must never show in another.
func TestVersionsAgainstRebuild(t *testing.T) {
	const trees, size, questions = 25, 40, 400
	for seed := range uint64(trees) {
		g := newGenerator(seed + 4100)
		s, err := rbacindex.New(g.policy()...)
		if err != nil {
			t.Fatal(err)
		}
		versions := []*rbacindex.Snapshot{s}
		rebuilt := map[*rbacindex.Snapshot]*rbacindex.Snapshot{}
		for len(versions) < size {
			from := versions[g.IntN(len(versions))]
			if g.IntN(3) > 0 {
				from = versions[len(versions)-1]
			}
			var changes []rbacindex.Change
			for range 1 + g.IntN(3) {
				c := rbacindex.Change{Key: g.key()}
				if g.IntN(3) > 0 {
					c.Object = g.object(c.Key)
				}
				changes = append(changes, c)
			}
			next, err := from.Apply(changes...)
			if err != nil {
				t.Fatal(err)
			}
			versions = append(versions, next)
			for range questions / size {
				v := versions[g.IntN(len(versions))]
				var objects []any
				v.All(func(_ rbacindex.Key, o any) bool { objects = append(objects, o); return true })
				if rebuilt[v] == nil {
					if rebuilt[v], err = rbacindex.New(objects...); err != nil {
						t.Fatal(err)
					}
				}
				a := g.aimed(objects)
				for _, v := range []*rbacindex.Snapshot{v, from, next} {
					fresh := rebuilt[v]
					if fresh == nil {
						v.Authorize(a, nil) // met for later
						continue
					}
					x, errX := indexAnswer(v, a, nil)
					y, errY := indexAnswer(fresh, a, nil)
					if errX != nil || errY != nil || !x.equal(y) {
						t.Fatalf("seed %d request %+v: %v %v\nversion %s\nrebuilt %s", seed, *a, errX, errY, x, y)
					}
				}
			}
		}
	}
}
