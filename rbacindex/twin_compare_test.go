package rbacindex_test

import (
	"testing"

	"github.com/retrial-io/retrial/rbacindex"
)

// compare asks both for the same request and fails on any difference.
func compare(t *testing.T, seed uint64, s *rbacindex.Snapshot, tw *twin, a *rbacindex.Attributes) bool {
	t.Helper()
	got, err := indexAnswer(s, a, nil)
	want := tw.authorize(a)
	if err != nil || !got.equal(want) {
		t.Errorf("seed %d request %+v: %v\nindex %s\ntwin  %s", seed, *a, err, got, want)
		return false
	}
	return true
}

func TestIndexEqualsTwin(t *testing.T) {
	policies := 1500
	if testing.Short() {
		policies = 200
	}
	allowed, failed := 0, 0
	for seed := range uint64(policies) {
		g := newGenerator(seed)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		tw := newTwin(objects...)
		for i := range 100 {
			a := g.request()
			if i%2 == 0 {
				a = g.aimed(objects)
			}
			if !compare(t, seed, s, tw, a) {
				return
			}
			if s.Authorize(a, nil).Allowed {
				allowed++
			} else {
				failed++
			}
		}
	}
	// A generator that stops making grants would make this test pass for nothing.
	if allowed < failed/20 {
		t.Errorf("allowed %d of %d requests: the generator no longer exercises grants", allowed, allowed+failed)
	}
}

func FuzzIndexEqualsTwin(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, "alice", "ops", "get", "apps", "pods", "log", "a", "default", "/healthz")
	}
	f.Fuzz(func(t *testing.T, seed uint64, user, group, verb, apiGroup, resource, sub, name, ns, path string) {
		g := newGenerator(seed)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		tw := newTwin(objects...)
		for range 4 {
			compare(t, seed, s, tw, g.aimed(objects))
		}
		compare(t, seed, s, tw, &rbacindex.Attributes{User: user, Groups: []string{group}, Verb: verb, APIGroup: apiGroup,
			Resource: resource, Subresource: sub, Name: name, Namespace: ns, ResourceRequest: true})
		compare(t, seed, s, tw, &rbacindex.Attributes{User: user, Groups: []string{group, "ops"}, Verb: verb, Path: path})
	})
}

// TestApplyEqualsRebuild takes one snapshot through random writes and holds it, after every
// few, against a twin and against a snapshot built from scratch; old versions must go on
// giving their old answers.
func TestApplyEqualsRebuild(t *testing.T) {
	for seed := range uint64(60) {
		g := newGenerator(seed + 1<<32)
		objects := g.policy()
		s, err := rbacindex.New(objects...)
		if err != nil {
			t.Fatal(err)
		}
		tw := newTwin(objects...)
		old, oldTwin := s, newTwin(objects...)
		for step := range 60 {
			var changes []rbacindex.Change
			for range 1 + g.IntN(3) {
				c := rbacindex.Change{Key: g.key()}
				if g.IntN(3) > 0 {
					c.Object = g.object(c.Key)
					tw.objects[c.Key] = c.Object
				} else {
					delete(tw.objects, c.Key)
				}
				changes = append(changes, c)
			}
			if s, err = s.Apply(changes...); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				a := g.aimed(tw.list())
				if !compare(t, seed, s, tw, a) || !compare(t, seed, old, oldTwin, a) {
					t.Fatalf("at step %d", step)
				}
			}
			checkObjects(t, s, tw)
		}
		checkNames(t, s, tw)
		var all []any
		s.All(func(_ rbacindex.Key, o any) bool { all = append(all, o); return true })
		rebuilt, err := rbacindex.New(all...)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			a := g.aimed(all)
			x, errX := indexAnswer(s, a, nil)
			y, errY := indexAnswer(rebuilt, a, nil)
			if errX != nil || errY != nil || !x.equal(y) {
				t.Fatalf("seed %d request %+v: %v %v\napplied %s\nrebuilt %s", seed, *a, errX, errY, x, y)
			}
		}
	}
}

// checkObjects holds Get, Len, All and ReferencingRole against the twin's objects.
func checkObjects(t *testing.T, s *rbacindex.Snapshot, tw *twin) {
	t.Helper()
	seen := 0
	s.All(func(k rbacindex.Key, o any) bool {
		seen++
		got, ok := s.Get(k)
		if !ok || got != o || tw.objects[k] != o {
			t.Errorf("%s: All, Get and what was applied differ", k)
		}
		return true
	})
	r, cr, rb, crb := s.Len()
	if seen != len(tw.objects) || r+cr+rb+crb != seen {
		t.Errorf("%d objects visited, %d counted, %d applied", seen, r+cr+rb+crb, len(tw.objects))
	}
	dangling := map[rbacindex.Key]rbacindex.Key{}
	s.Dangling(func(role, b rbacindex.Key) bool { dangling[b] = role; return true })
	for k, o := range tw.objects {
		role, ok := roleOf(k, o)
		if _, there := tw.objects[role]; ok && !there && dangling[k] != role {
			t.Errorf("%s: dangling from %s, want %s", k, dangling[k], role)
		} else if (!ok || there) && dangling[k] != (rbacindex.Key{}) {
			t.Errorf("%s: dangling from %s, which is there", k, dangling[k])
		}
	}
	referenced := map[rbacindex.Key]int{}
	for k, o := range tw.objects {
		if role, ok := roleOf(k, o); ok {
			referenced[role]++
		}
	}
	for role, want := range referenced {
		got := 0
		s.ReferencingRole(role, func(b rbacindex.Key) bool {
			if of, _ := roleOf(b, tw.objects[b]); of != role {
				t.Errorf("%s does not reference %s", b, role)
			}
			got++
			return true
		})
		if got != want {
			t.Errorf("%d bindings reference %s, want %d", got, role, want)
		}
	}
}

// checkNames holds Names against the bindings, for everybody who might be named.
func checkNames(t *testing.T, s *rbacindex.Snapshot, tw *twin) {
	t.Helper()
	users, groups := tw.principals()
	for i, list := range [][]string{users, groups} {
		for _, name := range list {
			a := rbacindex.Attributes{User: name}
			if i == 1 {
				a = rbacindex.Attributes{User: nobody, Groups: []string{name}}
			}
			want := false
			for k := range tw.objects {
				a.Namespace = k.Namespace
				want = want || tw.concerns(&a, k)
			}
			if got := s.Names(name, i == 1); got != want {
				t.Errorf("%q group=%t is named: %t, want %t", name, i == 1, got, want)
			}
		}
	}
}
