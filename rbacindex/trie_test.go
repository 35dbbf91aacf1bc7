package rbacindex

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

type named struct{ space, name string }

func (n *named) id() (string, string) { return n.space, n.name }

// TestTrieEqualsMap takes tries through random changes beside a map. With few bits of hash
// kept, keys collide down to the lists at the bottom.
func TestTrieEqualsMap(t *testing.T) {
	for _, keep := range []uint64{^uint64(0), 0x1f, 0xf000_0000_0000_0003, 0} {
		t.Run(fmt.Sprintf("hash bits %x", keep), func(t *testing.T) {
			h := newHasher()
			h.keep = keep
			rng := rand.New(rand.NewPCG(1, keep))
			want := map[named]*named{}
			var tr trie[*named]
			var fw few[*named]
			type version struct {
				tr   trie[*named]
				want map[named]*named
			}
			var old []version
			for step := range 3000 {
				k := named{fmt.Sprint("s", rng.IntN(3)), fmt.Sprint("n", rng.IntN(60))}
				if k.space == "s0" {
					k.space = ""
				}
				// Fill, then drain, so that nodes are folded as well as split.
				if drain := step/500%2 == 1; rng.IntN(10) < 3 != drain {
					delete(want, k)
					tr = tr.without(h, k.space, k.name)
					fw = fw.without(h, k.space, k.name)
				} else {
					l := &named{k.space, k.name}
					want[k] = l
					tr = tr.with(h, l)
					fw = fw.with(h, l)
				}
				if step%50 == 0 {
					checkTrie(t, h, tr, want)
					c := map[named]*named{}
					var leaves []*named
					for k, v := range want {
						c[k] = v
						leaves = append(leaves, v)
					}
					checkTrie(t, h, buildTrie(h, leaves), want)
					if keep != 0 && !reflect.DeepEqual(shapeOf(tr.root), shapeOf(buildTrie(h, leaves).root)) {
						t.Fatalf("step %d: the shape of a changed trie is not that of a built one", step)
					}
					old = append(old, version{tr, c})
					if got := fw.appendTo(nil); len(got) != len(want) {
						t.Fatalf("step %d: few has %d, want %d", step, len(got), len(want))
					}
					for k, v := range want {
						if got, ok := fw.get(h, k.space, k.name); !ok || got != v {
							t.Fatalf("step %d: few lacks %v", step, k)
						}
					}
					if fw.empty() != (len(want) == 0) {
						t.Fatalf("step %d: few.empty is wrong", step)
					}
					if l := fw; !l.empty() && want[*l.first()] != l.first() {
						t.Fatalf("step %d: few.first is %v", step, l.first())
					}
				}
			}
			for i, v := range old {
				checkTrie(t, h, v.tr, v.want)
				o := old[rng.IntN(len(old))]
				if i%2 == 0 {
					o = old[max(i-1, 0)]
				}
				checkBeside(t, h, v.tr, o.tr, v.want, o.want)
				checkBeside(t, h, v.tr, trie[*named]{}, v.want, nil)
			}
		})
	}
}

func checkTrie(t *testing.T, h *hasher, tr trie[*named], want map[named]*named) {
	t.Helper()
	n := 0
	tr.all(func(l *named) bool {
		n++
		if want[*l] != l {
			t.Fatalf("unexpected leaf %v", *l)
		}
		return true
	})
	if n != len(want) {
		t.Fatalf("%d leaves, want %d", n, len(want))
	}
	for k, v := range want {
		if got, ok := tr.get(h, k.space, k.name); !ok || got != v {
			t.Fatalf("get %v: %v %t", k, got, ok)
		}
	}
	if _, ok := tr.get(h, "s1", "absent"); ok {
		t.Fatal("got a leaf that was never there")
	}
	seen := 0
	tr.all(func(*named) bool { seen++; return seen < 3 })
	if seen > 3 {
		t.Fatalf("visit went on after false: %d", seen)
	}
}

// checkBeside holds the leaves of one trie that another lacks against those of the maps.
func checkBeside(t *testing.T, h *hasher, tr, o trie[*named], in, other map[named]*named) {
	t.Helper()
	want := 0
	for k, v := range in {
		if other[k] != v {
			want++
		}
	}
	seen := map[*named]bool{}
	if !tr.beside(h, o, func(l *named) bool {
		if in[*l] != l || other[*l] == l || seen[l] {
			t.Fatalf("%v is beside", *l)
		}
		seen[l] = true
		return true
	}) || len(seen) != want {
		t.Fatalf("%d leaves beside, want %d", len(seen), want)
	}
	n := 0
	if end := tr.beside(h, o, func(*named) bool { n++; return n < 2 }); end != (want < 2) || n > 2 {
		t.Fatalf("stopped at 2 of %d, visited %d, at the end: %t", want, n, end)
	}
}

// shapeOf describes the nodes of a trie by their bitmaps, depth first.
func shapeOf(n *node[*named]) []uint32 {
	if n == nil {
		return nil
	}
	out := []uint32{n.leafMap, n.kidMap, uint32(len(n.leaves))}
	for _, k := range n.kids {
		out = append(out, shapeOf(k)...)
	}
	return out
}
