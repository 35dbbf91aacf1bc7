package graph

import (
	"math/rand/v2"
	"testing"
)

// TestEdges holds crowds of edges against asking every one of them: few keys make runs, many
// make blocks.
func TestEdges(t *testing.T) {
	for _, tc := range []struct {
		name        string
		keys, edges int
	}{{"list", 5, 60}, {"long list", 200, 500}, {"runs", 4, 900}, {"blocks", 900, 3000}, {"both", 60, 2000}} {
		t.Run(tc.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			var table spans
			var e edges
			all := map[edge]bool{}
			list := []edge{}
			check := func() {
				for range 40 {
					key := id(2 + r.IntN(tc.keys+1))
					from := int64(r.IntN(1100))
					w := when{from, from, false}
					if r.IntN(2) == 0 {
						w = when{from, from + int64(r.IntN(30)), true}
					}
					var want held
					for x := range all {
						if x.key == key {
							want = want.or(w.of(table.get(x.span)))
						}
					}
					if got := e.held(&table, key, w); got != want {
						t.Fatalf("%d edges: key %d at %+v: %+v, want %+v", len(all), key, w, got, want)
					}
				}
				if e.len() != len(all) {
					t.Fatalf("%d edges, want %d", e.len(), len(all))
				}
				keys, seen, met := map[id]bool{}, map[id]bool{}, 0
				e.all(func(x edge) {
					if !all[x] {
						t.Fatalf("edge %+v was never put in, or taken out", x)
					}
					keys[x.key] = true
					met++
				})
				e.keys(func(k id) bool {
					if seen[k] {
						t.Fatalf("key %d twice", k)
					}
					seen[k] = true
					return true
				})
				if met != len(all) || len(seen) != len(keys) {
					t.Fatalf("met %d edges of %d, %d keys of %d", met, len(all), len(seen), len(keys))
				}
			}
			for len(list) < tc.edges {
				nb := int64(r.IntN(1000))
				s := span{nb: nb, na: nb + int64(r.IntN(20))}
				s.endNB = s.na + int64(r.IntN(60))
				s.endNA = s.endNB + int64(r.IntN(20))
				if r.IntN(10) == 0 {
					s.endNB, s.endNA = never, never
				}
				x := edge{id(2 + r.IntN(tc.keys)), table.add(s)}
				e.add(&table, x)
				all[x] = true
				list = append(list, x)
				if len(list)%97 == 0 {
					check()
				}
				if r.IntN(4) == 0 { // some go early
					i := r.IntN(len(list))
					e.remove(&table, list[i])
					delete(all, list[i])
				}
			}
			check()
			e.remove(&table, edge{1, 1}) // nothing
			for i, x := range list {
				e.remove(&table, x)
				delete(all, x)
				if i%101 == 0 {
					check()
				}
			}
			check()
			if e.many != nil {
				t.Error("an empty list kept its blocks")
			}
		})
	}
}
